"""SASL properties of Java clients in librdkafka's words: PLAIN, SCRAM, OAUTHBEARER by OIDC, GSSAPI."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.config.jaas import JaasEntry, parse_jaas, write_jaas
from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.tls import truststore

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

_OIDC_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_OAUTH = "sasl.oauthbearer."
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_CREDENTIALS = f"{_OAUTH}client.credentials."
_ASSERTION = f"{_OAUTH}assertion."
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_KERBEROS = ("sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin")


def sasl_options(protocol: str, java: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """librdkafka's SASL options, and the properties left out with the reason."""
    if not protocol.startswith("SASL"):
        return {}, dict.fromkeys(java, f"counts only with SASL; security.protocol is {protocol}")
    mechanism = _mechanism(java)
    entry = parse_jaas(java["sasl.jaas.config"]) if java.get("sasl.jaas.config") else JaasEntry("")
    options = {"sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        options.update(_oauth(entry, java))
    elif mechanism == "GSSAPI":
        options.update(_kerberos(entry, java))
    else:
        options.update(
            {f"sasl.{name}": entry.options[name] for name in ("username", "password") if name in entry.options}
        )
    return options, _left_out(mechanism, java, options)


def _mechanism(java: Mapping[str, str]) -> str:
    return java.get("sasl.mechanism", "GSSAPI").strip().upper()


def _left_out(mechanism: str, java: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    known = {"sasl.mechanism", "sasl.jaas.config"}
    if mechanism == "OAUTHBEARER":
        known |= {"sasl.login.callback.handler.class", f"{_OAUTH}jwt.retriever.class"}
    left = {}
    for name in java:
        row = CLIENT_KEYS[name]
        if not row.librdkafka:
            left[name] = row.note
        elif name not in known and row.librdkafka not in options:
            left[name] = f"counts only with another sasl.mechanism than {mechanism}"
    return left


def sasl_problem(protocol: str, java: Mapping[str, str]) -> tuple[str, str] | None:
    """What is missing for a login: the key to set and the reason; None if nothing is."""
    if not protocol.startswith("SASL"):
        return None
    mechanism = _mechanism(java)
    if mechanism not in MECHANISMS:
        hint = "; AWS_MSK_IAM works through SASL/SCRAM or TLS only" if mechanism == "AWS_MSK_IAM" else ""
        return "sasl.mechanism", f"got {mechanism}; allowed {', '.join(MECHANISMS)}{hint}"
    handler = java.get("sasl.login.callback.handler.class", "").strip()
    if handler and mechanism == "OAUTHBEARER" and handler not in _OIDC_HANDLERS:
        return (
            "sasl.login.callback.handler.class",
            f"got {handler}: a Java class cannot run here; allowed {_OIDC_HANDLERS[0]},"
            " with a token endpoint and client credentials",
        )
    options, _ = sasl_options(protocol, java)
    needed = {
        "OAUTHBEARER": (f"{_OAUTH}token.endpoint.url", f"{_OAUTH}client.id"),
        "GSSAPI": ("sasl.kerberos.service.name",),
    }.get(mechanism, ("sasl.username", "sasl.password"))
    if options.get(f"{_OAUTH}grant.type") == _JWT_BEARER:
        needed = (f"{_OAUTH}token.endpoint.url",)
    missing = [name for name in needed if not options.get(name)]
    if not missing:
        return None
    in_jaas = {"sasl.username": "username", "sasl.password": "password", f"{_OAUTH}client.id": "clientId"}
    key = "sasl.jaas.config" if missing[0] in in_jaas else missing[0]
    words = (f"{in_jaas[name]} in sasl.jaas.config" if name in in_jaas else name for name in missing)
    return key, f"{mechanism} needs {' and '.join(words)}"


def _oauth(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    """The client credentials grant, or a signed assertion; anything else needs code that runs in the JVM."""
    found = {
        f"{_OAUTH}token.endpoint.url": java.get(f"{_OAUTH}token.endpoint.url"),
        f"{_OAUTH}client.id": java.get(f"{_CREDENTIALS}client.id", entry.options.get("clientId")),
        f"{_OAUTH}client.secret": java.get(f"{_CREDENTIALS}client.secret", entry.options.get("clientSecret")),
        f"{_OAUTH}scope": java.get(f"{_OAUTH}scope", entry.options.get("scope")),
        f"{_OAUTH}sub.claim.name": java.get(f"{_OAUTH}sub.claim.name"),
        f"{_OAUTH}extensions": ",".join(
            f"{name.removeprefix('extension_')}={value}"
            for name, value in entry.options.items()
            if name.startswith("extension_")
        ),
    }
    if java.get(f"{_OAUTH}jwt.retriever.class", "").strip().endswith(".JwtBearerJwtRetriever"):
        found[f"{_OAUTH}grant.type"] = _JWT_BEARER
        found.update(
            {CLIENT_KEYS[name].librdkafka: value for name, value in java.items() if name.startswith(_ASSERTION)}
        )
    # The identity provider may have another CA than the brokers; Java takes it from the login module's options.
    https = truststore(entry.options, "https.")
    return {f"{_OAUTH}method": "oidc", **https, **{name: value for name, value in found.items() if value}}


def spark_login(java: Mapping[str, str]) -> dict[str, str]:
    """The login of Spark's Kafka client, which is of Kafka 3.9: newer properties become options of its login module.

    Unlike newer clients it has to be told that tokens come from an endpoint.
    """
    if _mechanism(java) != "OAUTHBEARER" or not java.get("security.protocol", "").strip().upper().startswith("SASL"):
        return dict(java)
    entry = parse_jaas(java["sasl.jaas.config"]) if java.get("sasl.jaas.config") else JaasEntry(_OAUTH_MODULE)
    newer = {
        "clientId": java.get(f"{_CREDENTIALS}client.id"),
        "clientSecret": java.get(f"{_CREDENTIALS}client.secret"),
        "scope": java.get(f"{_OAUTH}scope"),
    }
    entry = JaasEntry(entry.module, {**entry.options, **{name: value for name, value in newer.items() if value}})
    known = {name: value for name, value in java.items() if not name.startswith((_CREDENTIALS, f"{_OAUTH}scope"))}
    known.setdefault("sasl.login.callback.handler.class", _OIDC_HANDLERS[0])
    return {**known, "sasl.jaas.config": write_jaas(entry)}


def _kerberos(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    found = {name: java[name] for name in _KERBEROS if name in java}
    if "serviceName" in entry.options:
        found.setdefault("sasl.kerberos.service.name", entry.options["serviceName"])
    if "principal" in entry.options:
        found["sasl.kerberos.principal"] = entry.options["principal"]
    if "keyTab" in entry.options:
        found["sasl.kerberos.keytab"] = entry.options["keyTab"]
    elif entry.options.get("useTicketCache", "").lower() == "true":
        # librdkafka runs kinit before each login; with a ticket cache somebody else does that.
        found["sasl.kerberos.kinit.cmd"] = "true"
    return found

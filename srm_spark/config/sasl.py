"""SASL properties of Java clients in librdkafka's words: PLAIN, SCRAM, OAUTHBEARER by OIDC, GSSAPI."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.config.jaas import JaasEntry, parse_jaas
from srm_spark.config.keys_client import CLIENT_KEYS

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

_OIDC_CLASSES = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_SAME = ("sasl.kerberos.service.name", "sasl.kerberos.kinit.cmd", "sasl.kerberos.min.time.before.relogin")


def sasl_options(protocol: str, java: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """librdkafka's SASL options, and the properties left out with the reason."""
    if not protocol.startswith("SASL"):
        return {}, dict.fromkeys(java, f"counts only with SASL; security.protocol is {protocol}")
    mechanism = java.get("sasl.mechanism", "GSSAPI").strip().upper()
    options = {"sasl.mechanism": mechanism}
    entry = parse_jaas(java["sasl.jaas.config"]) if java.get("sasl.jaas.config") else JaasEntry("")
    left: dict[str, str] = {}
    if mechanism == "OAUTHBEARER":
        options.update(_oauth(entry, java))
    elif mechanism == "GSSAPI":
        options.update(_kerberos(entry, java))
    else:
        for jaas_name in ("username", "password"):
            if jaas_name in entry.options:
                options[f"sasl.{jaas_name}"] = entry.options[jaas_name]
    handler = java.get("sasl.login.callback.handler.class")
    if handler is not None and not (mechanism == "OAUTHBEARER" and handler.strip() in _OIDC_CLASSES):
        left["sasl.login.callback.handler.class"] = CLIENT_KEYS["sasl.login.callback.handler.class"].note
    return options, left


def sasl_problem(protocol: str, java: Mapping[str, str]) -> str | None:
    """What is missing for a login, in words; None if nothing is."""
    if not protocol.startswith("SASL"):
        return None
    mechanism = java.get("sasl.mechanism", "GSSAPI").strip().upper()
    if mechanism not in MECHANISMS:
        return f"got sasl.mechanism {mechanism}; allowed {', '.join(MECHANISMS)}"
    options, _ = sasl_options(protocol, java)
    needed = {
        "OAUTHBEARER": ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.client.id"),
        "GSSAPI": ("sasl.kerberos.service.name",),
    }.get(mechanism, ("sasl.username", "sasl.password"))
    missing = [name for name in needed if not options.get(name)]
    return f"{mechanism} needs {' and '.join(_java_words(name) for name in missing)}" if missing else None


def _java_words(name: str) -> str:
    words = {
        "sasl.username": "username in sasl.jaas.config",
        "sasl.password": "password in sasl.jaas.config",
        "sasl.oauthbearer.client.id": "clientId in sasl.jaas.config",
    }
    return words.get(name, name)


def _oauth(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    """The client credentials grant; anything else needs code that runs in the JVM."""
    found = {
        "sasl.oauthbearer.token.endpoint.url": java.get("sasl.oauthbearer.token.endpoint.url"),
        "sasl.oauthbearer.client.id": java.get(
            "sasl.oauthbearer.client.credentials.client.id", entry.options.get("clientId")
        ),
        "sasl.oauthbearer.client.secret": java.get(
            "sasl.oauthbearer.client.credentials.client.secret", entry.options.get("clientSecret")
        ),
        "sasl.oauthbearer.scope": java.get("sasl.oauthbearer.scope", entry.options.get("scope")),
        "sasl.oauthbearer.extensions": ",".join(
            f"{name.removeprefix('extension_')}={value}"
            for name, value in entry.options.items()
            if name.startswith("extension_")
        ),
    }
    return {"sasl.oauthbearer.method": "oidc", **{name: value for name, value in found.items() if value}}


def _kerberos(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    found = {name: java[name] for name in _SAME if name in java}
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

"""SASL properties of Java clients in librdkafka's words: PLAIN, SCRAM, OAUTHBEARER by OIDC, GSSAPI."""

from __future__ import annotations

import json
from collections.abc import Mapping

from srm_spark.config.jaas import JaasEntry, parse_jaas, write_jaas
from srm_spark.config.keys_client import CLIENT_KEYS, SPELLINGS
from srm_spark.config.tls import truststore
from srm_spark.core.plugins import load_function
from srm_spark.errors import PluginError

MECHANISMS = SPELLINGS["sasl.mechanism"]

_OIDC_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
)
_HANDLER = "sasl.login.callback.handler.class"
FUNCTION_KEY = "sasl.login.callback.handler.function"
TOKEN_FUNCTION, TOKEN_OPTIONS = "srm.token.function", "srm.token.options"
"""No options of librdkafka: whose function gives the tokens, and what it gets (JSON). See `kafka/tokens.py`."""
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
    if mechanism == "OAUTHBEARER" and java.get(FUNCTION_KEY):
        options.update(_function(entry, java))
    elif mechanism == "OAUTHBEARER":
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
        known |= {_HANDLER, FUNCTION_KEY, f"{_OAUTH}jwt.retriever.class"}
    if TOKEN_FUNCTION in options:
        known |= {name for name in java if name.startswith(_OAUTH)}
    left = {}
    for name in java:
        row = CLIENT_KEYS.get(name)
        if row is None:  # no property of a client, and told as such
            continue
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
    handler, function = java.get(_HANDLER, "").strip(), java.get(FUNCTION_KEY, "").strip()
    if function:
        return _function_problem(mechanism, function)
    if handler and mechanism == "OAUTHBEARER" and handler not in _OIDC_HANDLERS:
        return (
            _HANDLER,
            f"got {handler}: a Java class cannot run here; allowed {_OIDC_HANDLERS[0]},"
            f" with a token endpoint and client credentials, or any beside {FUNCTION_KEY} = package.module:function",
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


def _function_problem(mechanism: str, function: str) -> tuple[str, str] | None:
    if mechanism != "OAUTHBEARER":
        return FUNCTION_KEY, f"counts only with sasl.mechanism = OAUTHBEARER, which is {mechanism}"
    try:
        load_function(FUNCTION_KEY, function)
    except PluginError as error:
        return FUNCTION_KEY, f"{function} {error.message}; {error.hint}"
    return None


def _function(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    """The function gets what a Java handler gets: the login module's options, and the properties of OAuth."""
    given = {**entry.options, **{name: value for name, value in java.items() if name.startswith(_OAUTH)}}
    return {TOKEN_FUNCTION: java[FUNCTION_KEY].strip(), TOKEN_OPTIONS: json.dumps(given)}


def _oauth(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    """The client credentials grant, or a signed assertion; anything else needs code that runs in the JVM."""
    options = {
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
        options[f"{_OAUTH}grant.type"] = _JWT_BEARER
        options.update(
            {CLIENT_KEYS[name].librdkafka: value for name, value in java.items() if name.startswith(_ASSERTION)}
        )
    # The identity provider may have another CA than the brokers; Java takes it from the login module's options.
    https = truststore(entry.options, "https.")
    return {f"{_OAUTH}method": "oidc", **https, **{name: value for name, value in options.items() if value}}


def needs_java_login(java: Mapping[str, str]) -> bool:
    """Whether Spark's Kafka source, which runs in the JVM, has no way to log in: a Python function cannot serve it."""
    ways = (_HANDLER, f"{_OAUTH}token.endpoint.url")
    return bool(java.get(FUNCTION_KEY)) and not any(java.get(name) for name in ways)


def is_by_librdkafka_only(java: Mapping[str, str]) -> bool:
    """Whether nobody but librdkafka logs in so: by Kerberos, or by a signed assertion."""
    if not java.get("security.protocol", "").strip().upper().startswith("SASL"):
        return False
    is_assertion = java.get(f"{_OAUTH}jwt.retriever.class", "").strip().endswith(".JwtBearerJwtRetriever")
    by_assertion = _mechanism(java) == "OAUTHBEARER" and is_assertion and not java.get(FUNCTION_KEY)
    return _mechanism(java) == "GSSAPI" or by_assertion


def spark_login(java: Mapping[str, str]) -> dict[str, str]:
    """The login of Spark's Kafka client, which is of Kafka 3.9: newer properties become options of its login module.

    Unlike newer clients it has to be told that tokens come from an endpoint.
    """
    if _mechanism(java) != "OAUTHBEARER" or not java.get("security.protocol", "").strip().upper().startswith("SASL"):
        return dict(java)
    java = {name: value for name, value in java.items() if name != FUNCTION_KEY}
    entry = parse_jaas(java["sasl.jaas.config"]) if java.get("sasl.jaas.config") else JaasEntry(_OAUTH_MODULE)
    newer = {
        "clientId": java.get(f"{_CREDENTIALS}client.id"),
        "clientSecret": java.get(f"{_CREDENTIALS}client.secret"),
        "scope": java.get(f"{_OAUTH}scope"),
    }
    entry = JaasEntry(entry.module, {**entry.options, **{name: value for name, value in newer.items() if value}})
    known = {name: value for name, value in java.items() if not name.startswith((_CREDENTIALS, f"{_OAUTH}scope"))}
    known.setdefault(_HANDLER, _OIDC_HANDLERS[0])
    return {**known, "sasl.jaas.config": write_jaas(entry)}


def _kerberos(entry: JaasEntry, java: Mapping[str, str]) -> dict[str, str]:
    options = {name: java[name] for name in _KERBEROS if name in java}
    if "serviceName" in entry.options:
        options.setdefault("sasl.kerberos.service.name", entry.options["serviceName"])
    if "principal" in entry.options:
        options["sasl.kerberos.principal"] = entry.options["principal"]
    if "keyTab" in entry.options:
        options["sasl.kerberos.keytab"] = entry.options["keyTab"]
    elif entry.options.get("useTicketCache", "").lower() == "true":
        # librdkafka runs kinit before each login; with a ticket cache somebody else does that.
        options["sasl.kerberos.kinit.cmd"] = "true"
    return options

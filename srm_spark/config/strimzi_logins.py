"""Logins of Strimzi's resources as keys of ours; what Secrets hold becomes references, `${secrets:NAME:KEY}`.

A driver does not read Secrets: `srm-control deploy` turns these references into ones to where a platform has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import yaml

from srm_spark.config.jaas import JaasEntry, write_jaas

PROVIDER = "secrets"
"""As Strimzi's own config provider for Secrets is called."""
_MODULES = {
    "plain": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "scram-sha-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "scram-sha-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_OAUTH = {"clientId": "clientId", "scope": "scope"}
"""Key of a resource → option of the login module."""
_READ = {
    **dict.fromkeys(_MODULES, ("username", "passwordSecret")),
    "tls": ("certificateAndKey",),
    "oauth": (*_OAUTH, "clientSecret", "tokenEndpointUri"),
    "custom": ("sasl", "config"),
}
"""Type of a login → what of it has a counterpart."""

Pairs = Callable[[yaml.Node | None], Iterator[tuple[str, yaml.Node]]]


def has_sasl(kind: str, login: Mapping[str, yaml.Node]) -> bool:
    """Whether a login of that type is one of SASL."""
    sasl = login.get("sasl")
    return kind not in ("", "tls") and (kind != "custom" or (sasl is not None and str(sasl.value).lower() == "true"))


def mechanism(kind: str) -> str:
    """What `sasl.mechanism` is for a type; empty where its own config says it."""
    return {"oauth": "OAUTHBEARER", "custom": ""}.get(kind, kind.upper())


def trusted(tls: Mapping[str, yaml.Node], pairs: Pairs) -> tuple[dict[str, str], list[yaml.Node]]:
    """Keys for the certificates that are trusted, and those of them that cannot be named one by one."""
    certificates = tls.get("trustedCertificates")
    items = certificates.value if isinstance(certificates, yaml.SequenceNode) else []
    named = [dict(pairs(item)) for item in items]
    unknown = [
        item for item, parts in zip(items, named, strict=True) if not {"secretName", "certificate"} <= parts.keys()
    ]
    known = [_secret(parts, "certificate") for parts in named if {"secretName", "certificate"} <= parts.keys()]
    if not known:
        return {}, unknown
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "\n".join(known)}, unknown


def login_keys(kind: str, login: Mapping[str, yaml.Node], pairs: Pairs) -> dict[str, str]:
    """Keys of a login, as far as its type is known."""
    if kind in _MODULES:
        options = {"username": _text(login.get("username"))}
        password = dict(pairs(login.get("passwordSecret")))
        return _jaas(_MODULES[kind], {**options, "password": _secret(password, "password")})
    if kind == "tls":
        parts = dict(pairs(login.get("certificateAndKey")))
        chain, key = _secret(parts, "certificate"), _secret(parts, "key")
        return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if kind == "oauth":
        options = {name: _text(login[key]) for key, name in _OAUTH.items() if key in login}
        options["clientSecret"] = _secret(dict(pairs(login.get("clientSecret"))), "key")
        endpoint = {"sasl.oauthbearer.token.endpoint.url": _text(login.get("tokenEndpointUri"))}
        return {**endpoint, **_jaas(_OAUTH_MODULE, options)}
    return {key: _text(value) for key, value in pairs(login.get("config"))} if kind == "custom" else {}


def left_out(kind: str, login: Mapping[str, yaml.Node]) -> Iterator[tuple[str, yaml.Node]]:
    """What of a login has no counterpart."""
    return ((key, node) for key, node in login.items() if key != "type" and key not in _READ.get(kind, ()))


def _jaas(module: str, options: Mapping[str, str]) -> dict[str, str]:
    return {"sasl.jaas.config": write_jaas(JaasEntry(module, dict(options)))}


def _secret(parts: Mapping[str, yaml.Node], key: str) -> str:
    return f"${{{PROVIDER}:{_text(parts.get('secretName'))}:{_text(parts.get(key))}}}"


def _text(node: yaml.Node | None) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""

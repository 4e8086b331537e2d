"""TLS properties of Java clients in librdkafka's words."""

from __future__ import annotations

from collections.abc import Mapping

from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.errors import SrmError

STORE_TYPES = ("JKS", "PKCS12", "PEM")


class TlsError(SrmError):
    """A keystore or truststore cannot be used; names the property, never a password."""


def tls_options(protocol: str, java: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """librdkafka's TLS options, and the properties left out with the reason."""
    if not protocol.endswith("SSL"):
        return {}, dict.fromkeys(java, f"counts only with TLS; security.protocol is {protocol}")
    options: dict[str, str] = {}
    options.update(_truststore(java))
    options.update(_keystore(java))
    if "ssl.endpoint.identification.algorithm" in java:
        options["ssl.endpoint.identification.algorithm"] = (
            java["ssl.endpoint.identification.algorithm"].strip().lower() or "none"
        )
    if java.get("ssl.cipher.suites"):
        options["ssl.cipher.suites"] = java["ssl.cipher.suites"].replace(",", ":")
    left = {name: CLIENT_KEYS[name].note for name in java if not CLIENT_KEYS[name].librdkafka}
    return options, left


def _truststore(java: Mapping[str, str]) -> dict[str, str]:
    if java.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": java["ssl.truststore.certificates"]}
    location = java.get("ssl.truststore.location")
    if not location:
        return {}
    if java.get("ssl.truststore.type", "JKS").upper() == "PEM":
        return {"ssl.ca.location": location}
    raise TlsError(f"ssl.truststore.location = {location}: only ssl.truststore.type=PEM can be read yet")


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    password = {"ssl.key.password": java["ssl.key.password"]} if java.get("ssl.key.password") else {}
    if java.get("ssl.keystore.key"):
        chain = java.get("ssl.keystore.certificate.chain", "")
        return {"ssl.key.pem": java["ssl.keystore.key"], "ssl.certificate.pem": chain, **password}
    location = java.get("ssl.keystore.location")
    if not location:
        return {}
    if java.get("ssl.keystore.type", "JKS").upper() == "PEM":
        return {"ssl.key.location": location, "ssl.certificate.location": location, **password}
    raise TlsError(f"ssl.keystore.location = {location}: only ssl.keystore.type=PEM can be read yet")

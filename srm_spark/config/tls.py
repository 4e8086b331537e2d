"""TLS properties of Java clients in librdkafka's words; keystores become PEM texts in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping

from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.stores import StoreError, is_pem, open_store, read_bytes, tidy_pem
from srm_spark.errors import SrmError

STORE_TYPES = ("JKS", "PKCS12", "PEM")

_SUITE = re.compile(r"^(?:TLS|SSL)_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+)$")


class TlsError(SrmError):
    """A keystore or truststore cannot be used; names the property, never a password."""

    def __init__(self, key: str, message: str) -> None:
        self.key = key
        self.message = message
        super().__init__(f"{key}: {message}")


def tls_options(protocol: str, java: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """librdkafka's TLS options, and the properties left out with the reason."""
    if not protocol.endswith("SSL"):
        return {}, dict.fromkeys(java, f"counts only with TLS; security.protocol is {protocol}")
    options = {**truststore(java), **_keystore(java)}
    left = {name: CLIENT_KEYS[name].note for name in java if not CLIENT_KEYS[name].librdkafka}
    if "ssl.endpoint.identification.algorithm" in java:
        algorithm = java["ssl.endpoint.identification.algorithm"].strip().lower()
        options["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    if java.get("ssl.cipher.suites", "").strip():
        suites, unknown = openssl_suites(java["ssl.cipher.suites"])
        if suites:
            options["ssl.cipher.suites"] = ":".join(suites)
        if unknown:
            left["ssl.cipher.suites"] = f"{', '.join(unknown)} cannot be chosen; suites of TLS 1.3 are always on"
    return options, left


def truststore(java: Mapping[str, str], prefix: str = "ssl.") -> dict[str, str]:
    """`<prefix>ca.location` for a PEM file, `<prefix>ca.pem` for anything else."""
    if java.get("ssl.truststore.certificates", "").strip():
        return {f"{prefix}ca.pem": _tidy("ssl.truststore.certificates", java["ssl.truststore.certificates"])}
    location = java.get("ssl.truststore.location", "").strip()
    if not location:
        return {}
    try:
        _check_type("ssl.truststore.type", java)
        if is_pem(read_bytes(location)):
            return {f"{prefix}ca.location": location}
        opened = open_store(location, java.get("ssl.truststore.password"))
    except StoreError as error:
        raise TlsError("ssl.truststore.location", str(error)) from error
    if not opened.certificates:
        raise TlsError("ssl.truststore.location", f"{location} holds no certificate")
    return {f"{prefix}ca.pem": "".join(opened.certificates)}


def _keystore(java: Mapping[str, str]) -> dict[str, str]:
    password = {"ssl.key.password": java["ssl.key.password"]} if java.get("ssl.key.password") else {}
    if java.get("ssl.keystore.key", "").strip():
        chain = java.get("ssl.keystore.certificate.chain", "")
        if not chain.strip():
            raise TlsError("ssl.keystore.key", "ssl.keystore.certificate.chain is missing")
        key = _tidy("ssl.keystore.key", java["ssl.keystore.key"])
        return {"ssl.key.pem": key, "ssl.certificate.pem": _tidy("ssl.keystore.certificate.chain", chain), **password}
    location = java.get("ssl.keystore.location", "").strip()
    if not location:
        return {}
    try:
        _check_type("ssl.keystore.type", java)
        if is_pem(read_bytes(location)):
            return {"ssl.key.location": location, "ssl.certificate.location": location, **password}
        opened = open_store(location, java.get("ssl.keystore.password"), java.get("ssl.key.password"))
    except StoreError as error:
        raise TlsError("ssl.keystore.location", str(error)) from error
    if not opened.key:
        raise TlsError("ssl.keystore.location", f"{location} holds no private key")
    return {"ssl.key.pem": opened.key, "ssl.certificate.pem": "".join(opened.certificates)}


def _check_type(name: str, java: Mapping[str, str]) -> None:
    kind = java.get(name, "JKS").strip().upper()
    if kind not in STORE_TYPES:
        raise TlsError(name, f"got {kind}; allowed {', '.join(STORE_TYPES)}")


def _tidy(key: str, text: str) -> str:
    try:
        return tidy_pem(text)
    except StoreError as error:
        raise TlsError(key, str(error)) from error


def openssl_suites(text: str) -> tuple[list[str], list[str]]:
    """OpenSSL's names for a list of Java's, and those that have none there."""
    found: list[str] = []
    unknown: list[str] = []
    for name in (part.strip() for part in re.split(r"[,:]", text)):
        match = _SUITE.match(name)
        if match is None:
            # A name of OpenSSL's own has hyphens; what is left are the suites of TLS 1.3.
            (unknown if "_" in name else found).append(name)
            continue
        exchange = match["exchange"].replace("_", "-")
        cipher = match["cipher"].replace("AES_", "AES").replace("_CBC", "").replace("_", "-")
        cipher = cipher.replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305").replace("3DES-EDE", "DES-CBC3")
        found.append(cipher if exchange == "RSA" else f"{exchange}-{cipher}")
    return found, unknown

"""TLS properties of Java clients in librdkafka's words; keystores become PEM texts in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping

from srm_spark.config.keys_client import CLIENT_KEYS
from srm_spark.config.stores import (
    Store,
    StoreError,
    end_of_certificate,
    is_pem,
    open_pem,
    open_store,
    read_bytes,
    tidy_pem,
)
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


def login_end(java: Mapping[str, str]) -> float | None:
    """When the certificate ends by which a client logs in, in seconds since the epoch; None where it logs in by none.

    Raises TlsError and StoreError where it cannot be read any more.
    """
    if not java.get("security.protocol", "").strip().upper().endswith("SSL"):
        return None
    found = _keystore(java)
    if text := found.get("ssl.certificate.pem"):
        return end_of_certificate(text.encode())
    location = found.get("ssl.certificate.location")
    return None if location is None else end_of_certificate(read_bytes(location))


def truststore(java: Mapping[str, str], prefix: str = "ssl.") -> dict[str, str]:
    """`<prefix>ca.location` for a PEM file, `<prefix>ca.pem` for anything else."""
    if java.get("ssl.truststore.certificates", "").strip():
        _check_type("ssl.truststore", java, "ssl.truststore.certificates", is_pem_there=True)
        return {f"{prefix}ca.pem": _tidy("ssl.truststore.certificates", java["ssl.truststore.certificates"])}
    location = java.get("ssl.truststore.location", "").strip()
    if not location:
        return {}
    try:
        if _check_type("ssl.truststore", java, "ssl.truststore.location", is_pem_there=is_pem(read_bytes(location))):
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
        _check_type("ssl.keystore", java, "ssl.keystore.key", is_pem_there=True)
        _pem_keystore(java)
        key, chain = (_tidy(name, java[name]) for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain"))
        return {"ssl.key.pem": key, "ssl.certificate.pem": chain, **password}
    location = java.get("ssl.keystore.location", "").strip()
    if not location:
        return {}
    try:
        if _check_type("ssl.keystore", java, "ssl.keystore.location", is_pem_there=is_pem(read_bytes(location))):
            _pem_keystore(java)
            return {"ssl.key.location": location, "ssl.certificate.location": location, **password}
        opened = open_store(location, java.get("ssl.keystore.password"), java.get("ssl.key.password"))
    except StoreError as error:
        raise TlsError("ssl.keystore.location", str(error)) from error
    if not opened.key:
        raise TlsError("ssl.keystore.location", f"{location} holds no private key")
    return {"ssl.key.pem": opened.key, "ssl.certificate.pem": "".join(opened.certificates)}


def _check_type(store: str, java: Mapping[str, str], key: str, *, is_pem_there: bool) -> bool:
    """Whether the store is PEM; Java opens JKS and PKCS12 under either name, but PEM only under its own."""
    name = f"{store}.type"
    kind = java.get(name, "JKS").strip().upper()
    if kind not in STORE_TYPES:
        raise TlsError(name, f"got {kind}; allowed {', '.join(STORE_TYPES)}")
    if is_pem_there != (kind == "PEM"):
        given, right = ("PEM", "PEM") if is_pem_there else ("no PEM", "PKCS12 or JKS")
        raise TlsError(key, f"holds {given}, but {name} is {kind}; write {name} = {right}")
    return is_pem_there


def _pem_keystore(java: Mapping[str, str]) -> Store:
    """The key, opened, and the certificates of a keystore in PEM."""
    name, text = _pem_text(java)
    try:
        return open_pem(text, java.get("ssl.key.password"))
    except StoreError as error:
        raise TlsError(name, str(error)) from error


def _pem_text(java: Mapping[str, str]) -> tuple[str, str]:
    """A keystore in PEM and the property that has it: texts of the configuration, or a file."""
    key, chain = "ssl.keystore.key", "ssl.keystore.certificate.chain"
    if not java.get(key, "").strip():
        location = "ssl.keystore.location"
        return location, read_bytes(java[location].strip()).decode("utf-8", "replace")
    if not java.get(chain, "").strip():
        raise TlsError(key, f"{chain} is missing")
    return key, _tidy(key, java[key]) + _tidy(chain, java[chain])


def spark_keystore(java: Mapping[str, str]) -> dict[str, str]:
    """`java` with a PEM key as Spark's Kafka client can read it, opened here, in memory, and handed over as a text.

    Java 17 opens no key that OpenSSL encrypts today, and no key but PKCS #8.
    """
    has_keystore = java.get("ssl.keystore.key", "").strip() or java.get("ssl.keystore.location", "").strip()
    is_used = has_keystore and java.get("security.protocol", "").strip().upper().endswith("SSL")
    if not is_used or java.get("ssl.keystore.type", "").strip().upper() != "PEM":
        return dict(java)
    if "-----BEGIN PRIVATE KEY-----" in _pem_text(java)[1] and not java.get("ssl.key.password"):
        return dict(java)
    opened = _pem_keystore(java)
    left = ("ssl.keystore.location", "ssl.keystore.password", "ssl.key.password")
    return {
        **{name: value for name, value in java.items() if name not in left},
        "ssl.keystore.key": opened.key,
        "ssl.keystore.certificate.chain": "".join(opened.certificates),
    }


def _tidy(key: str, text: str) -> str:
    try:
        return tidy_pem(text)
    except StoreError as error:
        raise TlsError(key, str(error)) from error


def openssl_suites(text: str) -> tuple[list[str], list[str]]:
    """OpenSSL's names for a list of Java's, and those that have none there."""
    suites: list[str] = []
    unknown: list[str] = []
    for name in (part.strip() for part in re.split(r"[,:]", text)):
        match = _SUITE.match(name)
        if match is None:
            # A name of OpenSSL's own has hyphens; what is left are the suites of TLS 1.3.
            (unknown if "_" in name else suites).append(name)
            continue
        exchange = match["exchange"].replace("_", "-")
        cipher = match["cipher"].replace("AES_", "AES").replace("_CBC", "").replace("_", "-")
        cipher = cipher.replace("CHACHA20-POLY1305-SHA256", "CHACHA20-POLY1305").replace("3DES-EDE", "DES-CBC3")
        suites.append(cipher if exchange == "RSA" else f"{exchange}-{cipher}")
    return suites, unknown

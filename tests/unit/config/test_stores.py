"""Keystores and truststores of Java become PEM in memory."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates as serialize
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.config import spark_kafka_options
from srm_spark.config.settings import ClusterSettings
from srm_spark.config.stores import StoreError, open_store, tidy_pem
from srm_spark.config.tls import TlsError, login_end, openssl_suites, tls_options
from tests.unit.config.conftest import Loader, problems
from tests.unit.config.identities import CA, CLIENT

SAMPLES = Path(__file__).parent / "samples"
JKS = b"\xfe\xed\xfe\xed"
PEM = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}


STORE_KEY = b"store-pass"


@pytest.fixture
def truststore(tmp_path: Path) -> Path:
    path = tmp_path / "trust.p12"
    entries = [PKCS12Certificate(CA.certificate, b"ca"), PKCS12Certificate(CLIENT.certificate, b"other")]
    path.write_bytes(serialize_java_truststore(entries, BestAvailableEncryption(STORE_KEY)))
    return path


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    path = tmp_path / "key.p12"
    encryption = BestAvailableEncryption(STORE_KEY)
    path.write_bytes(serialize(b"me", CLIENT.key, CLIENT.certificate, [CA.certificate], encryption))
    return path


def _java(truststore: Path, keystore: Path, **more: str) -> dict[str, str]:
    return {
        "ssl.truststore.location": str(truststore),
        "ssl.truststore.password": "store-pass",
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.password": "store-pass",
        **more,
    }


def test_pkcs12_becomes_pem_and_nothing_is_written(truststore: Path, keystore: Path) -> None:
    before = sorted(truststore.parent.iterdir())
    options, left = tls_options("SSL", _java(truststore, keystore))
    assert left == {}
    assert options["ssl.ca.pem"] == CA.pem + CLIENT.pem
    assert options["ssl.certificate.pem"] == CLIENT.pem + CA.pem
    key = load_pem_private_key(options["ssl.key.pem"].encode(), None)
    assert key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode() == CLIENT.key_pem
    assert sorted(truststore.parent.iterdir()) == before


@pytest.mark.parametrize("name", ["client.jks", "client.jceks"])
def test_javas_own_keystores_become_pem_also_with_a_password_for_the_key_alone(name: str) -> None:
    """Both were made by `keytool -importkeystore -deststoretype JKS -destkeypass key-pass`."""
    java = _java(SAMPLES / "trust.jks", SAMPLES / name)
    options, _ = tls_options("SSL", {**java, "ssl.key.password": "key-pass"})
    key = load_pem_private_key(options["ssl.key.pem"].encode(), None)
    client, ca = x509.load_pem_x509_certificates(options["ssl.certificate.pem"].encode())
    assert key.public_key() == client.public_key()
    assert x509.load_pem_x509_certificates(options["ssl.ca.pem"].encode()) == [ca]
    with pytest.raises(TlsError, match="the password is wrong or the file is damaged"):
        tls_options("SSL", java)


def test_the_certificates_of_a_jks_file_need_no_password_but_no_wrong_one() -> None:
    found = open_store(str(SAMPLES / "trust.jks"), None)
    assert found.certificates == open_store(str(SAMPLES / "trust.jks"), "store-pass").certificates
    assert len(found.certificates) == 1
    with pytest.raises(StoreError, match="the password is wrong or the file is damaged"):
        open_store(str(SAMPLES / "trust.jks"), "other")


def test_when_the_certificate_ends_by_which_a_client_logs_in(keystore: Path, truststore: Path, tmp_path: Path) -> None:
    end = CLIENT.certificate.not_valid_after_utc.timestamp()
    (tmp_path / "me.pem").write_text(CLIENT.key_pem + CLIENT.pem + CA.pem)
    assert login_end({"security.protocol": "SSL", **_java(truststore, keystore)}) == end
    pem = {"ssl.keystore.location": str(tmp_path / "me.pem"), "ssl.keystore.type": "PEM"}
    assert login_end({"security.protocol": "SASL_SSL", **pem}) == end
    assert login_end({"security.protocol": "SASL_PLAINTEXT", **pem}) is None
    assert login_end({"security.protocol": "SSL"}) is None
    with pytest.raises(TlsError, match="there is no file"):
        login_end({"security.protocol": "SSL", **pem, "ssl.keystore.location": str(tmp_path / "gone.pem")})


def test_pem_files_are_handed_over_by_name(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CA.pem)
    (tmp_path / "me.pem").write_text(CLIENT.encrypted_pem("k") + CLIENT.pem + CA.pem)
    java = _java(tmp_path / "ca.pem", tmp_path / "me.pem", **PEM, **{"ssl.key.password": "k"})
    assert tls_options("SASL_SSL", java)[0] == {
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.key.location": str(tmp_path / "me.pem"),
        "ssl.certificate.location": str(tmp_path / "me.pem"),
        "ssl.key.password": "k",
    }


@pytest.mark.parametrize("layout", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("password", ["k", None])
def test_sparks_client_gets_the_key_of_a_pem_file_opened(
    tmp_path: Path, layout: PrivateFormat, password: str | None
) -> None:
    path = tmp_path / "me.pem"
    path.write_text(CLIENT.encrypted_pem(password, layout) + CLIENT.pem + CA.pem)
    java = {"security.protocol": "SSL", "ssl.keystore.location": str(path), **PEM}
    if password:
        java["ssl.key.password"] = password
    cluster = ClusterSettings("A", "a:1", java)
    options = spark_kafka_options(cluster, {}, 60)
    if password is None and layout is PrivateFormat.PKCS8:
        assert options["kafka.ssl.keystore.location"] == str(path), "Java reads it as it is"
        return
    assert options["kafka.ssl.keystore.key"] == CLIENT.key_pem
    assert options["kafka.ssl.keystore.certificate.chain"] == CLIENT.pem + CA.pem
    assert not {"kafka.ssl.keystore.location", "kafka.ssl.key.password"} & set(options)
    assert sorted(tmp_path.iterdir()) == [path]


def test_pem_texts_in_one_line_get_their_line_breaks_back() -> None:
    java = {
        "ssl.truststore.certificates": " ".join(CA.pem.split("\n")),
        "ssl.keystore.key": " ".join(CLIENT.key_pem.split("\n")),
        "ssl.keystore.certificate.chain": (CLIENT.pem + CA.pem).replace("\n", " "),
    }
    options, _ = tls_options("SSL", {**java, **PEM})
    assert options == {
        "ssl.ca.pem": CA.pem,
        "ssl.key.pem": CLIENT.key_pem,
        "ssl.certificate.pem": CLIENT.pem + CA.pem,
    }


def test_what_a_file_says_wrong_about_its_stores(
    loaded: Loader, truststore: Path, keystore: Path, tmp_path: Path
) -> None:
    (tmp_path / "junk").write_bytes(b"junk")
    (tmp_path / "me.pem").write_text(CLIENT.encrypted_pem("k") + CLIENT.pem)
    pem = "A.ssl.keystore.type = PEM\nA.ssl.truststore.type = PEM\n"
    for text, expected in (
        (f"A.ssl.truststore.location = {truststore}\n", "cannot be opened as PKCS12: the password is missing"),
        (f"A.ssl.keystore.location = {keystore}\nA.ssl.keystore.password = hunter2\n", "the password is wrong"),
        (
            "A.ssl.truststore.location = /no/such\n",
            "|A.ssl.truststore.location|there is no file /no/such on this machine",
        ),
        (f"A.ssl.truststore.location = {tmp_path}/junk\nA.ssl.truststore.password = hunter2\n", "file is damaged"),
        (
            f"A.ssl.truststore.location = {truststore}\nA.ssl.truststore.type = BCFKS\n",
            "got BCFKS; allowed JKS, PKCS12",
        ),
        (f"A.ssl.keystore.location = {truststore}\nA.ssl.keystore.password = store-pass\n", "holds no private key"),
        (f"{pem}A.ssl.keystore.key = x\n", "ssl.keystore.certificate.chain is missing"),
        (f"{pem}A.ssl.truststore.certificates = x\n", "no block -----BEGIN"),
        ("A.ssl.truststore.certificates = x\n", "but ssl.truststore.type is JKS; write ssl.truststore.type = PEM"),
        (f"A.ssl.keystore.location = {tmp_path}/me.pem\n", "holds PEM, but ssl.keystore.type is JKS; write"),
        (f"{pem}A.ssl.keystore.location = {keystore}\n", "holds no PEM, but ssl.keystore.type is PEM; write"),
        (f"{pem}A.ssl.keystore.location = {tmp_path}/me.pem\n", "is encrypted and ssl.key.password is missing"),
        (
            f"{pem}A.ssl.keystore.location = {tmp_path}/me.pem\nA.ssl.key.password = hunter2\n",
            "|A.ssl.keystore.location|the private key cannot be opened: ssl.key.password is wrong",
        ),
    ):
        found = "\n".join(problems(loaded("A.security.protocol = SSL\n" + text)))
        assert expected in found, text
        assert "hunter2" not in found


def test_cipher_suites_get_openssls_names() -> None:
    assert openssl_suites(
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_RSA_WITH_AES_128_CBC_SHA,"
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_DHE_RSA_WITH_AES_256_CBC_SHA256,"
        "TLS_AES_256_GCM_SHA384,ECDHE-RSA-AES128-SHA"
    ) == (
        [
            "ECDHE-RSA-AES256-GCM-SHA384",
            "AES128-SHA",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            "DHE-RSA-AES256-SHA256",
            "ECDHE-RSA-AES128-SHA",
        ],
        ["TLS_AES_256_GCM_SHA384"],
    )


def test_host_names_are_checked_unless_switched_off() -> None:
    assert tls_options("SSL", {"ssl.endpoint.identification.algorithm": ""})[0] == {
        "ssl.endpoint.identification.algorithm": "none"
    }
    assert tls_options("SSL", {"ssl.endpoint.identification.algorithm": "HTTPS"})[0] == {
        "ssl.endpoint.identification.algorithm": "https"
    }


@given(st.binary(max_size=200), st.none() | st.text(max_size=5))
def test_any_bytes_open_or_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes, password: str) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-store"
    for magic in (b"", JKS + b"\x00\x00\x00\x02", JKS + b"\x00\x00\x00\x02\x00\x00\x00\x01", b"\x30\x82"):
        path.write_bytes(magic + content)
        try:
            open_store(str(path), password)
        except StoreError:
            continue


@given(st.data())
def test_a_damaged_jks_file_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged-store"
    for name in ("client.jks", "client.jceks", "secure-storage.jceks"):
        content = bytearray((SAMPLES / name).read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content[: data.draw(st.integers(at + 1, len(content)))])
        with pytest.raises(StoreError):
            open_store(str(path), "store-pass", "key-pass")
        with contextlib.suppress(StoreError):  # without a password the digest is not looked at
            open_store(str(path), None, "key-pass")


@given(st.text(max_size=80))
def test_any_text_is_pem_or_refused(text: str) -> None:
    with contextlib.suppress(StoreError):
        assert "-----BEGIN" in tidy_pem(text)

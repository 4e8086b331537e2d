"""New connections get the certificate that lies in the files; what cannot be used changes nothing."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509

from srm_spark.api.certificate import certificate_watch, why_unfit
from tests.unit.config.identities import CA, CLIENT, Identity


def greeted_by(server: ssl.SSLContext) -> x509.Certificate:
    """The certificate that a new connection is shown, in memory."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one, other = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for _ in range(5):
        for side in (one, other):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = one.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown)


def write(folder: Path, identity: Identity, key: Identity | None = None) -> tuple[str, str]:
    chain, private = folder / "chain.pem", folder / "key.pem"
    chain.write_text(identity.pem)
    private.write_text((key or identity).key_pem + "\n" * (identity is CA))  # of another size, however fast the clock
    return str(chain), str(private)


def test_a_certificate_that_is_renewed_is_shown_from_then_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = write(tmp_path, CLIENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    watch = certificate_watch(context, *files)
    watch.look()
    assert greeted_by(context) == CLIENT.certificate
    write(tmp_path, CA, key=CLIENT)
    watch.look()
    assert greeted_by(context) == CLIENT.certificate, "a key of another certificate"
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    watch.look()
    assert len(caplog.records) == 1
    write(tmp_path, CA)
    watch.look()
    assert greeted_by(context) == CA.certificate
    (tmp_path / "chain.pem").unlink()
    watch.look()
    assert greeted_by(context) == CA.certificate


def test_what_cannot_be_used_says_why(tmp_path: Path) -> None:
    assert why_unfit(*write(tmp_path, CLIENT)) is None
    assert why_unfit(*write(tmp_path, CLIENT, key=CA)) is not None
    assert why_unfit(str(tmp_path / "gone"), None) == "No such file or directory"

"""A key in a PKCS #11 module signs as one in a file does; the module is SoftHSM, a library and a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from srm_spark.core.envelope import Predicate, Subject
from srm_spark.errors import SigningFailed
from srm_spark.plan import MoveKind, Statement
from srm_spark.plan.document import statement_document
from srm_spark.statements import Seal, check_statement, open_key, read_public_key
from tests.unit.plan.examples import FLOW, move, snapshot

MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so", "/usr/lib/libsofthsm2.so")
PIN = "1234"
MODULE = next((path for path in MODULES if os.path.exists(path)), "")
TOOL = shutil.which("softhsm2-util")
pytestmark = pytest.mark.skipif(not MODULE or TOOL is None, reason="no SoftHSM on this machine")


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A key in a new token; the module reads where its tokens are once in a process."""
    import pkcs11  # noqa: PLC0415 - not where there is no module
    from pkcs11.util.ec import encode_named_curve_parameters  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("hsm")
    (folder / "tokens").mkdir()
    (folder / "conf").write_text(f"directories.tokendir = {folder / 'tokens'}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(folder / "conf"))
        command = [str(TOOL), "--init-token", "--free", "--label", "srm tests", "--pin", PIN, "--so-pin", "5678"]
        subprocess.run(command, check=True, capture_output=True)
        token = pkcs11.lib(MODULE).get_token(token_label="srm tests")
        curve = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters("1.3.101.112")}
        with token.open(user_pin=PIN, rw=True) as session:
            parameters = session.create_domain_parameters(pkcs11.KeyType.EC_EDWARDS, curve, local=True)
            parameters.generate_keypair(
                mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN, store=True, label="statements"
            )
        yield f"pkcs11:token=srm%20tests;object=statements?module-path={MODULE}"


def test_its_statements_are_checked_by_its_public_half(uri: str, tmp_path: Path) -> None:
    key = open_key(uri, PIN)
    done = Statement(MoveKind.FAILOVER, FLOW, "begin", "end", snapshot(move()), (), ())
    path, public = tmp_path / "m.intoto.jsonl", tmp_path / "k.pub"
    found = {**statement_document(done), "verified": None}
    Seal(key, {}).write(path, Predicate.MOVE, [Subject("x", "0")], found)
    public.write_bytes(key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    _, statement = check_statement(path, read_public_key(public))
    assert statement["predicate"]["move"] == "failover"


@pytest.mark.parametrize(
    ("change", "pin", "said"),
    [
        (("", ""), "9999", "cannot be used: PinIncorrect"),
        (("", ""), None, "cannot be used: NoSuchKey"),
        (("object=statements", "object=others"), PIN, "key others of token srm tests .* cannot be used: NoSuchKey"),
        (("srm%20tests", "theirs"), PIN, "cannot be used: NoSuchToken"),
    ],
)
def test_what_is_wrong_is_told(uri: str, change: tuple[str, str], pin: str | None, said: str) -> None:
    with pytest.raises(SigningFailed, match=said) as caught:
        open_key(uri.replace(*change), pin)
    assert PIN not in str(caught.value)


def test_several_moves_sign_at_the_same_time(uri: str) -> None:
    key = open_key(uri, PIN)
    with ThreadPoolExecutor(8) as pool:
        signed = list(pool.map(key.sign, [f"{number}".encode() for number in range(40)]))
    for number, one in enumerate(signed):
        key.public.verify(one, f"{number}".encode())

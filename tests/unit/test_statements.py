"""Signed statements: what they are made of, who believes them, and that no byte of one can be another."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_public_key
from hypothesis import given
from hypothesis import strategies as st

from srm_spark.cli.control import main
from srm_spark.config.load import load_settings
from srm_spark.core.envelope import Envelope, Predicate, Subject, digest_of, in_toto, pae, read_envelope
from srm_spark.core.log_digest import LogDigest
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.tail import TailRecord
from srm_spark.errors import ConfigError, MoveError, SigningFailed, StatementRefused
from srm_spark.look.verification_document import sign_verification
from srm_spark.look.verify import verify
from srm_spark.plan import MoveKind, Statement
from srm_spark.plan.document import statement_document
from srm_spark.plan.snapshot import Phase, Stage
from srm_spark.plan.verified import read_verified
from srm_spark.statements import Seal, check_statement, make_keys, open_key, page_path, read_public_key, seal_of
from srm_spark.statements.hsm import KeyPlace, key_place
from srm_spark.statements.keys import key_id, sealed
from tests.unit.memory_flow import FILE, MemoryFlow, flow_settings
from tests.unit.plan.examples import move, snapshot

FLOW = Flow("A", "B")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    private, public = tmp_path / "k.key", tmp_path / "k.pub"
    make_keys(private, public)
    return private, public


def seal(keys: tuple[Path, Path]) -> Seal:
    return Seal(open_key(str(keys[0])), {"clusters": "A, B", "A.sasl.jaas.config": "********"})


ALL: Mapping[str, object] = {"topics": ".*", "partition": None, "since": None, "sample": None, "goes_on": False}


def signed_verification(
    keys: tuple[Path, Path], folder: Path, *, changed: bool = False, asked: Mapping[str, object] = ALL
) -> Path:
    flow = MemoryFlow(flow_settings())
    flow.write(*(b"%d" % number for number in range(5)))
    flow.run()
    if changed:
        flow.remote.records[2] = flow.remote.records[2]._replace(value=b"<b>!")
    path = folder / "v.intoto.jsonl"
    found = verify(flow.settings, lambda _: True, roots=True, reach=flow.reach)
    sign_verification(seal(keys), path, flow.settings, found, dict(asked))
    return path


def signed_move(keys: tuple[Path, Path], folder: Path, unsafe: tuple[str, ...] = ()) -> Path:
    phases = (Phase(Stage.COMMIT, "begin", "end"), Phase(Stage.CHECK, "later"))
    done = Statement(MoveKind.FAILOVER, FLOW, "begin", "end", snapshot(move()), unsafe, ("start them",), phases)
    found = {**statement_document(done), "verified": None}
    path = folder / "m.intoto.jsonl"
    seal(keys).write(path, Predicate.MOVE, [Subject("failover A->B begin", digest_of(found))], found)
    return path


def check(path: Path, public: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify-statement", str(path), "--public-key", str(public), *arguments])


def test_what_is_signed_is_what_dsse_says() -> None:
    """The example of its protocol.md."""
    assert pae(b"hello world", "http://example.com/HelloWorld") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_statement_is_an_in_toto_statement(keys: tuple[Path, Path], tmp_path: Path) -> None:
    envelope = json.loads(signed_verification(keys, tmp_path).read_text())
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "urn:srm-spark:verification:v1"
    names = [one["name"] for one in statement["subject"]]
    assert names == ["A t-0 0 to 5", "B A.t-0 0 to 5"]
    said = statement["predicate"]
    assert (said["verdict"], said["flow"]) == ("equal", "A->B")
    assert said["configuration"]["A.sasl.jaas.config"] == "********"
    assert said["clusters"] == {"A": "nowhere:1", "B": "nowhere:2"}
    assert said["partitions"][0]["roots"]["source"]["sha256"] == statement["subject"][0]["digest"]["sha256"]


def test_somebody_elses_program_finds_the_signature_right(keys: tuple[Path, Path], tmp_path: Path) -> None:
    envelope = json.loads(signed_move(keys, tmp_path).read_text())
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
    content = b" ".join([b"DSSEv1", b"%d" % len(kind), kind, b"%d" % len(payload), payload])
    signature = base64.b64decode(envelope["signatures"][0]["sig"])
    public = load_pem_public_key(keys[1].read_bytes())
    assert isinstance(public, Ed25519PublicKey)
    public.verify(signature, content)
    (tmp_path / "content").write_bytes(content)
    (tmp_path / "sig").write_bytes(signature)
    openssl = shutil.which("openssl")
    assert openssl is not None
    told = subprocess.run(
        [
            openssl,
            "pkeyutl",
            "-verify",
            "-pubin",
            "-inkey",
            str(keys[1]),
            "-rawin",
            "-in",
            "content",
            "-sigfile",
            "sig",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Signature Verified Successfully" in told.stdout, told
    der = subprocess.run(
        [openssl, "pkey", "-pubin", "-in", str(keys[1]), "-outform", "DER"], capture_output=True, check=True
    )
    assert hashlib.sha256(der.stdout).hexdigest() == envelope["signatures"][0]["keyid"]


def test_the_documented_program_finds_it_right(keys: tuple[Path, Path], tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "statements.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    path = signed_verification(keys, tmp_path)
    line = [sys.executable, "-W", "ignore", "-c", program, str(path), str(keys[1])]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "equal\n"
    path.write_text(path.read_text().replace('"sig":"', '"sig":"AAAA', 1))
    assert subprocess.run(line, capture_output=True, check=False).returncode != 0


def test_no_byte_can_be_another(keys: tuple[Path, Path], tmp_path: Path) -> None:
    """Every byte: another one by one bit, the letter in the other case, and taken out."""
    content = signed_move(keys, tmp_path).read_bytes()
    changed, key = tmp_path / "changed", read_public_key(keys[1])
    for at in range(len(content)):
        others = {content[:at] + content[at + 1 :]} | {
            content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :] for bit in (0, 5)
        }
        for other in others - {content}:
            changed.write_bytes(other)
            with pytest.raises(StatementRefused):
                check_statement(changed, key)
    changed.write_bytes(content)
    check_statement(changed, key)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"payload":"","signatures":[]}', '{"signatures":[{}]}', "\udcff"]
)
def test_what_is_no_statement_is_refused(keys: tuple[Path, Path], tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StatementRefused, match="it is no signed statement"):
        check_statement(path, read_public_key(keys[1]))


def test_a_signed_payload_that_is_none_of_ours_is_refused(keys: tuple[Path, Path], tmp_path: Path) -> None:
    key, path = open_key(str(keys[0])), tmp_path / "x"
    for payload in (b"[]", b"{", in_toto(Predicate.MOVE, [], {}).replace(b":v1", b":v2")):
        path.write_text(sealed(payload, key).text())
        with pytest.raises(StatementRefused, match="no statement that this version knows"):
            check_statement(path, key.public)


def test_another_key_is_named(keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = signed_move(keys, tmp_path)
    make_keys(tmp_path / "other.key", tmp_path / "other.pub")
    answer = check(path, tmp_path / "other.pub")
    assert answer.exit_code == 1
    ours, theirs = (key_id(read_public_key(one)) for one in (keys[1], tmp_path / "other.pub"))
    assert f"key {ours} has signed it, not key {theirs}" in answer.output


def test_a_key_id_that_lies_helps_nobody(keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = signed_move(keys, tmp_path)
    make_keys(tmp_path / "other.key", tmp_path / "other.pub")
    found = read_envelope(path.read_text())
    other = read_public_key(tmp_path / "other.pub")
    path.write_text(Envelope(found.payload, key_id(other), found.signature).text())
    with pytest.raises(StatementRefused, match="the signature is not that of key"):
        check_statement(path, other)


def test_the_command_says_what_was_found(keys: tuple[Path, Path], tmp_path: Path) -> None:
    answer = check(signed_verification(keys, tmp_path), keys[1])
    assert answer.exit_code == 0, answer.output
    assert "equal: 5 records of 1 partition" in answer.output
    answer = check(signed_verification(keys, tmp_path, changed=True), keys[1])
    assert answer.exit_code == 3
    assert "different: 4 records of 1 partition" in answer.output
    answer = check(signed_move(keys, tmp_path), keys[1])
    assert (answer.exit_code, "everything moved" in answer.output) == (0, True)
    answer = check(signed_move(keys, tmp_path, ("group g stays",)), keys[1])
    assert (answer.exit_code, "not everything moved: group g stays" in answer.output) == (3, True)
    statement = json.loads(check(signed_move(keys, tmp_path), keys[1], "-o", "json").stdout)
    assert statement["predicate"]["phases"][1] == {"stage": "check", "began": "later", "ended": None}


@pytest.mark.parametrize("make", [signed_verification, signed_move])
def test_the_page_is_the_same_from_the_file(make: Any, keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = make(keys, tmp_path)
    again = tmp_path / "again.html"
    assert check(path, keys[1], "--page", str(again)).exit_code == 0
    assert again.read_text() == page_path(path).read_text()
    assert key_id(read_public_key(keys[1])) in again.read_text()


def test_nothing_of_a_statement_is_taken_for_html(keys: tuple[Path, Path], tmp_path: Path) -> None:
    page = page_path(signed_move(keys, tmp_path, ("<script>alert(1)</script>",))).read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_key_is_made_once_and_shown_to_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    answer = CliRunner().invoke(main, ["statement", "key", "--out", str(folder)])
    assert answer.exit_code == 0, answer.output
    private = folder / "statement.key"
    assert private.stat().st_mode & 0o777 == 0o600
    before = private.read_bytes()
    assert "PRIVATE" not in answer.output
    assert CliRunner().invoke(main, ["statement", "key", "--out", str(folder)]).exit_code == 1
    (folder / "statement.pub").unlink()
    answer = CliRunner().invoke(main, ["statement", "key", "--out", str(folder)])
    assert (answer.exit_code, "a key is never written over" in answer.output) == (1, True)
    assert private.read_bytes() == before
    assert not (folder / "statement.pub").exists()


def test_a_password_opens_a_key(tmp_path: Path) -> None:
    command = ["statement", "key", "--out", str(tmp_path), "--password"]
    answer = CliRunner().invoke(main, command, input="secret\nsecret\n")
    assert answer.exit_code == 0, answer.output
    private = str(tmp_path / "statement.key")
    open_key(private, "secret")
    with pytest.raises(SigningFailed, match=r"has a password, and none is given: see statement\.key\.password"):
        open_key(private)
    with pytest.raises(SigningFailed, match="its password is another one"):
        open_key(private, "other")


def test_what_is_no_key_is_told(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    with pytest.raises(SigningFailed, match="has no password, and one is given"):
        open_key(str(keys[0]), "secret")
    with pytest.raises(SigningFailed, match=r"cannot be read: No such file.*srm-control statement key"):
        open_key(str(tmp_path / "none"))
    with pytest.raises(SigningFailed, match="it is none in PEM"):
        open_key(str(keys[1]))
    rsa = generate_private_key(65537, 2048)
    (tmp_path / "rsa").write_bytes(rsa.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(SigningFailed, match="is no Ed25519 key"):
        open_key(str(tmp_path / "rsa"))
    with pytest.raises(StatementRefused, match="is no public key in PEM"):
        read_public_key(keys[0])


def test_a_verification_goes_into_a_move_only_if_it_is_of_its_flow(keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = signed_verification(keys, tmp_path)
    settings = flow_settings()
    found = read_verified(path, seal(keys), settings)
    payload = base64.b64decode(json.loads(path.read_text())["payload"])
    assert (found.verdict, found.sha256) == ("equal", hashlib.sha256(payload).hexdigest())
    with pytest.raises(MoveError, match="not the verification of B->A"):
        read_verified(path, seal(keys), replace(settings, flow=FLOW.reverse))
    with pytest.raises(MoveError, match="not the verification of A->B"):
        read_verified(signed_move(keys, tmp_path), seal(keys), settings)
    path.write_text(path.read_text().replace("A", "B", 1))
    with pytest.raises(MoveError, match="make it with srm-control verify --statement, by the same key"):
        read_verified(path, seal(keys), settings)


def test_what_was_not_looked_at_and_where_goes_with_a_verification(keys: tuple[Path, Path], tmp_path: Path) -> None:
    asked = {"topics": "t", "partition": 0, "since": "2026-11-27T08:00:00Z", "sample": None, "goes_on": True}
    path, settings = signed_verification(keys, tmp_path, asked=asked), flow_settings()
    only = "topics t, partition 0, records since 2026-11-27T08:00:00Z, what came behind earlier verifications"
    assert read_verified(path, seal(keys), settings).part == only
    assert f"Looked at: {only}." in page_path(path).read_text()
    assert "nowhere:2" in page_path(path).read_text()
    told = CliRunner().invoke(main, ["verify-statement", str(path), "--public-key", str(keys[1])])
    assert f"only {only} was looked at" in told.stdout
    whole = signed_verification(keys, tmp_path)
    assert read_verified(whole, seal(keys), settings).part is None
    assert "Looked at: everything that was copied." in page_path(whole).read_text()
    elsewhere = replace(settings, target=replace(settings.target, bootstrap_servers="elsewhere:1"))
    with pytest.raises(MoveError, match="was made of another cluster B, at nowhere:2: B is elsewhere:1 here"):
        read_verified(whole, seal(keys), elsewhere)


def test_copies_that_differ_are_no_proof_for_a_move(keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = signed_verification(keys, tmp_path, changed=True)
    with pytest.raises(MoveError, match="says that the copies are different"):
        read_verified(path, seal(keys), flow_settings())


def test_the_configuration_names_the_key(keys: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(FILE)
    assert seal_of(load_settings(path)) is None
    path.write_text(f'{FILE}statement.key = {keys[0]}\nA.sasl.jaas.config = x required password="hidden";\n')
    made = seal_of(load_settings(path))
    assert made is not None
    assert key_id(made.key.public) == key_id(read_public_key(keys[1]))
    assert made.configuration["A.bootstrap.servers"] == "nowhere:1"
    assert "hidden" not in str(made.configuration)
    for line, said in (
        ("statement.key =", "allowed the path of a PEM file"),
        ("statement.key.password = x", "has no effect without statement.key"),
    ):
        path.write_text(f"{FILE}{line}\n")
        with pytest.raises(ConfigError, match=said):
            load_settings(path)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("pkcs11:token=t;object=o?module-path=/m&pin-value=1", "holds no PIN"),
        ("pkcs11:token=t", "object, module-path is missing"),
        ("pkcs11:token=t;object=o;serial=1?module-path=/m", "serial says nothing here"),
        ("pkcs11:token=t;object=o?module-path=/none.so", "key o of token t by /none.so cannot be used"),
    ],
)
def test_a_uri_of_a_hardware_key_is_checked(uri: str, said: str) -> None:
    with pytest.raises(SigningFailed, match=said):
        open_key(uri, "1234")


def test_a_uri_is_read_as_rfc_7512_writes_it() -> None:
    assert key_place("pkcs11:token=my%20token;object=o%3B?module-path=/m.so") == KeyPlace("/m.so", "my token", "o;")


BYTES = st.none() | st.binary(max_size=5)
RECORDS = st.builds(
    TailRecord,
    st.integers(0, 9),
    st.integers(-1, 9),
    BYTES,
    BYTES,
    st.lists(st.tuples(st.text("ab", max_size=2), BYTES), max_size=2).map(tuple),
    st.just(False),  # whose clock a timestamp is of belongs to the topic, not to a record
)


def counted(content: bytes | None) -> bytes:
    return struct.pack(">i", -1) if content is None else struct.pack(">i", len(content)) + content


def by_hand(records: list[TailRecord]) -> str:
    """As docs/statements.md writes it down."""
    whole = b""
    for one in records:
        whole += struct.pack(">qq", one.offset, one.timestamp) + counted(one.key) + counted(one.value)
        whole += struct.pack(">i", len(one.headers))
        whole += b"".join(counted(name.encode()) + counted(value) for name, value in one.headers)
    return hashlib.sha256(whole).hexdigest()


def root(records: list[TailRecord]) -> str:
    digest = LogDigest()
    for one in records:
        digest.take(one)
    assert digest.root().records == len(records)
    return digest.root().sha256


@given(st.lists(RECORDS, max_size=4), st.lists(RECORDS, max_size=4))
def test_roots_are_equal_for_equal_logs_alone(one: list[TailRecord], other: list[TailRecord]) -> None:
    assert root(one) == by_hand(one)
    assert (root(one) == root(other)) == (one == other)


def test_a_key_of_another_library_signs(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path = tmp_path / "k"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert key_id(open_key(str(path)).public) == key_id(key.public_key())


def test_roots_are_made_only_where_they_are_wanted() -> None:
    flow = MemoryFlow(flow_settings())
    flow.write(b"x")
    flow.run()
    (one,) = verify(flow.settings, lambda _: True, reach=flow.reach).partitions
    assert one.roots is None
    (one,) = verify(flow.settings, lambda _: True, roots=True, reach=flow.reach).partitions
    assert one.roots is not None
    record = flow.remote.records[0]
    assert one.roots.target.sha256 == root([TailRecord(0, record.timestamp, record.key, record.value, record.headers)])
    assert one.partition == TopicPartition("t", 0)

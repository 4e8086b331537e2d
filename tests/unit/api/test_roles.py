"""Who may do what, how often a password may be wrong, and what is recorded of it."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest

from srm_spark.api.attempts import Attempts, TooManyWrong
from srm_spark.api.audit import Audit, Result
from srm_spark.api.roles import NOWHERE, Caller, Role, Roles, roles_of
from srm_spark.api.tokens import Tokens
from srm_spark.api.users import Users, UserTable, line_of, read_users
from srm_spark.errors import ConfigError
from tests.unit.api.boards import AB, BA, CB, Clock
from tests.unit.api.logins import QUICK, login

ALICE = Caller("alice", "10.0.0.1")


@pytest.mark.parametrize(
    ("text", "of_ab", "of_ba"),
    [
        ("", Role.VIEWER, Role.VIEWER),
        ("operator", Role.OPERATOR, Role.OPERATOR),
        ("A->B=admin", Role.ADMIN, Role.NONE),
        ("none A->B=viewer", Role.VIEWER, Role.NONE),
        ("operator A->B=none", Role.NONE, Role.OPERATOR),
        ("admin A->B=viewer", Role.VIEWER, Role.ADMIN),
        ("B->A=operator A->B=admin viewer", Role.ADMIN, Role.OPERATOR),
    ],
)
def test_roles_are_of_flows_or_of_all(text: str, of_ab: Role, of_ba: Role) -> None:
    roles = roles_of(text)
    assert (roles.of(AB), roles.of(BA)) == (of_ab, of_ba)


@pytest.mark.parametrize(
    "text", ["root", "A->B", "A->B=", "=admin", "A=admin", "->B=admin", "operator admin", "A->B=admin A->B=viewer"]
)
def test_what_are_no_roles_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed|second|twice|written"):
        roles_of(text)


def test_roles_stand_behind_the_hash(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"{line_of('alice', 'a', 'operator A->B=admin')}\n{line_of('bob', 'b')}\n")
    users = Users(read_users(str(path)))
    assert users.name_of(login("alice:a")["authorization"]) == "alice"
    assert (users.roles("alice").of(AB), users.roles("alice").of(CB)) == (Role.ADMIN, Role.OPERATOR)
    assert (users.roles("bob"), users.roles("whoever")) == (Roles(), NOWHERE)
    assert users.flows == {"A->B"}
    path.write_text(line_of("alice", "a", "root") + "\n" + line_of("bob", "b", "A->B=") + "\n")
    with pytest.raises(ConfigError) as error:
        read_users(str(path))
    assert [one.location for one in error.value.problems] == [f"{path}:1", f"{path}:2"]
    assert "argon2" not in str(error.value)


def test_wrong_logins_are_limited_by_address_and_name() -> None:
    clock = Clock()
    attempts = Attempts(lambda: clock.monotonic)
    for _ in range(5):
        attempts.check("10.0.0.1", "alice")
        attempts.wrong("10.0.0.1", "alice")
    with pytest.raises(TooManyWrong) as error:
        attempts.check("10.0.0.1", "alice")
    assert error.value.seconds == 300
    attempts.check("10.0.0.1", "bob")
    attempts.check("10.0.0.2", "alice")
    for number in range(25):
        attempts.check("10.0.0.1", f"guess {number}")
        attempts.wrong("10.0.0.1", f"guess {number}")
    with pytest.raises(TooManyWrong):
        attempts.check("10.0.0.1", "bob")
    clock.pass_by(301)
    attempts.check("10.0.0.1", "alice")


def test_who_finds_his_password_begins_anew_and_frees_nobody_else() -> None:
    attempts = Attempts()
    for _ in range(4):
        attempts.wrong("10.0.0.1", "alice")
        attempts.wrong("10.0.0.1", "bob")
    attempts.right("10.0.0.1", "alice")
    for _ in range(4):
        attempts.wrong("10.0.0.1", "alice")
    attempts.check("10.0.0.1", "alice")
    attempts.wrong("10.0.0.1", "bob")
    with pytest.raises(TooManyWrong):
        attempts.check("10.0.0.1", "bob")


def test_addresses_of_one_network_count_together_and_memory_is_bounded() -> None:
    attempts = Attempts()
    for number in range(5):
        attempts.wrong(f"2001:db8::{number}", "alice")
    with pytest.raises(TooManyWrong):
        attempts.check("2001:db8::ffff", "alice")
    attempts.check("2001:db8:0:1::1", "alice")
    for number in range(20_000):
        attempts.wrong(f"10.0.{number // 250}.{number % 250}", "alice")
    attempts.check("2001:db8::1", "alice")  # the oldest were forgotten


def test_guesses_at_once_are_limited_too() -> None:
    users = Users(UserTable({"alice": QUICK.hash("right")}))
    outcomes: list[object] = []

    def guess(number: int) -> None:
        try:
            outcomes.append(users.name_of(login(f"alice:{number}")["authorization"], "10.0.0.1"))
        except TooManyWrong:
            outcomes.append("refused")

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(9)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(map(str, outcomes)) == ["None"] * 5 + ["refused"] * 4
    with pytest.raises(TooManyWrong):  # nor is the right one told from the others
        users.name_of(login("alice:right")["authorization"], "10.0.0.1")


def test_a_remembered_login_is_no_way_round_the_limit() -> None:
    users = Users(UserTable({"alice": QUICK.hash("right")}))
    right = login("alice:right")["authorization"]
    assert users.name_of(right, "10.0.0.1") == "alice"
    for number in range(5):
        assert users.name_of(login(f"alice:{number}")["authorization"], "10.0.0.1") is None
    with pytest.raises(TooManyWrong):
        users.name_of(right, "10.0.0.1")
    assert users.name_of(right, "10.0.0.2") == "alice"


def test_a_token_is_one_user_s_for_half_a_day() -> None:
    clock = Clock()
    tokens = Tokens(lambda: clock.now)
    token = tokens.make(ALICE)
    assert tokens.is_right(token, ALICE)
    assert tokens.is_right(token, Caller("alice", "10.0.0.2"))
    assert not tokens.is_right(token, Caller("bob", "10.0.0.1"))
    assert not tokens.is_right(token, Caller(None, "10.0.0.1"))
    assert not Tokens(lambda: clock.now).is_right(token, ALICE)
    issued, _, signed = token.partition(".")
    for forged in ("", ".", issued, f"{issued}.", f"{int(issued) + 1}.{signed}", f"{issued}.é", f"x.{signed}"):
        assert not tokens.is_right(forged, ALICE), forged
    clock.pass_by(12 * 3600)
    assert not tokens.is_right(token, ALICE)


def test_a_record_is_a_line_of_its_own_whatever_stands_in_it(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(str(path), lambda: 1_700.0)
    audit.record(Caller("a\n{}", "10.0.0.1"), "login", None, Result.REFUSED, why="x" * 5000)
    path.rename(tmp_path / "audit.1")
    audit.record(ALICE, "pause", "A->B", Result.DONE, about={"topic": "orders"})
    (first,) = (tmp_path / "audit.1").read_text().splitlines()
    assert (json.loads(first)["who"], len(json.loads(first)["why"])) == ("a\n{}", 1001)
    assert json.loads(path.read_text()) == {
        "kind": "audit",
        "at": 1_700_000,
        "who": "alice",
        "from": "10.0.0.1",
        "does": "pause",
        "flow": "A->B",
        "result": "done",
        "why": "",
        "topic": "orders",
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_file_records_stand_in_the_log_and_none_that_cannot_be_written_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "level", logging.WARNING)  # as the service's --log-level
    Audit().record(ALICE, "pause", "A->B", Result.DONE)
    assert json.loads(caplog.messages[-1])["kind"] == "audit"
    folder = tmp_path / "gone"
    folder.mkdir()
    audit = Audit(str(folder / "audit.log"))
    (folder / "audit.log").unlink()
    folder.rmdir()
    assert audit.why_not() == "No such file or directory"
    audit.record(ALICE, "resume", "A->B", Result.DONE)
    assert '"does": "resume"' in caplog.messages[-1]
    with pytest.raises(ConfigError):
        Audit(str(folder / "audit.log"))

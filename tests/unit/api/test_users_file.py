"""The file of users is read again when it is another one; one that cannot be used changes nobody, and that is seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.roles import Role
from srm_spark.api.users import Users, read_users
from srm_spark.api.watching import table_watch
from tests.unit.api.boards import AB, three_flows
from tests.unit.api.logins import QUICK, login

ALICE, NEW = login("alice:a")["authorization"], login("alice:new")["authorization"]
GAUGE = "srm_service_users_file_current"


def write(path: Path, *lines: str) -> None:
    """As it is to be done: beside it, and then in its place."""
    beside = path.with_suffix(".new")
    beside.write_text("".join(f"{line}\n" for line in lines))
    beside.rename(path)


def line(name: str, password: str, roles: str = "viewer") -> str:
    return f"{name}:{QUICK.hash(password)}:{roles}"


def test_who_may_do_what_is_as_the_file_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "users"
    same = line("alice", "a")
    write(path, same, line("bob", "b"))
    users = Users(read_users(str(path)))
    watch = table_watch(str(path), read_users, users)
    asking = TestClient(make_app(three_flows().board, users), base_url="http://localhost")
    assert asking.get("/v3/flows", headers=login("bob:b")).status_code == 200
    assert users.name_of(ALICE) == "alice"
    write(path, line("alice", "new", "admin"))
    assert users.name_of(ALICE) == "alice", "before somebody looks"
    watch.look()
    assert (users.name_of(ALICE), users.name_of(NEW), users.roles("alice").of(AB)) == (None, "alice", Role.ADMIN)
    assert asking.get("/v3/flows", headers=login("bob:b")).status_code == 401, "he was remembered"
    assert f"{GAUGE} 1\n" in asking.get("/metrics", headers=login("alice:new")).text
    write(path, line("alice", "other"), "eve:plain", line("mallory", "m", "root"))
    watch.look()
    watch.look()
    assert users.name_of(NEW) == "alice", "a broken file changes nobody"
    assert f"{GAUGE} 0\n" in asking.get("/metrics", headers=login("alice:new")).text
    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert f"{path}:2" in told
    assert "roles of mallory" in told
    assert "$argon2" not in told
    path.unlink()
    watch.look()
    assert users.name_of(NEW) == "alice"
    write(path, same)
    watch.look()
    assert (users.name_of(ALICE), users.name_of(NEW), users.is_current) == ("alice", None, True)


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "users"
    write(path, line("alice", "a", "viewer"))
    users = Users(read_users(str(path)))
    watch, before = table_watch(str(path), read_users, users), path.stat()
    beside = tmp_path / "beside"
    beside.write_text(path.read_text().replace("alice:", "carol:"))
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.rename(path)
    watch.look()
    assert users.name_of(ALICE) is None


def test_a_login_that_others_have_is_remembered_over_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "users"
    same = line("alice", "a")
    write(path, same)
    users = Users(read_users(str(path)))
    watch = table_watch(str(path), read_users, users)
    assert users.name_of(ALICE) == "alice"
    write(path, same, line("bob", "b"))
    watch.look()
    monkeypatch.setattr(Users, "is_right", lambda *_: pytest.fail("hashed again"))
    assert users.name_of(ALICE) == "alice"

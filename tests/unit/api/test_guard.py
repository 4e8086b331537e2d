"""Who may ask, how large a request may be, and what stands in front of every answer."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.audit import Audit
from srm_spark.api.control import Control
from srm_spark.api.users import Users, UserTable, line_of, read_users
from srm_spark.errors import ConfigError
from tests.unit.api.boards import three_flows
from tests.unit.api.logins import JSON, login, users_of

PASSWORD = "correct horse: ä"


BOARD = three_flows().board


@pytest.fixture(scope="module")
def users() -> Users:
    name, _, written = line_of("alice", PASSWORD).partition(":")
    return Users(UserTable({name: written}))


def client(users: Users | None = None, *, only_local: bool = False) -> TestClient:
    app = make_app(BOARD, users, only_local=only_local)
    return TestClient(app, base_url="http://localhost")


def test_everything_but_probes_needs_a_login(users: Users) -> None:
    asking = client(users)
    for path in ("/", "/replications", "/v3/flows", "/metrics", "/openapi.json", "/docs", "/static/style.css"):
        answer = asking.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Basic ")
        assert "A->B" not in answer.text
    assert asking.get("/healthz").status_code == 200
    assert asking.get("/readyz").status_code == 200
    assert asking.get("/replications", headers=login(f"alice:{PASSWORD}")).status_code == 200
    assert asking.get("/replications", headers=login(f"alice:{PASSWORD}")).status_code == 200  # as it was remembered


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !!!",
        "Bearer abc",
        "Basic " + base64.b64encode(b"alice").decode(),
        "Basic " + base64.b64encode(b"\xff:\xff").decode(),
        "Basic " + base64.b64encode(b"alice:wrong").decode(),
        "Basic " + base64.b64encode(f"bob:{PASSWORD}".encode()).decode(),
        "Basic " + base64.b64encode(b"alice:" + b"x" * 2000).decode(),
    ],
)
def test_no_other_login_passes(users: Users, header: str) -> None:
    assert users.name_of(header) is None
    assert users.name_of(login(f"alice:{PASSWORD}")["authorization"]) == "alice"


def test_a_file_of_users(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# who may ask\n{line_of('alice', PASSWORD)}\n\n{line_of('bob', 'b')}\n")
    found = Users(read_users(str(path)))
    assert found.name_of(login("bob:b")["authorization"]) == "bob"
    secret = line_of("alice", PASSWORD)
    path.write_text(f"alice:plain\n{secret}\n{secret}\nnothing\n")
    with pytest.raises(ConfigError) as error:
        read_users(str(path))
    assert [one.location for one in error.value.problems] == [f"{path}:1", f"{path}:3", f"{path}:4"]
    assert "plain" not in str(error.value)
    assert "argon2id" not in str(error.value)
    path.write_text("\n")
    for missing in (path, tmp_path / "none"):
        with pytest.raises(ConfigError):
            read_users(str(missing))


def test_without_users_only_names_of_this_machine_are_answered() -> None:
    asking, open_to_all = client(only_local=True), client()
    for host in ("localhost", "localhost:6670", "127.0.0.1:6670", "[::1]:6670", "[::1]", "LOCALHOST"):
        assert asking.get("/healthz", headers={"host": host}).status_code == 200, host
    for host in ("evil.example", "localhost.evil.example:6670", "10.0.0.1", "[2001:db8::1]:1", ""):
        assert asking.get("/", headers={"host": host}).status_code == 421, host
        assert open_to_all.get("/", headers={"host": host}).status_code == 200, host


def test_large_requests_are_refused_before_they_are_read() -> None:
    asking = client()
    assert asking.request("GET", "/v3/flows", content=b"x" * 70_000).status_code == 413
    assert asking.request("GET", "/v3/flows", content=iter([b"x"])).status_code == 413
    assert asking.request("GET", "/v3/flows", headers={"content-length": "1e9"}).status_code == 413
    assert asking.get("/v3/flows", headers={"x": "a" * 17_000}).status_code == 431


@pytest.mark.parametrize("path", ["/", "/flows/A/B", "/replications", "/nothing", "/docs", "/static/style.css"])
def test_browsers_are_told_to_be_careful(path: str) -> None:
    headers = client().get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"].partition("script-src")[2].partition(";")[0]
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_another_site_may_have_sent_changes_nothing(method: str, tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    asking = TestClient(make_app(BOARD, control=Control(Audit(str(audit)))), base_url="http://localhost")
    sites: list[dict[str, str]] = [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "http://localhost:81"},
        {"origin": "null"},
    ]
    for headers in sites:
        for path in ("/v3/flows/A/B/pause", "/flows/A/B/pause", "/healthz"):
            answer = asking.request(method, path, headers={**JSON, **headers})
            assert (answer.status_code, answer.json()["kind"]) == (403, "another-site"), (path, headers)
    assert asking.request(method, "/v3/flows").status_code == 403  # without X-Requested-With, too
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {(one["who"], one["from"], one["result"]) for one in records} == {(None, "testclient", "refused")}
    assert len(records) == 19
    own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert asking.request(method, "/v3/flows", headers={**JSON, **own}).status_code == 405


def test_wrong_logins_are_recorded_until_no_more_of_them_are_looked_at(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    asking = TestClient(make_app(BOARD, users_of(alice=""), control=Control(Audit(str(audit)))))
    for _ in range(5):
        assert asking.get("/v3/flows", headers=login("alice:secret")).status_code == 401
    for password in ("secret", "alice"):
        answer = asking.get("/v3/flows", headers=login(f"alice:{password}"))
        assert (answer.status_code, answer.json()["kind"]) == (429, "wrong-logins")
        assert 290 < int(answer.headers["retry-after"]) <= 300
    records = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(one["who"], one["does"], one["result"]) for one in records] == [("alice", "login", "refused")] * 5
    assert "secret" not in audit.read_text()
    assert asking.get("/v3/flows").status_code == 401  # who says nothing guesses nothing
    assert asking.get("/healthz").status_code == 200

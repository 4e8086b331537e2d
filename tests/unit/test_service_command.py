"""srm-service as a command: what keeps it from starting is told in sentences, and nothing is served then."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from srm_spark.api.users import Users, UserTable
from srm_spark.cli.options import ERROR, OK, USAGE
from srm_spark.cli.service import history, run
from srm_spark.config.settings import HistorySettings

GOOD = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
A->B.topics = .*
dialect = mm2
"""


def serve(folder: Path, *arguments: str, text: str = GOOD) -> Result:
    path = folder / "srm.properties"
    path.write_text(text)
    return CliRunner().invoke(run, ["--config", str(path), *arguments])


def test_every_problem_of_the_file_at_once(tmp_path: Path) -> None:
    result = serve(tmp_path, text=GOOD + "service.listen = nowhere:0\nservice.tls.key = k.pem\noffset.lag.max = many\n")
    assert result.exit_code == ERROR
    for words in ("service.listen", "service.tls.certificate", "many"):
        assert words in result.output


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = serve(tmp_path, "-D", f"service.listen=127.0.0.1:{port}")
    assert result.exit_code == ERROR
    assert f"cannot listen on 127.0.0.1:{port}" in result.output
    assert "service.listen" in result.output


def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    result = serve(tmp_path, "-D", "service.listen=no.such.host.invalid:6670")
    assert result.exit_code == ERROR
    assert "cannot listen on no.such.host.invalid:6670" in result.output


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])
def test_other_machines_need_a_login_or_a_word(tmp_path: Path, host: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = serve(tmp_path, "-D", f"service.listen={host}:{port}")
    assert result.exit_code == ERROR
    assert "service.users.file" in result.output
    assert "service.oidc.issuer" in result.output
    assert "--allow-anonymous" in result.output


def test_what_everybody_may_do_is_for_this_machine_only(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = serve(
        tmp_path,
        *("-D", f"service.listen=0.0.0.0:{port}", "-D", "service.anonymous.role=operator", "--allow-anonymous"),
    )
    assert result.exit_code == ERROR
    assert "service.anonymous.role = operator" in result.output


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    missing = serve(tmp_path, "-D", f"service.users.file={tmp_path / 'none'}")
    assert missing.exit_code == ERROR
    assert "srm-service user" in missing.output
    oidc = ("-D", "service.oidc.issuer=https://id.example", "-D", "service.oidc.audience=kafka")
    unknown = serve(tmp_path, *oidc, "-D", f"service.oidc.roles.file={tmp_path / 'none'}")
    assert unknown.exit_code == ERROR
    assert "service.oidc.roles.file: cannot be read" in unknown.output
    unrecorded = serve(tmp_path, "-D", f"service.audit.path={tmp_path / 'none' / 'audit.log'}")
    assert unrecorded.exit_code == ERROR
    assert "service.audit.path: cannot be written" in unrecorded.output
    (tmp_path / "c.pem").write_text("no certificate")
    tls = ("-D", f"service.tls.certificate={tmp_path / 'c.pem'}", "-D", f"service.tls.key={tmp_path / 'k.pem'}")
    unusable = serve(tmp_path, *tls)
    assert unusable.exit_code == ERROR
    assert "service.tls.certificate: cannot be used" in unusable.output


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "srm_spark.api.server", raising=False)
    result = serve(tmp_path)
    assert result.exit_code == ERROR
    assert "pip install 'srm-spark[api]'" in result.output


def test_without_a_file_it_is_a_usage_error() -> None:
    assert CliRunner().invoke(run, []).exit_code == USAGE


def test_a_line_for_a_user_holds_a_hash_that_fits() -> None:
    result = CliRunner().invoke(run, ["user", "alice"], input="secret\nsecret\n")
    assert result.exit_code == 0
    name, _, written = result.stdout.strip().partition(":")
    assert name == "alice"
    assert "secret" not in result.output
    assert Users(UserTable({name: written})).name_of("Basic YWxpY2U6c2VjcmV0") == "alice"
    for bad in ("", "a:b", " a"):
        assert CliRunner().invoke(run, ["user", bad], input="x\nx\n").exit_code == USAGE


def test_a_line_for_a_user_says_what_he_may_do() -> None:
    result = CliRunner().invoke(run, ["user", "bob", "--role", "operator", "--role", "A->B=admin"], input="x\nx\n")
    assert result.stdout.strip().endswith(":operator A->B=admin")
    wrong = CliRunner().invoke(run, ["user", "bob", "--role", "root"], input="x\nx\n")
    assert wrong.exit_code == USAGE
    assert "none, viewer, operator, admin" in wrong.output


def test_history_needs_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(GOOD)
    result = CliRunner().invoke(run, ["history", "--config", str(path)])
    assert result.exit_code == ERROR
    assert "service.history.path" in result.output
    path.write_text(GOOD + "service.history.path = s3a://there\nservice.history.days = 0\n")
    result = CliRunner().invoke(run, ["history", "--config", str(path)])
    assert result.exit_code == ERROR
    for words in ("allowed the path of a folder", "service.history.days"):
        assert words in result.output


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[HistorySettings]:
    """With which settings history would be written."""
    found: list[HistorySettings] = []

    def write(_: object, history: HistorySettings, __: object) -> None:
        found.append(history)

    monkeypatch.setitem(sys.modules, "srm_spark.past.writing", SimpleNamespace(write_history=write))
    return found


def test_keys_in_front_of_history_count_and_those_behind_it_win(tmp_path: Path, written: list[HistorySettings]) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(GOOD)
    front = ["--config", str(path), "-D", f"service.history.path={tmp_path}", "-D", "service.history.days=3"]
    result = CliRunner().invoke(run, [*front, "--log-level", "WARNING", "history"])
    assert (result.exit_code, result.output) == (OK, "")
    result = CliRunner().invoke(run, [*front, "history", "-D", "service.history.days=4"])
    assert result.exit_code == OK
    assert [(one.path, one.days) for one in written] == [(str(tmp_path), 3), (str(tmp_path), 4)]
    result = CliRunner().invoke(run, [*front, "-D", "service.history.days=0", "history"])
    assert result.exit_code == ERROR
    assert "service.history.days" in result.output


def test_the_level_in_front_counts_unless_there_is_one_behind(
    tmp_path: Path, written: list[HistorySettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[str] = []
    monkeypatch.setattr("logging.basicConfig", lambda *, level, **_: levels.append(level))
    (tmp_path / "srm.properties").write_text(GOOD)
    own = ["history", "--config", str(tmp_path / "srm.properties"), "-D", f"service.history.path={tmp_path}"]
    for words in (own, ["--log-level", "ERROR", *own], ["--log-level", "ERROR", *own, "--log-level", "DEBUG"]):
        assert CliRunner().invoke(run, words).exit_code == OK
    assert CliRunner().invoke(history, own[1:]).exit_code == OK, "as spark-submit runs it"
    assert levels == ["INFO", "ERROR", "DEBUG", "INFO"]
    assert len(written) == 4


@pytest.mark.parametrize(
    ("front", "command"),
    [
        (["--allow-anonymous"], ["history"]),
        (["--log-level", "DEBUG"], ["doctor"]),
        (["-D", "service.users.file=users"], ["user", "bob"]),
        (["--allow-anonymous"], ["completion", "bash"]),
    ],
)
def test_what_does_not_count_in_front_of_a_command_is_refused(front: list[str], command: list[str]) -> None:
    result = CliRunner().invoke(run, [*front, *command], input="x\nx\n")
    assert result.exit_code == USAGE
    assert f"{command[0]} does not take {front[0]}" in result.output


def test_history_without_a_file_is_a_usage_error() -> None:
    assert CliRunner().invoke(run, ["history"]).exit_code == USAGE

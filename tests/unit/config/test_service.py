"""What a file says of srm-service."""

from __future__ import annotations

from pathlib import Path

import pytest

from srm_spark.config.settings import HistorySettings, ServiceSettings
from tests.unit.config.conftest import Loader, problems


def test_without_a_word_it_listens_on_this_machine_only(loaded: Loader) -> None:
    assert loaded("").settings.service == ServiceSettings((), "127.0.0.1", 6670)


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("0.0.0.0:80", "0.0.0.0", 80),
        ("srm.example", "srm.example", 6670),
        ("[::1]:7000", "::1", 7000),
        ("[::]", "::", 6670),
        ("localhost:65535", "localhost", 65535),
    ],
)
def test_addresses(loaded: Loader, written: str, host: str, port: int) -> None:
    found = loaded(f"service.listen = {written}").settings.service
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("written", ["", ":80", "host:0", "host:65536", "host:http", "::1", "a b:80", "host:-1"])
def test_what_is_no_address_is_told(loaded: Loader, written: str) -> None:
    (problem,) = problems(loaded(f"service.listen = {written}"))
    assert "service.listen" in problem
    assert "1 to 65535" in problem


def test_tls_has_a_port_of_its_own_and_needs_both_files(loaded: Loader) -> None:
    both = loaded("service.tls.certificate = c.pem\nservice.tls.key = k.pem").settings.service
    assert (both.port, both.certificate, both.key) == (6671, "c.pem", "k.pem")
    for one, other in (("certificate", "key"), ("key", "certificate")):
        (problem,) = problems(loaded(f"service.tls.{one} = x.pem"))
        assert f"service.tls.{other} is not" in problem
    assert len(problems(loaded("service.users.file ="))) == 1


def test_targets_are_clusters_of_the_file(loaded: Loader) -> None:
    key = "streams.replication.manager.service.target.cluster"
    assert loaded(f"{key} = B").settings.service.targets == ("B",)
    (problem,) = problems(loaded(f"{key} = B, X"))
    assert "unknown alias X" in problem


def test_who_changes_something_and_where_that_is_recorded(loaded: Loader) -> None:
    found = loaded("").settings.service
    assert (found.anonymous_role, found.audit_path, found.moves_path) == ("viewer", None, ".")
    text = "service.anonymous.role = admin\nservice.audit.path = a.log\nservice.moves.path = moves"
    found = loaded(text).settings.service
    assert (found.anonymous_role, found.audit_path, found.moves_path) == ("admin", "a.log", "moves")
    assert loaded("service.anonymous.role = Operator").settings.service.anonymous_role == "operator"
    (problem,) = problems(loaded("service.anonymous.role = root"))
    assert "viewer, operator, admin" in problem
    assert len(problems(loaded("service.audit.path =\nservice.moves.path ="))) == 2


def test_history_is_kept_where_a_folder_is_named(loaded: Loader) -> None:
    assert loaded("").settings.service.history is None
    here = str(Path("history").absolute())
    assert loaded("service.history.path = history").settings.service.history == HistorySettings(here, 30, True)
    text = "service.history.path = /h\nservice.history.days = 7\nservice.history.embedded = false"
    assert loaded(text).settings.service.history == HistorySettings("/h", 7, False)


@pytest.mark.parametrize("path", ["", "s3a://bucket/history", "file:/history", "50%20"])
def test_what_is_no_folder_is_told_with_everything_else(loaded: Loader, path: str) -> None:
    text = f"service.history.path = {path}\nservice.history.days = 0\nservice.history.embedded = maybe"
    found = problems(loaded(text))
    assert len(found) == 3
    for words in ("the path of a folder", "service.history.days", "'maybe'"):
        assert any(words in one for one in found)


def test_keys_of_history_need_its_path(loaded: Loader) -> None:
    found = problems(loaded("service.history.days = 7\nservice.history.embedded = false"))
    assert len(found) == 2
    assert all("service.history.path" in one for one in found)

"""srm-service doctor: what its own settings name, before it starts; each finding with its remedy."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from srm_spark.api.doctor import check_service, examine_service
from srm_spark.api.users import line_of
from srm_spark.cli.service import run
from srm_spark.config.settings import HistorySettings, OidcSettings, ServiceSettings
from srm_spark.core.alerting import AlertSettings
from srm_spark.doctor import Finding, Health
from tests.certificates import identity

DAY = 86_400.0
GOOD = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
A->B.topics = .*
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def found(service: ServiceSettings, *, allow_anonymous: bool = False, now: float | None = None) -> dict[str, Finding]:
    now = time.time() if now is None else now
    return {one.check: one for one in check_service(service, allow_anonymous=allow_anonymous, now=now)}


def health(service: ServiceSettings, check: str, **how: bool) -> Health:
    return found(service, **how)[check].health


def test_an_address_that_is_taken_or_too_open_is_told_with_its_remedy(port: int) -> None:
    assert health(ServiceSettings(port=port), "address") is Health.OK
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        finding = found(ServiceSettings(port=port))["address"]
    assert (finding.health, "end what listens there" in finding.remedy) == (Health.FAILED, True)
    assert health(ServiceSettings(host="no.such.host.invalid", port=port), "address") is Health.FAILED
    is_open = ServiceSettings(host="0.0.0.0", port=port)
    assert health(is_open, "address") is Health.FAILED
    assert health(is_open, "address", allow_anonymous=True) is Health.OK


def test_users_are_read_and_what_is_wrong_with_them_names_the_line(port: int, tmp_path: Path) -> None:
    path = tmp_path / "users"
    service = ServiceSettings(host="0.0.0.0", port=port, users_file=str(path))
    assert health(service, "users") is Health.FAILED
    path.write_text("alice:secret\n")
    finding = found(service)["users"]
    assert (finding.health, f"{path}:1" in finding.found) == (Health.FAILED, True)
    assert "secret" not in finding.found
    path.write_text(line_of("alice", "a password") + "\n")
    assert health(service, "users") is Health.OK
    assert health(service, "address") is Health.WARNED  # passwords, and no certificate


def test_a_provider_is_a_login_and_its_roles_are_read(port: int, tmp_path: Path) -> None:
    roles = tmp_path / "roles"
    oidc = OidcSettings("https://login.example", str(roles))
    service = ServiceSettings(host="0.0.0.0", port=port, oidc=oidc)
    assert health(service, "roles of groups") is Health.FAILED
    roles.write_text("operators = nonsense\n")
    finding = found(service)["roles of groups"]
    assert (finding.health, f"{roles}:1" in finding.found) == (Health.FAILED, True)
    roles.write_text("operators:operator\n")
    assert health(service, "roles of groups") is Health.OK
    assert health(service, "address") is Health.WARNED  # tokens, and no certificate


def test_that_everybody_is_admin_of_an_open_address_is_told(port: int) -> None:
    service = ServiceSettings(host="0.0.0.0", port=port, anonymous_role="admin")
    for allow_anonymous in (False, True):
        assert health(service, "address", allow_anonymous=allow_anonymous) is Health.FAILED
    local = ServiceSettings(port=port, anonymous_role="admin")
    assert health(local, "address") is Health.OK


def test_a_certificate_that_ends_soon_or_does_not_fit_is_told(port: int, tmp_path: Path) -> None:
    owner, other = identity("localhost"), identity("other")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_text(owner.certificate_pem)
    key.write_text(owner.key_pem)
    end = owner.certificate.not_valid_after_utc.timestamp()
    service = ServiceSettings(port=port, certificate=str(chain), key=str(key))
    ends = {days: found(service, now=end - days * DAY)["certificate"].health for days in (30, 13, -1)}
    assert ends == {30: Health.OK, 13: Health.WARNED, -1: Health.FAILED}
    key.write_text(other.key_pem)
    assert health(service, "certificate") is Health.FAILED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_somebody_else_is_told(port: int, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert health(ServiceSettings(port=port, moves_path=str(tmp_path)), "states of moves") is Health.FAILED


def test_folders_and_files_that_are_to_be_written(port: int, tmp_path: Path) -> None:
    service = ServiceSettings(
        port=port,
        moves_path=str(tmp_path),
        audit_path=str(tmp_path / "audit.log"),
        history=HistorySettings(str(tmp_path / "new" / "history"), is_embedded=False),
    )
    assert {one.health for one in found(service).values()} == {Health.OK}
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").touch()
    broken = ServiceSettings(
        port=port,
        moves_path=str(tmp_path / "nowhere"),
        audit_path=str(tmp_path),
        history=HistorySettings(str(tmp_path / "file"), is_embedded=False),
    )
    checks = {one.check: one for one in found(broken).values() if one.health is Health.FAILED}
    assert checks.keys() == {"states of moves", "record of changes", "history"}
    assert all(one.remedy for one in checks.values())


def test_history_that_the_service_writes_itself_needs_java_and_spark(port: int, tmp_path: Path) -> None:
    service = ServiceSettings(port=port, moves_path=str(tmp_path), history=HistorySettings(str(tmp_path)))
    assert {"Java", "pyspark", "driver jars", "Scala"} <= found(service).keys()


def test_the_name_of_a_webhook_is_looked_up_and_its_secrets_stay_out(port: int) -> None:
    for host, expected in (("no.such.host.invalid", Health.FAILED), ("127.0.0.1", Health.OK)):
        alerts = AlertSettings(f"https://user:geheim@{host}/hook/geheim")
        finding = found(ServiceSettings(port=port, alerts=alerts))["alerts"]
        assert finding.health is expected
        assert "geheim" not in finding.found + finding.remedy


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "srm.properties"
    path.write_text(GOOD)
    return path


def test_every_problem_of_a_file_and_nothing_else(good: Path) -> None:
    good.write_text(GOOD + "service.listen = nowhere:0\noffset.lag.max = many\n")
    findings = examine_service([good])
    failed = [one for one in findings if one.health is Health.FAILED]
    assert {one.check for one in failed} == {"configuration"}
    assert len(failed) == 2
    assert findings[-1].check == "clusters"


def test_a_target_that_does_not_answer_is_told_and_sources_are_not_asked(good: Path, port: int) -> None:
    findings = examine_service([good], {"service.listen": f"127.0.0.1:{port}"}, seconds=1.0)
    checks = {one.check: one.health for one in findings}
    assert checks["address"] is Health.OK
    assert checks["cluster B"] is Health.FAILED
    assert "cluster A" not in checks


def test_the_command_takes_its_keys_before_and_behind_its_name(good: Path) -> None:
    done = CliRunner().invoke(run, ["-D", "service.listen=x:0", "doctor", "--config", str(good), "-o", "json"])
    assert done.exit_code == 1
    assert "service.listen" in {one["health"]: one["found"] for one in json.loads(done.stdout)}["failed"]
    assert CliRunner().invoke(run, ["doctor"]).exit_code == 2

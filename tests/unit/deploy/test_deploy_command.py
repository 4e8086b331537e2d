"""`srm-control deploy`: writes all files or none, and says what there is to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from srm_spark.cli.control import main
from srm_spark.cli.options import ERROR, OK
from tests.unit.deploy.files import LOGINS, PLAIN, SECRETS

IMAGE = ("--image", "registry.example/srm-spark:1")
PLACES: dict[str, tuple[str, ...]] = {
    "kubernetes": IMAGE,
    "yarn": (),
    "spark-operator": (*IMAGE, "--operator", "apache"),
    "emr": ("--cluster-id", "j-1ABC", "--s3", "s3://bucket/srm"),
    "emr-serverless": (
        *("--application-id", "00f1abc", "--role", "arn:aws:iam::123456789012:role/srm"),
        *("--s3", "s3://bucket/srm"),
    ),
    "databricks": ("--runtime", "18.2.x-scala2.13", "--node-type", "i3.xlarge", "--volume", "/Volumes/a/b/c"),
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("srm.properties")
    path.write_text(LOGINS)
    return path


def run(platform: str, *more: str) -> Result:
    words = ["deploy", platform, "--config", "srm.properties", "--out", "out", *PLACES[platform], *more]
    return CliRunner().invoke(main, words)


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("platform", PLACES)
def test_what_was_written_and_what_is_next(platform: str) -> None:
    result = run(platform)
    assert result.exit_code == OK, result.output
    written = {str(path) for path in Path("out").rglob("*") if path.is_file()}
    said = [line.removeprefix("written: ") for line in result.stdout.splitlines() if line.startswith("written: ")]
    assert set(said) == written
    assert "trust.p12 (file): /nowhere/a/trust.p12" in result.stdout
    assert "\nnext:\n" in result.stdout
    assert "not checked, what it refers to is not on this machine: srm.properties:11:" in result.stderr
    held = "".join(Path(path).read_text() for path in written) + result.output
    assert [secret for secret in SECRETS if secret in held] == []


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("platform", PLACES)
def test_the_same_for_programs(platform: str) -> None:
    answer = json.loads(run(platform, "-o", "json").stdout)
    assert answer["platform"] == platform
    assert answer["flows"] == ["A->B"]
    assert {one["outcome"] for one in answer["files"]} == {"written"}
    assert [one["name"] for one in answer["needs"]][:2] == ["A.sasl.jaas.config", "trust.p12"]
    assert answer["steps"]


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("platform", PLACES)
def test_files_that_differ_stay_unless_it_is_forced(platform: str) -> None:
    assert run(platform).exit_code == OK
    again = run(platform)
    assert again.exit_code == OK
    assert "written:" not in again.stdout
    files = sorted(path for path in Path("out").rglob("*") if path.is_file())
    own, other = files[0], files[1]
    other.unlink()
    own.write_text("mine")
    refused = run(platform)
    assert refused.exit_code == ERROR
    assert f"{own}: is there and differs" in refused.stderr
    assert own.read_text() == "mine"
    assert not other.exists(), "all files or none"
    assert run(platform, "--force").exit_code == OK
    assert own.read_text() != "mine"


@pytest.mark.parametrize("platform", PLACES)
def test_a_file_that_cannot_be_used_is_told_with_everything_that_is_wrong(file: Path, platform: str) -> None:
    file.write_text(PLAIN.replace("a:9092", "nowhere") + "B.security.protocol = TLS\n")
    result = run(platform, "--name", "No Name")
    assert result.exit_code == ERROR
    for place in ("srm.properties:2: A.bootstrap.servers", "srm.properties:7: B.security.protocol", "--name"):
        assert place in result.stderr
    assert not Path("out").exists()


@pytest.mark.usefixtures("file")
def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "configmap.yaml").mkdir()
    result = run("kubernetes")
    assert result.exit_code == ERROR
    assert "configmap.yaml: cannot be written: Is a directory" in result.stderr

"""Where tables for SQL lie, as the configuration says it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from srm_spark import Settings, load_settings

CONFIG = (
    "clusters = A, B\nA.bootstrap.servers = {}\nB.bootstrap.servers = h:2\nA->B.enabled = true\nB->A.enabled = true\n"
    "dialect = mm2\n"
)


@pytest.fixture(autouse=True)
def no_redirection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def load(tmp_path: Path, *lines: str, servers: str = "h:1") -> Settings:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG.format(servers) + "\n".join(lines) + "\n")
    return load_settings(path)


def tables(settings: Settings) -> list[str]:
    return [flow.map_table for flow in settings.flows]


def test_by_default_it_is_a_folder_of_this_user_and_pair_of_clusters(tmp_path: Path) -> None:
    first, other = load(tmp_path), load(tmp_path, servers="h:3")
    assert tables(first) == tables(load(tmp_path))
    assert not set(tables(first)) & set(tables(other))
    assert len(set(tables(first))) == 2
    for flow in first.flows:
        assert flow.state.is_default
        folder = Path(flow.state.path)
        assert folder.parent == Path(tempfile.gettempdir())
        assert folder.name.startswith(f"srm-spark-{os.getuid()}-")


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("/data/state", "/data/state"),
        ("~/state", "{tmp}/home/state"),
        ("state", "{tmp}/state"),
        ("s3a://bucket/state", "s3a://bucket/state"),
        ("file:///data/state", "file:///data/state"),
    ],
)
def test_a_folder_is_absolute_and_a_uri_stays_as_it_is(tmp_path: Path, written: str, path: str) -> None:
    state = load(tmp_path, f"state.path = {written}").flows[0].state
    assert (state.path, state.is_default) == (path.format(tmp=tmp_path), False)


def test_each_flow_has_a_table_of_its_own(tmp_path: Path) -> None:
    settings = load(tmp_path, "state.path = /data", "B->A.state.path =", "state.interval.seconds = 5")
    assert tables(settings) == ["/data/offset-map/A/B", ""]
    assert [flow.state.interval_seconds for flow in settings.flows] == [5.0, 5.0]


def test_tables_of_a_real_time_flow_are_written_seldom(tmp_path: Path) -> None:
    settings = load(tmp_path, "A->B.mode = realtime")
    assert [flow.state.interval_seconds for flow in settings.flows] == [600.0, 60.0]
    settings = load(tmp_path, "A->B.mode = realtime", "A->B.state.interval.seconds = 30")
    assert [flow.state.interval_seconds for flow in settings.flows] == [30.0, 60.0]

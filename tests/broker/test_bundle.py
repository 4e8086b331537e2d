"""srm-spark as pip installs it: from a bundle, without a network, where there is nothing but Python and Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, assert_copied
from tests.broker.process import srm_driver
from tests.kafka_io import numbered

SRM_CONTROL = Path(sys.executable).parent / "srm-control"
NOWHERE = "http://127.0.0.1:9"

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
def test_a_bundle_is_installed_and_replicates_where_nothing_can_be_downloaded(pair: Pair, tmp_path: Path) -> None:
    bundle, home = tmp_path / "bundle", tmp_path / "home"
    home.mkdir()
    subprocess.run([str(SRM_CONTROL), "bundle", "--out", str(bundle)], cwd=tmp_path, check=True)
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = ["install", "--quiet", "--no-index", "--find-links", str(bundle), "srm-spark[compiled,jars]"]
    subprocess.run([str(python), "-m", "pip", *install], cwd=tmp_path, check=True)
    assert not (tmp_path / "venv" / "bin" / "pytest").exists(), "nothing of ours is in it"
    pair.source.create(pair.topic(), 2)
    pair.source.write(pair.topic(), numbered(20, 2))
    ours = {name: "" for name in os.environ if name.startswith(("SRM_", "NUMBA_", "PYTHON"))}
    elsewhere = {**ours, "HOME": str(home), "SRM_SPARK_MAVEN_REPO": NOWHERE, "PIP_INDEX_URL": NOWHERE}
    with srm_driver(
        tmp_path,
        pair.clusters,
        [pair.flow],
        {**pair.keys, "refresh.topics.interval.seconds": "1"},
        environment=elsewhere,
        command=python.parent / "srm-driver",
    ):
        assert_copied(pair.source, pair.topic(), pair.target, pair.remote(), timeout=2 * SOON)
    print(f"{time.monotonic() - began:.0f} s from an empty environment to the first copies")
    assert not list(home.rglob("*.jar"))

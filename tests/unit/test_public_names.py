"""`from srm_spark import …`: what notebooks use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import srm_spark
from srm_spark import load_settings

CONFIG = "clusters = A, B\nA.bootstrap.servers = h:1\nB.bootstrap.servers = h:2\nA->B.enabled = true\ndialect = mm2\n"
CHEAP = """
import sys
import srm_spark
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"pyspark", "confluent_kafka", "pandas", "pyarrow", "pydantic"}, loaded
from srm_spark import Driver
assert Driver.__module__ == "srm_spark.driver"
"""


def test_importing_the_package_loads_no_library() -> None:
    done = subprocess.run([sys.executable, "-c", CHEAP], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_every_public_name_is_there() -> None:
    for name in srm_spark.__all__:
        assert getattr(srm_spark, name) is not None
    assert set(srm_spark.__all__) <= set(dir(srm_spark))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        srm_spark.nothing  # noqa: B018


def test_one_file_needs_no_list(tmp_path: Path) -> None:
    path = tmp_path / "srm.properties"
    path.write_text(CONFIG)
    assert load_settings(str(path)) == load_settings(path) == load_settings([path]) == load_settings([str(path)])

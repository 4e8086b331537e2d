"""What Spark's daemon of Python workers loads, and from where."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from srm_spark.python_workers import FOR_ALL, installed_first


def test_installed_packages_go_before_sparks_zip_files() -> None:
    assert installed_first(["/spark/lib/pyspark.zip", "/spark/lib/py4j-0.10.9.9-src.zip", *sys.path]) == sys.path


def test_without_an_installed_one_the_zip_files_stay(tmp_path: Path) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("pyspark/__init__.py", "")
    assert installed_first([str(archive), str(tmp_path)]) == [str(archive), str(tmp_path)]


@pytest.mark.parametrize(("version", "stays"), [(distribution("pyspark").version, False), ("3.5.1", True)])
def test_the_zip_file_of_another_spark_stays(tmp_path: Path, version: str, stays: bool) -> None:
    """As where SPARK_HOME names one, and pip has installed the newest pyspark beside this package."""
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("pyspark/version.py", f'__version__: str = "{version}"\n')
    assert installed_first([str(archive), *sys.path]) == ([str(archive)] if stays else []) + sys.path


def test_what_is_loaded_for_all_workers_starts_no_thread() -> None:
    code = f"import os\nfor name in {FOR_ALL}: __import__(name)\nprint(len(os.listdir('/proc/self/task')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "1\n"

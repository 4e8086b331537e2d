"""`make matrix`: tests of each kind under each Spark that there are jars for, each with a Python of its own.

Every pair gets an environment of its own below the cache, made once. What was found is kept beside the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import click

from srm_spark.jars.cache import cache_dir
from srm_spark.jars.manifest import DRIVERS
from tests.matrix.areas import AREAS, FEW, PAIRS, Pair
from tests.matrix.page import PAGE, keep

ROOT = Path(__file__).resolve().parents[2]
_LOCK = ROOT / "requirements-dev.lock"
_OF_SPARK = re.compile(r"(pyspark|py4j)\b")
"""What the lock does not decide here."""

_OF_OLD_SPARKS = ("distutils Version classes are deprecated:DeprecationWarning",)
"""What our tests would take for an error."""


@click.command()
@click.option("--spark", "chosen", multiple=True, type=click.Choice([*DRIVERS]), help="Of these lines alone.")
@click.option("--few", is_flag=True, help="Of the areas only the most important ones.")
@click.option("--page", is_flag=True, help=f"Bring {PAGE} up to date.")
@click.argument("arguments", nargs=-1)
def main(*, chosen: Sequence[str], few: bool, page: bool, arguments: Sequence[str]) -> None:
    """Run tests under each Spark; ARGUMENTS go to pytest."""
    failed = []
    for pair in PAIRS:
        if not chosen or pair.spark in chosen:
            if (base := python_of(pair)) is None:
                failed.append(f"{pair.spark}: there is no python{pair.python} on the PATH")
                continue
            python = environment(pair, base)
            found = run(python, FEW if few else tuple(AREAS), arguments)
            click.echo(f"Spark {pair.spark}: {json.dumps(found, indent=2)}")
            failed += [f"{pair.spark}: {area}" for area, results in found.items() if not is_good(results)]
            if page:
                keep(pair, {"ran": ran(python), "areas": found})
    if failed:
        raise click.ClickException("; ".join(failed))


def python_of(pair: Pair) -> str | None:
    """Its Python: this one, or one on the PATH; None where there is none."""
    if pair.python == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    command = f"python{pair.python}"
    try:
        done = subprocess.run([command, "-c", "import venv"], capture_output=True, check=False)
    except OSError:
        return None
    return None if done.returncode else command


def environment(pair: Pair, base: str) -> Path:
    """The Python of an environment with this Spark, made of `base` where it is not there. Raises where it cannot be."""
    folder = cache_dir() / "matrix" / f"spark-{pair.spark}-python-{pair.python}"
    python, done = folder / "bin" / "python", folder / ".installed"
    wanted = f"{_LOCK.read_text()}{(ROOT / 'pyproject.toml').read_text()}"
    if done.is_file() and done.read_text() == wanted:
        return python
    click.echo(f"Spark {pair.spark}: making {folder} (pyspark alone is 450 MB)", err=True)
    subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(line for line in _LOCK.read_text().splitlines() if not _OF_SPARK.match(line)))
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--upgrade", "pip>=25.1", "setuptools", "wheel"], check=True)
    rest = ["--constraint", str(constraints), "--editable", str(ROOT), "--group", f"{ROOT / 'pyproject.toml'}:dev"]
    subprocess.run([*pip, *rest], check=True, cwd=ROOT)
    # By itself: extras of Spark 3.5 want numpy 1, and pip would take none or an old one.
    subprocess.run([*pip, f"pyspark=={pair.spark}.*"], check=True)
    done.write_text(wanted)
    return python


def run(python: Path, areas: Iterable[str], arguments: Sequence[str] = ()) -> dict[str, dict[str, int]]:
    """Area → how its tests ended: `passed`, `failed`, `skipped`."""
    files = {file: area for area in areas for file in AREAS[area]}
    report = python.parent.parent / "report.xml"
    report.unlink(missing_ok=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:randomly", f"--junitxml={report}"]
    command += [*(word for warning in _OF_OLD_SPARKS for word in ("-W", f"ignore:{warning}")), *arguments, *files]
    # The test's own Spark is the one of the environment, whatever is installed beside it.
    clean = {key: value for key, value in os.environ.items() if key not in {"SPARK_HOME", "PYSPARK_PYTHON"}}
    subprocess.run(command, cwd=ROOT, env=clean, check=False)
    return results(report, files)


def results(report: Path, files: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """What a JUnit report says, by area; an area without a result has none. Nothing where there is no report."""
    found = {area: Counter[str]() for area in files.values()}
    cases = ET.parse(report).iter("testcase") if report.is_file() else iter(())
    for case in cases:
        module = case.get("classname", "").replace(".", "/")
        # A class of tests stands behind its module.
        area = next((area for file, area in files.items() if f"{module}/".startswith(f"{file[:-3]}/")), None)
        if area is not None:
            found[area][_end(case)] += 1
    return {area: dict(counts) for area, counts in found.items()}


def _end(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def is_good(found: Mapping[str, int]) -> bool:
    """Whether something ran, and nothing failed."""
    return bool(found.get("passed")) and not found.get("failed")


def ran(python: Path) -> dict[str, str]:
    """What the environment is made of."""
    code = (
        "import platform, pyspark, pyarrow as a; print(pyspark.__version__, platform.python_version(), a.__version__)"
    )
    told = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout
    spark, own, arrow = told.split()
    return {"spark": spark, "python": own, "pyarrow": arrow, "at": datetime.now(timezone.utc).date().isoformat()}


if __name__ == "__main__":
    sys.exit(main())

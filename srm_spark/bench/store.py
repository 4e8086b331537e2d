"""Where figures are kept: JSON beside the page, brought up to date part by part."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from srm_spark import __version__
from srm_spark.bench.figures import merged
from srm_spark.bench.page import render
from srm_spark.bench.plots import draw
from srm_spark.bench.workloads import BY_NAME
from srm_spark.jars import JAR_SETS, find_java
from srm_spark.kafka.access import librdkafka_version

PAGE = Path("docs/benchmarks.md")


def kept(page: Path) -> dict[str, Any]:
    """What is known; nothing where there is no page yet."""
    path = page.with_suffix(".json")
    return json.loads(path.read_text()) if path.exists() else {}


def keep(page: Path, figures: Mapping[str, Any]) -> None:
    """Bring JSON, plots and page up to date with what was found."""
    known = merged(kept(page), figures)
    if "workloads" in known:
        known["workloads"] = in_order(known["workloads"])
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(json.dumps(known, indent=2) + "\n")
    page.write_text(render(known, draw(known, page.with_suffix(""))))


def in_order(workloads: Mapping[str, Any]) -> dict[str, Any]:
    """In the page's order, whenever they were measured; what is no workload any more comes last."""
    places = {name: place for place, name in enumerate(BY_NAME)}
    return {name: workloads[name] for name in sorted(workloads, key=lambda name: places.get(name, len(places)))}


def machine() -> dict[str, str]:
    """What was measured on, and with which versions."""
    replicator = next(jar for jar in JAR_SETS["kafka"].dependencies if jar.artifact == "connect-mirror")
    return {
        "cores": f"{psutil.cpu_count()}",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Kafka and MirrorMaker 2": replicator.version,
        "Spark": version("pyspark"),
        "Java": f"{find_java().version}",
        "librdkafka": librdkafka_version(),
        "Python": platform.python_version(),
        "srm-spark": __version__,
    }

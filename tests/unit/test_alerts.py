"""Alert rules and the dashboard: their expressions are Prometheus', and ask only for what is shown."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from srm_spark.api import health
from srm_spark.export import names

CONF = Path(__file__).parents[2] / "conf"
RULES = CONF / "prometheus" / "srm-spark.rules.yml"
CASES = Path(__file__).parent / "prometheus" / "rules.test.yml"
DASHBOARD = json.loads((CONF / "grafana" / "srm-spark.json").read_text())
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool on this machine")


def _panel_expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "5m").replace("$flow", ".*")


def _promtool(*arguments: str) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def shown_names() -> set[str]:
    """All that a driver or the service shows by our names."""
    of_drivers = {
        metric.name + ending
        for metric in (*names.OURS, *names.OF_PARTITIONS)
        for ending in (("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",))
    }
    of_service = set(re.findall(r'"(srm_[a-z_]+)"', Path(health.__file__).read_text()))
    return of_drivers | of_service


@pytest.mark.parametrize("expression", [*(rule["expr"] for rule in ALERTS), *_panel_expressions()])
def test_nothing_is_asked_for_that_nobody_shows(expression: str) -> None:
    asked = set(re.findall(r"\bsrm_[a-z_]+", expression))
    assert asked
    assert asked <= shown_names()


def test_every_alert_is_tried_says_what_to_do_and_how_bad_it_is() -> None:
    tried = CASES.read_text()
    for rule in ALERTS:
        assert tried.count(rule["alert"]) >= 2, "silent where all is well, and firing where it is not"
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}


@needs_promtool
def test_alerts_fire_when_they_are_due_and_only_then() -> None:
    assert _promtool("check", "rules", str(RULES)).startswith("0\n")
    assert _promtool("test", "rules", str(CASES)).startswith("0\n")


@needs_promtool
def test_the_dashboard_asks_what_prometheus_understands(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": one} for number, one in enumerate(_panel_expressions())]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert _promtool("check", "rules", str(path)).startswith("0\n")

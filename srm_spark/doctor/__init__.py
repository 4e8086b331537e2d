"""`examine`: everything that a driver needs, checked one by one; a check that fails stops no other.

`machine.py` looks at this machine, `clusters.py` and `permissions.py` at what the configuration names. Nothing is
written anywhere, and each cluster has ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from srm_spark.config.load import load
from srm_spark.core.wording import count
from srm_spark.doctor.clusters import CLUSTER_SECONDS, check_clusters
from srm_spark.doctor.machine import check_machine
from srm_spark.doctor.report import Finding, Health, failed, ok, unknown, warned
from srm_spark.errors import SrmError

__all__ = ["Finding", "Health", "examine"]


def examine(
    configs: Sequence[Path],
    overrides: Mapping[str, str] = {},
    flows: Sequence[str] = (),
    seconds: float = CLUSTER_SECONDS,
) -> list[Finding]:
    """All findings, in the order in which they should be mended; without a configuration those of this machine."""
    findings = check_machine()
    if not configs:
        return [*findings, unknown("configuration", "not checked: none was given", "srm-driver doctor --config FILE")]
    try:
        loaded = load(configs, overrides, flows)
    except SrmError as error:
        return [*findings, failed("configuration", str(error), "correct the line that it names"), _skipped()]
    problems = loaded.report.problems
    for problem in problems:
        findings.append(failed("configuration", str(problem), problem.hint or f"correct {problem.key}"))
    if problems:
        return [*findings, _skipped()]
    names = ", ".join(str(flow.flow) for flow in loaded.settings.flows)
    findings.append(ok("configuration", f"{count(len(loaded.settings.flows), 'flow')}: {names}"))
    findings.extend(warned("configuration", str(warning)) for warning in loaded.report.warnings)
    try:
        return findings + check_clusters(loaded.settings, seconds)
    except SrmError as error:
        return [*findings, failed("clusters", str(error), "correct the setting that it names")]


def _skipped() -> Finding:
    return unknown("clusters", "not checked: the configuration has to be right first")

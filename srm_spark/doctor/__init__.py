"""`examine`: everything that a driver needs, checked one by one; a check that fails stops no other.

`machine.py` looks at this machine, `clusters.py` and `permissions.py` at what the configuration names. Nothing is
written anywhere, and each cluster has ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from srm_spark.config.load import Loaded, load
from srm_spark.config.settings import Settings
from srm_spark.core.wording import count
from srm_spark.doctor.clusters import CLUSTER_SECONDS, check_clusters
from srm_spark.doctor.machine import check_machine
from srm_spark.doctor.report import Finding, Health, failed, ok, unknown, warned
from srm_spark.errors import SigningFailed, SrmError
from srm_spark.statements import key_id, seal_of

__all__ = ["Finding", "Health", "examine", "read_configuration"]


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
    loaded, found = read_configuration(lambda: load(configs, overrides, flows))
    findings += found
    if loaded is None:
        return findings
    try:
        return findings + check_clusters(loaded.settings, seconds)
    except SrmError as error:
        return [*findings, failed("clusters", str(error), "correct the setting that it names")]


def read_configuration(read: Callable[[], Loaded]) -> tuple[Loaded | None, list[Finding]]:
    """What is in the files, None where it cannot be used; and what is to be said of them."""
    try:
        loaded = read()
    except SrmError as error:
        return None, [failed("configuration", str(error), "correct the line that it names"), _skipped()]
    problems = loaded.report.problems
    if problems:
        found = [failed("configuration", str(one), one.hint or f"correct {one.key}") for one in problems]
        return None, [*found, _skipped()]
    names = ", ".join(str(flow.flow) for flow in loaded.settings.flows)
    flows = ok("configuration", f"{count(len(loaded.settings.flows), 'flow')}: {names}")
    warnings = [warned("configuration", str(warning)) for warning in loaded.report.warnings]
    return loaded, [flows, *warnings, *_statements(loaded.settings)]


def _statements(settings: Settings) -> list[Finding]:
    """Whether the key is there that signs them; flows run without it, and moves do not begin."""
    try:
        seal = seal_of(settings)
    except SigningFailed as error:
        return [
            warned("statements", str(error), "moves and srm-control verify --statement need it: mend statement.key")
        ]
    return [] if seal is None else [ok("statements", f"signed by key {key_id(seal.key.public)}")]


def _skipped() -> Finding:
    return unknown("clusters", "not checked: the configuration has to be right first")

"""Whether a quick run of the benchmark shows that srm-spark has become slower beside MirrorMaker 2.

Ratios are compared, not figures: the machine of today need not be that of yesterday.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from srm_spark.bench.contenders import OURS, THEIRS

NOISE = 0.3
"""By so much the ratios of two quick runs of the same code may differ; on two shared cores they do."""
_RATE, _CPU = "steady_rate", "steady_cpu"
Ratios = Mapping[str, Mapping[str, float]]
"""Workload → figure → ours divided by theirs."""


def ratios(workloads: Mapping[str, Any]) -> Ratios:
    """Of medians: records per second, and CPU per record, of the second half: so few records are half start-up."""
    compared = {name: workload["contenders"] for name, workload in workloads.items()}
    return {
        name: {figure: one[OURS][figure]["median"] / one[THEIRS][figure]["median"] for figure in (_RATE, _CPU)}
        for name, one in compared.items()
    }


def regressions(now: Ratios, before: Ratios) -> Iterator[str]:
    """What is worse than `before` by more than noise; a workload that was not measured before is named, too."""
    for workload, one in now.items():
        known = before.get(workload)
        if known is None:
            yield f"{workload}: there is no earlier figure to compare with"
            continue
        if one[_RATE] < known[_RATE] * (1 - NOISE):
            yield f"{workload}: {one[_RATE]:.2f} times the records per second of {THEIRS}, before {known[_RATE]:.2f}"
        if one[_CPU] > known[_CPU] * (1 + NOISE):
            yield f"{workload}: {one[_CPU]:.2f} times the CPU per record of {THEIRS}, before {known[_CPU]:.2f}"

"""What a quick run of the benchmark is compared with."""

from __future__ import annotations

from srm_spark.bench.regression import ratios, regressions


def figures(rate: float, cpu: float) -> dict[str, dict[str, float]]:
    return {"backlog_rate": {"median": rate}, "backlog_cpu": {"median": cpu}}


def test_ratios_are_ours_divided_by_theirs() -> None:
    workloads = {"100 B": {"srm-spark": figures(300, 3), "MirrorMaker 2": figures(200, 6)}}
    assert ratios(workloads) == {"100 B": {"backlog_rate": 1.5, "backlog_cpu": 0.5}}


def test_only_what_is_worse_beyond_noise_is_named() -> None:
    before = {name: {"backlog_rate": 2.0, "backlog_cpu": 0.5} for name in ("same", "slow", "dear")}
    now = {
        "same": {"backlog_rate": 1.5, "backlog_cpu": 0.6},
        "slow": {"backlog_rate": 1.3, "backlog_cpu": 0.3},
        "dear": {"backlog_rate": 3.0, "backlog_cpu": 0.7},
        "new": {"backlog_rate": 1.0, "backlog_cpu": 1.0},
    }
    assert list(regressions(now, before)) == [
        "slow: 1.30 times the records per second of MirrorMaker 2, before 2.00",
        "dear: 0.70 times the CPU per record of MirrorMaker 2, before 0.50",
        "new: there is no earlier figure to compare with",
    ]

"""How the records of a run of ours travelled, as its progress on the target says."""

from __future__ import annotations

from dataclasses import dataclass

from srm_spark.bench.contenders import Job
from srm_spark.config import load_settings
from srm_spark.flow.clusters import connect
from srm_spark.flow.topics.progress import ProgressTopic, Totals


@dataclass(frozen=True)
class Ways:
    """Shares of all records, from 0 to 1."""

    whole: float
    """In the batches that they came in."""
    merged: float
    """In batches that were packed anew from others."""
    single: float
    """Taken out of their batches one by one."""


def ways_of(job: Job) -> Ways:
    """Of a run that has ended."""
    (flow,) = load_settings([job.config({})]).flows
    progress = ProgressTopic(flow, connect(flow).target)
    progress.refresh()
    totals = progress.take_totals()
    progress.close()
    return shares(totals)


def shares(totals: Totals) -> Ways:
    """Of what progress says; all of nothing went one by one."""
    records = max(1, totals.records)
    single = records - totals.whole - totals.merged  # in whole numbers: a share of nothing is 0
    return Ways(totals.whole / records, totals.merged / records, single / records)

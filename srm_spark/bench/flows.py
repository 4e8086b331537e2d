"""What one more flow costs: several in one driver, between the same two brokers under as many aliases."""

from __future__ import annotations

import time
from dataclasses import dataclass

from srm_spark.bench.bed import ALIAS
from srm_spark.bench.contenders import srm_spark
from srm_spark.bench.idle import Load, cores, laid_out
from srm_spark.bench.processes import memory_mib

_LOAD = Load(topics=1, partitions=10)


@dataclass(frozen=True)
class Flows:
    """A driver of several flows, each of one topic of 10 partitions."""

    first_seconds: float
    """From its start until one record of each partition of each flow was copied."""
    again_seconds: float
    """Until one more of each was."""
    cores: float
    """While there is nothing to copy."""
    memory_mib: float
    """Resident, while there is nothing to copy."""


def measure_flows(flows: int, warm_up: float, seconds: float) -> Flows:
    """One driver with so many flows into one target. Raises SrmError when one of them stands."""
    aliases = [ALIAS, *(f"{ALIAS}{number}" for number in range(1, flows))]
    with laid_out(_LOAD) as (bed, job, names):
        more = {"clusters": ", ".join([*aliases, "target"])}
        for alias in aliases[1:]:
            more |= {f"{alias}.bootstrap.servers": job.source, f"{alias}->target.enabled": "true"}
            more |= {f"{alias}->target.topics": job.topic, f"target->{alias}.enabled": "false"}
        with srm_spark(job, more) as pid:
            first = bed.await_copied(names, _LOAD.partitions, aliases=aliases)
            bed.write(names, _LOAD.partitions)
            again = bed.await_copied(names, _LOAD.partitions, records=2, aliases=aliases)
            time.sleep(warm_up)
            return Flows(first, again, cores(pid, seconds), memory_mib(pid))

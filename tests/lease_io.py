"""Leases as they stand in their log on a target."""

from __future__ import annotations

from contextlib import closing

from srm_spark.core.leases import Act, LeaseRecord, Standing
from srm_spark.kafka.lease_log import LeaseLog
from tests.kafka_io import TIMEOUT, Kafka


def standing(target: Kafka, flow: str) -> Standing:
    """Whose a flow is."""
    return standing_in(target, f"mm2-leases.{flow.partition('->')[0]}.internal", f"srm-{flow}")


def standing_in(target: Kafka, topic: str, lease: str) -> Standing:
    """The same of any lease of any topic."""
    with closing(LeaseLog({"bootstrap.servers": target.bootstrap_servers}, topic, lease)) as log:
        return log.caught_up(TIMEOUT)


def leave_note(target: Kafka, topic: str, lease: str, note: str) -> None:
    """As the next owner of that lease."""
    term = standing_in(target, topic, lease).term + 1
    with closing(LeaseLog({"bootstrap.servers": target.bootstrap_servers}, topic, lease)) as log:
        log.append(LeaseRecord(Act.HELD, term, f"holder {term}", "test", note=note))
        log.flush(TIMEOUT)
    assert standing_in(target, topic, lease).note == note

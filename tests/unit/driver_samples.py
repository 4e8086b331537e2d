"""The word of a driver that runs a flow, with something in each field that tests look at."""

from __future__ import annotations

from srm_spark.core.acts import Scope
from srm_spark.core.driver_status import DriverId, DriverStatus, FlowState, GroupsSummary
from srm_spark.core.standstills import Standstill
from srm_spark.failure import FailureKind

AT = 1_700_000_005_000
ME = DriverId("host-1", 4711, 1_700_000_000_000)
HELD = Standstill(Scope("t", 1), "held at offset 0: no", FailureKind.TOO_LARGE)
OWNER = DriverStatus(
    ME,
    AT,
    5.0,
    FlowState.RUNNING,
    since=AT - 2000,
    topics=1,
    partitions=2,
    realtime=1,
    records=5,
    bytes=200,
    records_per_second=1234.5,
    bytes_per_second=30.0,
    latency_ms=40,
    lag_records=12_000,
    standing=(HELD,),
    groups=GroupsSummary(3, 2, {"g": "t-0: not synced: the group has members on the target"}),
    last_error="B did not answer",
    last_error_at=AT - 60_000,
)

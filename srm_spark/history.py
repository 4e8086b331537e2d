"""What a driver's flows did over time, for notebooks: samples of their status as a pandas DataFrame.

Only who asks for a DataFrame needs pandas. A sample is one flow at one moment. Unknown is NaN, never 0.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from srm_spark.errors import SetupError
from srm_spark.flow.status import FlowStatus

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("time", "flow", "state", "records", "rate", "lag", "latency", "held", "reason")
_MOST_SAMPLES = 100_000
"""A day of one flow at a sample a second; older samples go."""


class HasStatus(Protocol):
    """A driver, as far as this module is concerned."""

    def status(self) -> tuple[FlowStatus, ...]:
        """A snapshot of every flow."""


@dataclass(frozen=True)
class _Sample:
    time: datetime
    status: FlowStatus


class History:
    """Looks at the status every `seconds` while it is open; `sample` looks once.

    In a thread of its own and not by the driver's clock: it is a notebook's, and shows a driver that hangs as well.
    """

    def __init__(self, driver: HasStatus, seconds: float = 1.0) -> None:
        self._driver = driver
        self._seconds = seconds
        self._samples: deque[_Sample] = deque(maxlen=_MOST_SAMPLES)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> History:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to look."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="srm history", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look once more and end; the samples stay."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def sample(self) -> None:
        """Add what the flows say now."""
        now = datetime.now(timezone.utc)
        self._samples.extend(_Sample(now, status) for status in self._driver.status())

    def frame(self) -> pd.DataFrame:
        """A row per flow and sample.

        `records` since the driver started, `rate` in records/s since the flow's sample before, `lag` in records,
        `latency` in ms, `held` how many partitions stand still.
        """
        table = _pandas().DataFrame([_row(sample) for sample in list(self._samples)], columns=list(COLUMNS))
        flows = table.groupby("flow", sort=False)
        seconds = flows["time"].diff().dt.total_seconds() if len(table) else table["rate"]
        table["rate"] = flows["records"].diff() / seconds.where(seconds > 0)
        return table.astype({"lag": "float64", "latency": "float64", "rate": "float64"})

    def table(self) -> pd.DataFrame:
        """How each flow stands by its newest sample; its index is the flow."""
        return self.frame().groupby("flow", sort=False).tail(1).set_index("flow")

    def _run(self) -> None:
        self.sample()
        while not self._stop.wait(self._seconds):
            self.sample()
        self.sample()


def _pandas() -> Any:
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise SetupError("a history is shown by pandas, which is missing here: pip install 'pandas>=2.2,<3'") from error
    return pd


def _row(sample: _Sample) -> dict[str, object]:
    status = sample.status
    return {
        "time": sample.time,
        "flow": str(status.flow),
        "state": status.state.value,
        "records": status.records,
        "lag": status.lag_records,
        "latency": status.latency_ms,
        "held": len(status.held),
        "reason": status.reason or "",
    }

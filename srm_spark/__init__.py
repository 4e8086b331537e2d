"""Kafka cluster replication on Spark.

```
from srm_spark import Driver, History, load_settings, session

spark = session()  # or the one that is there already
with Driver(load_settings("conf.properties"), session=spark) as driver, History(driver) as history:
    ...
    history.frame()
```

The names load when they are asked for: executors import this package without Spark's driver side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srm_spark.names import named_later

if TYPE_CHECKING:
    from srm_spark.config import Settings, load_settings
    from srm_spark.driver import Driver
    from srm_spark.errors import SrmError
    from srm_spark.flow.status import FlowState, FlowStatus
    from srm_spark.history import History
    from srm_spark.spark.session import session
    from srm_spark.state import read_losses, read_offset_map

__version__ = "0.1.0"
__all__ = [
    "Driver",
    "FlowState",
    "FlowStatus",
    "History",
    "Settings",
    "SrmError",
    "__version__",
    "load_settings",
    "read_losses",
    "read_offset_map",
    "session",
]

_HOMES = {
    "Driver": "srm_spark.driver",
    "FlowState": "srm_spark.flow.status",
    "FlowStatus": "srm_spark.flow.status",
    "History": "srm_spark.history",
    "Settings": "srm_spark.config",
    "SrmError": "srm_spark.errors",
    "load_settings": "srm_spark.config",
    "read_losses": "srm_spark.state",
    "read_offset_map": "srm_spark.state",
    "session": "srm_spark.spark.session",
}

__getattr__ = named_later(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""What a driver says before it starts: which program, which flows between which clusters, where to look from now on."""

from __future__ import annotations

from collections.abc import Iterator

from srm_spark.cli.options import PROGRAM
from srm_spark.config.settings import Settings
from srm_spark.core.wording import count


def first_lines(settings: Settings, progress_seconds: float) -> Iterator[str]:
    """One line for the program, one per cluster of an enabled flow, one for the status."""
    names = ", ".join(str(flow.flow) for flow in settings.flows)
    yield f"{PROGRAM}: {count(len(settings.flows), 'flow')}: {names}"
    for alias in dict.fromkeys(alias for flow in settings.flows for alias in (flow.flow.source, flow.flow.target)):
        yield f"cluster {alias}: {settings.clusters[alias].bootstrap_servers}"
    here = (
        f"a line per flow every {progress_seconds:g} s" if progress_seconds > 0 else "changes only (--log-progress 0)"
    )
    yield f"status: {here} in this log; from any machine by srm-control status, of consumer groups by groups status"

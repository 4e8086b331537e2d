"""Reads the tables of a flow from any session: a notebook's, a job's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from srm_spark.config import Settings, load_settings
from srm_spark.config.settings import FlowSettings
from srm_spark.errors import StateFailed
from srm_spark.spark import DataFrame, SparkSession
from srm_spark.spark.session import lacks_delta
from srm_spark.state.map_table import first_line

Config = Settings | str | Path | Sequence[str | Path]


def read_offset_map(session: SparkSession, config: Config, flow: str) -> DataFrame:
    """The offset map of a flow (`A->B`) of a configuration, from the table that the running flow keeps.

    Raises StateFailed where the flow or its table is not there, or the session cannot read it.
    """
    return _read(session, config, flow, "table of its offset map", lambda settings: settings.map_table)


def read_losses(session: SparkSession, config: Config, flow: str) -> DataFrame:
    """Everything that a flow (`A->B`) of a configuration has found to be lost: a row per range, see docs/delivery.md.

    Raises StateFailed where the flow or its table is not there, or the session cannot read it.
    """
    return _read(session, config, flow, "table of losses", lambda settings: settings.loss_table)


def _read(
    session: SparkSession, config: Config, flow: str, what: str, path_of: Callable[[FlowSettings], str]
) -> DataFrame:
    settings = config if isinstance(config, Settings) else load_settings(config)
    settings_of_flow = next((each for each in settings.flows if str(each.flow) == flow), None)
    if settings_of_flow is None:
        raise StateFailed(f"flow {flow} is not enabled; enabled are: {', '.join(str(f.flow) for f in settings.flows)}")
    path = path_of(settings_of_flow)
    if not path:
        raise StateFailed(f"flow {flow} has no {what}: state.path is empty; give it a folder or a URI")
    try:
        return session.read.format("delta").load(path)
    except Exception as error:
        remedy = lacks_delta(session) or (
            f"a running flow writes it every {settings_of_flow.state.interval_seconds:g} s, on the machine it runs on; "
            "set state.path to a place that both reach"
        )
        raise StateFailed(f"flow {flow}: {path} cannot be read: {first_line(error)}; {remedy}") from error

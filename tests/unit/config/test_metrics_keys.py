"""What a file says about metrics: where they are shown, how often they are written, and what they are called."""

from __future__ import annotations

import pytest

from srm_spark.config.settings import ExportSettings, MetricNames
from tests.unit.config.conftest import Loader, problems


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [("127.0.0.1:9464", "127.0.0.1", 9464), ("[::1]:0", "::1", 0), ("0.0.0.0:65535", "0.0.0.0", 65_535)],
)
def test_a_listener_is_a_host_and_a_port(loaded: Loader, written: str, host: str, port: int) -> None:
    settings = loaded(f"driver.metrics.listener = {written}").settings
    assert settings.export == ExportSettings(host, port)


@pytest.mark.parametrize("written", ["9464", "host:", ":9464", "host:x", "host:65536", "http://host/metrics"])
def test_anything_else_is_refused_with_an_example(loaded: Loader, written: str) -> None:
    (problem,) = loaded(f"driver.metrics.listener = {written}").report.problems
    assert (problem.key, problem.hint) == ("driver.metrics.listener", "write driver.metrics.listener = 127.0.0.1:9464")


def test_without_one_nothing_is_shown_and_partitions_of_nothing_are_refused(loaded: Loader) -> None:
    assert loaded("").settings.export is None
    (problem,) = loaded("driver.metrics.partitions = true").report.problems
    assert problem.key == "driver.metrics.partitions"
    shown = loaded("driver.metrics.listener = h:1\ndriver.metrics.partitions = true").settings.export
    assert shown == ExportSettings("h", 1, has_partitions=True)


@pytest.mark.parametrize(("written", "seconds"), [("5", 5), ("3600", 3600), ("-1", None)])
def test_samples_are_written_as_often_as_the_file_says(loaded: Loader, written: str, seconds: float | None) -> None:
    (flow,) = loaded(f"metrics.period = {written}").settings.flows
    assert flow.metrics.seconds == seconds


@pytest.mark.parametrize("written", ["0", "3601", "soon"])
def test_a_period_that_is_none_is_refused_once(loaded: Loader, written: str) -> None:
    (problem,) = loaded(f"metrics.period = {written}\nB->A.enabled = true").report.problems
    assert problem.key == "metrics.period"


def test_a_period_is_30_s_and_topics_have_the_factor_of_progress_unless_the_file_says_otherwise(loaded: Loader) -> None:
    (flow,) = loaded("offset.storage.replication.factor = 2").settings.flows
    assert (flow.metrics.seconds, flow.metrics_factor) == (30, 2)
    (flow,) = loaded("offset.storage.replication.factor = 2\nmetrics.topic.replication.factor = -1").settings.flows
    assert flow.metrics_factor == -1
    (problem,) = loaded("metrics.topic.replication.factor = 0").report.problems
    assert problem.key == "metrics.topic.replication.factor"


def test_names_are_the_former_ones_the_new_ones_or_both(loaded: Loader) -> None:
    for written, names in (("legacy", {"LEGACY"}), ("new", {"NEW"}), ("legacy, NEW", {"LEGACY", "NEW"})):
        (flow,) = loaded(f"metric.names.formats = {written}").settings.flows
        assert set(flow.metrics.names) == {MetricNames[name] for name in names}
    (problem,) = loaded("metric.names.formats = old").report.problems
    assert problem.key == "metric.names.formats"
    assert problems(loaded("A->B.metric.names.formats = new")) == []

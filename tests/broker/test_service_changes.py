"""Plan and apply, other offsets and a quarantine that forgets, over HTTP, with real brokers and a driver that runs."""

from __future__ import annotations

import json
import urllib.error
from pathlib import Path
from typing import Any

import pytest

from srm_spark.driver import Driver
from tests.awaiting import await_until
from tests.broker.conftest import Pair
from tests.broker.mirror import SOON, await_lag_zero
from tests.broker.pair_io import await_committed
from tests.broker.told_service import Service, running, steering
from tests.kafka_io import Record, numbered, records

DAY, HOUR = "86400000", "3600000"


class Steered:
    """A flow whose service is asked by somebody who is admin of it."""

    def __init__(self, pair: Pair, service: Service) -> None:
        self.pair, self.service = pair, service
        self._at = f"/v3/flows/{pair.alias}/{pair.target_alias}"

    def get(self, path: str) -> Any:
        return self.service.json(f"{self._at}/{path}")

    def post(self, path: str, **body: object) -> Any:
        return self.service.post(f"{self._at}/{path}", **body)

    def confirmed(self, path: str, plan: str, **body: object) -> Any:
        """Begin a plan; a name that is not the flow's begins nothing."""
        with pytest.raises(urllib.error.HTTPError) as refused:
            self.post(path, plan=plan, confirm=self.pair.flow.lower() + "x", **body)
        assert refused.value.code == 409
        return self.post(path, plan=plan, confirm=self.pair.flow, **body)

    def steps(self) -> list[dict[str, Any]]:
        """What a plan would do now."""
        found: list[dict[str, Any]] = self.post("plan")["steps"]
        return found

    def go_on_elsewhere(self, driver: Driver, more: int, way: str, **where: object) -> dict[str, Any]:
        """Of the topic, while it is paused and has `more` records: what the plan of it says; and a driver does it."""
        await_lag_zero(driver)
        topic = self.pair.topic()
        assert self.post("pause", topic=topic)["taken_by"] is not None
        if more:
            self.pair.source.write(topic, numbered(more, prefix=way))
        plan = self.post("offsets/plan", way=way, topic=topic, **where)
        (done,) = self.confirmed("offsets", plan["id"], reason="of a test")["partitions"]
        assert (done["declined"], done["carried_out_by"] is not None) == (None, True), done
        assert self.post("resume", topic=topic)["taken_by"] is not None
        (planned,) = plan["partitions"]
        assert done["to"] == planned["to"]
        return {name: planned[name] for name in ("position", "to", "copied_again", "records_there", "left_out")}


def prepare(steered: Steered, folder: Path) -> None:
    """A target without a driver is made ready; what somebody has set there stays."""
    pair = steered.pair
    plan = steered.post("plan")
    created = {one["topic"] for one in plan["steps"] if one["does"] == "create-topic"}
    assert (created, plan["owner"]) == ({pair.remote()}, None), plan
    assert [(one["name"], one["kind"]) for one in plan["kept"]] == [(pair.remote("compacted"), "config")]
    assert pair.remote() not in pair.target.topics()
    done = steered.confirmed("apply", plan["id"])
    assert (done["is_changed"], done["refused"], len(done["done"])) == (True, [], len(plan["steps"])), done
    assert pair.target.configs(pair.remote())["retention.ms"] == DAY
    assert json.loads((folder / f"plan-{plan['id']}.report.json").read_text())["ended"] is not None
    again = steered.post("apply", plan=plan["id"], confirm=pair.flow)
    assert (again["is_changed"], again["done"]) == (False, done["done"])
    assert steered.steps() == []


def put_back(steered: Steered) -> None:
    """What was changed by hand is put back beside a driver, which looks at configs later."""
    pair = steered.pair
    pair.target.configure(pair.remote(), **{"retention.ms": HOUR})
    (step,) = await_until(steered.steps, SOON, "the change is seen")
    assert (step["does"], step["configs"]) == (
        "change-configs",
        [{"key": "retention.ms", "from": HOUR, "to": DAY}],
    )
    plan = steered.post("plan")
    assert plan["owner"] is not None
    assert steered.confirmed("apply", plan["id"])["refused"] == []
    await_until(lambda: pair.target.configs(pair.remote())["retention.ms"] == DAY, SOON, "it is as before")


def go_on_elsewhere(steered: Steered, driver: Driver) -> None:
    """Ten records, of which three are copied again; five that are left out; two that are copied twice."""
    pair = steered.pair
    assert steered.go_on_elsewhere(driver, 0, "rewind", by=3) == {
        "position": 10,
        "to": 7,
        "copied_again": 3,
        "records_there": 3,
        "left_out": 0,
    }
    await_committed(pair, 13)
    skipped = steered.go_on_elsewhere(driver, 5, "skip", to="latest")
    assert (skipped["to"], skipped["left_out"]) == (15, 5)
    pair.source.write(pair.topic(), numbered(2, prefix="last"))
    await_committed(pair, 15)
    assert steered.go_on_elsewhere(driver, 0, "set", to="15")["copied_again"] == 2
    await_committed(pair, 17)
    here, there = (records(log)[0] for log in (pair.source.read(pair.topic()), pair.target.read(pair.remote())))
    assert there == [*here[:10], *here[7:10], *here[15:], *here[15:]]
    (loss,) = steered.get("losses")["losses"]
    assert (loss["cause"], loss["source"]) == ("skipped", {"start": 10, "end": 15})


def forget(steered: Steered, driver: Driver) -> None:
    """Two records without a key, which the compacted topic refuses; the flow goes on."""
    pair = steered.pair
    await_until(lambda: steered.get("quarantine")["total"] == 2, SOON, "both are put aside")
    topic = pair.topic("compacted")
    plan = steered.post("quarantine/drop/plan", topics=[topic])
    assert [(one["source_topic"], one["offset"]) for one in plan["records"]] == [(topic, 0), (topic, 2)]
    assert steered.get("quarantine")["total"] == 2
    assert steered.confirmed("quarantine/drop", plan["id"])["records"] == plan["records"]
    assert steered.get("quarantine")["total"] == 0
    await_until(lambda: driver.status()[0].parked == {}, SOON, lambda: str(driver.status()))
    pair.source.write(topic, [Record(b"k2", b"v")])
    await_committed(pair, 2, "compacted")


@pytest.mark.slow
def test_what_srm_control_changes_is_changed_over_http(pair: Pair, tmp_path: Path) -> None:
    pair.source.create(pair.topic(), configs={"retention.ms": DAY})
    pair.source.create(pair.topic("compacted"))
    pair.target.create(pair.remote("compacted"), configs={"cleanup.policy": "compact"})
    pair.source.write(pair.topic(), numbered(10))
    pair.source.write(pair.topic("compacted"), [Record(None, b"v"), Record(b"k", b"v"), Record(None, b"v")])
    keys = {**pair.keys, "refused.record.policy": "park"}
    path, port, audit = steering(pair, keys, tmp_path)
    log = tmp_path / "service.log"
    with running(log, "--config", str(path)):
        steered = Steered(pair, Service(port))
        await_until(lambda: steered.service.get("/healthz")[0] == 200, SOON, log.read_text)
        prepare(steered, tmp_path)
        driver = pair.replicate(keys)
        await_lag_zero(driver)
        assert steered.steps() == []
        put_back(steered)
        go_on_elsewhere(steered, driver)
        forget(steered, driver)
    acts = [json.loads(line) for line in audit.read_text().splitlines()]
    done = [one["does"] for one in acts if one["result"] == "done" and one["does"] not in ("pause", "resume")]
    assert done == ["apply a plan"] * 2 + ["set offsets"] * 3 + ["forget quarantine"]
    assert [one["why"] for one in acts if one["result"] == "declined"] == ["nothing is left to do"]
    assert sum(one["result"] == "failed" for one in acts) == 6, "each was begun with a wrong name, too"
    assert "Traceback" not in log.read_text()
    assert "secret" not in log.read_text() + audit.read_text()

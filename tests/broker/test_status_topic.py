"""`srm-control status` beside real drivers: who runs a flow, who waits, who was killed, and a source that is away."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from srm_spark.cli.control import main
from srm_spark.testing import KafkaCluster, LocalKafka
from tests.awaiting import await_until
from tests.broker.mirror import SOON, await_count, write_config
from tests.broker.quick_driver import quick_driver
from tests.kafka_io import Kafka, numbered

HURRY = ("-D", "admin.timeout.ms=2000")
"""A source that is away is waited for no longer."""


def _await_status(path: Path, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def looked() -> bool:
        answer = CliRunner().invoke(main, ["status", "--config", str(path), *HURRY, "-o", "json"])
        assert answer.exit_code in (0, 3), answer.output
        (flow,) = json.loads(answer.stdout)["flows"]
        assert (answer.exit_code == 3) == (flow["source_down"] is not None), answer.output
        found.clear()
        found.update(flow)
        return is_so(found)

    await_until(looked, SOON, lambda: json.dumps(found, indent=1))
    return found


def _pids(drivers: list[dict[str, Any]]) -> list[int]:
    return [driver["pid"] for driver in drivers]


def test_who_runs_who_waits_who_is_gone(
    local_kafka: Callable[..., LocalKafka], secondary: KafkaCluster, unique: str, tmp_path: Path
) -> None:
    own, target = local_kafka("seen"), Kafka(secondary)
    clusters: dict[str, KafkaCluster] = {f"a{unique}": own, f"b{unique}": secondary}
    flows, topic, keys = [f"a{unique}->b{unique}"], f"t-{unique}", {"topics": f".*-{unique}"}
    path = write_config(tmp_path / "srm.properties", clusters, flows, keys)
    Kafka(own).create(topic, 2)
    Kafka(own).write(topic, numbered(10, 2))
    before = _await_status(path, lambda flow: flow["lag"]["records"] == 10)
    assert (before["state"], before["owner"], before["unknown_since"]) == (None, None, None)

    with quick_driver(tmp_path / "owner", clusters, flows, keys) as owner:
        await_count(target, f"a{unique}.{topic}", 10)
        runs = _await_status(path, lambda flow: flow["state"] == "running" and flow["lag"]["records"] == 0)
        assert runs["owner"]["pid"] == owner.pid
        assert runs["lag"]["seconds"] == 0
        assert runs["owner"]["lanes"] == {"realtime": 0, "micro_batch": 2}
        with quick_driver(tmp_path / "standby", clusters, flows, keys) as standby:
            _await_status(path, lambda flow: _pids(flow["standby"]) == [standby.pid])
            standby.send_signal(signal.SIGTERM)
            ended = _await_status(path, lambda flow: bool(flow["ended"]))
            assert (_pids(ended["ended"]), ended["owner"]["pid"]) == ([standby.pid], owner.pid)

        own.kill()
        away = _await_status(path, lambda flow: flow["lag"]["unknown_since"] is not None)
        assert away["state"] == "stalled"
        assert (away["lag"]["records"], away["lag"]["bytes"], away["lag"]["seconds"]) == (None, None, None)
        assert away["source_down"] is not None
        owner.kill()
        silent = _await_status(path, lambda flow: bool(flow["silent"]))
        assert (_pids(silent["silent"]), silent["owner"], silent["state"]) == ([owner.pid], None, None)
        assert silent["unknown_since"] is not None
        assert silent["lag"]["records"] is None

    table = CliRunner().invoke(main, ["status", "--config", str(path), *HURRY])
    assert table.exit_code == 3, table.output
    assert "unknown since" in table.stdout
    assert f"pid {owner.pid} is silent" in table.stdout

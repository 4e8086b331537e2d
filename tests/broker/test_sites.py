"""Two services, each beside a broker of its own: one shows the flows of both, and says what is true when the other
ends, dies and comes back."""

from __future__ import annotations

import signal
import subprocess
import time
import urllib.error
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from srm_spark.api.users import line_of
from srm_spark.core.advertised import TOPIC
from srm_spark.core.metrics import metrics_topic
from srm_spark.core.model import Flow
from srm_spark.testing import KafkaCluster
from srm_spark.testing.ports import free_ports
from tests.awaiting import await_until
from tests.broker.mirror import SOON, write_config
from tests.broker.told_service import SRM_SERVICE, Service, report
from tests.kafka_io import Kafka

PASSWORD = "secret"
"""By which `Service` logs in."""


class Scene:
    """A gateway whose own flow is `here`, and the service of another site with the flow `there`."""

    def __init__(self, here: Flow, there: Flow, clusters: Mapping[str, KafkaCluster], folder: Path) -> None:
        self.here, self.there = here, there
        self._logs = folder / "site.log", folder / "gate.log"
        port, other_port = free_ports(2)
        self.gateway, self.url = Service(port), f"http://127.0.0.1:{other_port}"
        users = folder / "users"
        users.write_text(line_of("alice", PASSWORD))
        common = {"service.users.file": str(users), "offset.storage.replication.factor": "1"}
        self._site = write_config(
            folder / "site.properties",
            {alias: clusters[alias] for alias in (there.source, there.target)},
            [str(there)],
            {**common, "service.listen": f"127.0.0.1:{other_port}", "service.advertised.host": "127.0.0.1"},
        )
        self._gate = write_config(
            folder / "gate.properties",
            clusters,
            [str(here), str(there)],
            {
                **common,
                "service.listen": f"127.0.0.1:{port}",
                "service.remote.targets": there.target,
                "service.remote.user": "alice",
                "service.remote.password": PASSWORD,
            },
        )

    def words(self) -> str:
        """What both processes have logged."""
        return "".join(log.read_text() for log in self._logs if log.exists())

    @contextmanager
    def site(self) -> Iterator[subprocess.Popen[bytes]]:
        """The other service."""
        with _running(self._site, self._logs[0]) as process:
            yield process

    @contextmanager
    def gate(self) -> Iterator[None]:
        """The gateway, which is told to stop at the end."""
        with _running(self._gate, self._logs[1]) as process:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, self.words()

    def _seen(self) -> tuple[Any, Any]:
        """The flow of the other site, and that site."""
        if self.gateway.get("/readyz")[0] != 200:
            return {}, {}
        document = self.gateway.json("/v3/flows")
        flows = {one["flow"]: one for one in document["flows"]}
        assert flows[str(self.here)]["site"] is None
        return flows.get(str(self.there), {}), document["sites"][0]

    def await_site(self, kind: str | None, status: str = "INACTIVE") -> Any:
        """The flow of the other site, as soon as that is so."""

        def as_awaited() -> Any:
            flow, site = self._seen()
            return flow if site and (site["kind"], flow.get("status")) == (kind, status) else None

        return await_until(as_awaited, SOON, lambda: f"{self._seen()} {self.words()}")


@contextmanager
def _running(path: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, which is killed at the end unless it has ended before."""
    with log.open("ab") as written:
        process = subprocess.Popen([str(SRM_SERVICE), "--config", str(path)], stdout=written, stderr=written)
        try:
            yield process
        finally:
            process.kill()
            process.wait(20)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_one_service_shows_the_flows_of_both_sites(
    primary: KafkaCluster, secondary: KafkaCluster, unique: str, tmp_path: Path
) -> None:
    here, there = Flow(f"a{unique}", f"b{unique}"), Flow(f"a{unique}", f"c{unique}")
    scene = Scene(here, there, {here.source: primary, here.target: primary, there.target: secondary}, tmp_path)
    targets = {here: Kafka(primary), there: Kafka(secondary)}
    for flow, target in targets.items():
        target.create(metrics_topic(flow))
        report(target, flow, "t", int(time.time() * 1000))
    path = f"flows/{there.source}/{there.target}"
    with scene.gate():
        flow = scene.await_site("no-advertisement")
        assert (flow["unknown_since"], flow["topics"]) == (None, None)
        with scene.site() as site:
            flow = scene.await_site(None, "ACTIVE")
            assert (flow["site"], flow["site_url"]) == (there.target, scene.url)
            assert (flow["topics"], flow["lag"]["records"]) == (1, 3)
            assert flow["figures"]["bytes_per_second"]["avg"] == 200.0
            assert TOPIC in targets[there].topics()
            assert set(scene.gateway.json("/replications")) == {str(here), str(there)}
            assert f"{scene.url}/{path}" in scene.gateway.get("/")[1]
            with pytest.raises(urllib.error.HTTPError) as refused:
                scene.gateway.post(f"/v3/{path}/pause", reason="x")
            assert refused.value.code == 409
            assert scene.url in refused.value.read().decode()
            site.send_signal(signal.SIGTERM)
            assert site.wait(30) == 0, scene.words()
        assert scene.await_site("no-advertisement")["unknown_since"] is not None
        report(targets[there], there, "t", int(time.time() * 1000))
        with scene.site() as site:
            scene.await_site(None, "ACTIVE")
            site.kill()
            site.wait(20)
            flow = scene.await_site("no-answer")
            assert (flow["topics"], scene.url in flow["why"][0]) == (None, True)
        report(targets[there], there, "t", int(time.time() * 1000))
        with scene.site():
            scene.await_site(None, "ACTIVE")
    assert "Traceback" not in scene.words()
    assert PASSWORD not in scene.words()

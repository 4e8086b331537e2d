"""A real Kafka cluster of several brokers from jars, for what one broker cannot show: leaders that change."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType

from srm_spark.testing.local_kafka import LocalKafka


class LocalCluster:
    """Brokers with the node ids 1 to `brokers`. The first is the only controller, too: kill the others.

    Topics of the brokers' own (group offsets, transactions) have a replica on each, and need two of them.
    `overrides` are for all of them, `of_each` has more by node id, which wins.
    """

    def __init__(
        self,
        name: str,
        brokers: int = 3,
        overrides: Mapping[str, str] | None = None,
        of_each: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.name = name
        common, own = {**_internal_topics(brokers), **(overrides or {})}, of_each or {}
        first = LocalKafka(f"{name}-1", overrides={**common, **own.get(1, {})})
        joining = {
            **common,
            "process.roles": "broker",
            "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            "listeners": "PLAINTEXT://127.0.0.1:{port}",
        }
        self.brokers = [first]
        for node in range(2, brokers + 1):
            settings = {**joining, "node.id": str(node), **own.get(node, {})}
            self.brokers.append(LocalKafka(f"{name}-{node}", overrides=settings, cluster_id=first.cluster_id))
        self._stack = ExitStack()

    def __enter__(self) -> LocalCluster:
        first, *others = self.brokers
        with ExitStack() as stack:
            stack.enter_context(first)
            with ThreadPoolExecutor(len(others)) as pool:
                for broker in others:
                    stack.callback(broker.close)
                list(pool.map(LocalKafka.start, others))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, so that clients find the cluster whichever of them is away."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def broker(self, node: int) -> LocalKafka:
        """The broker with this node id."""
        return self.brokers[node - 1]


def _internal_topics(brokers: int) -> dict[str, str]:
    factor, least = str(brokers), str(min(2, brokers))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": least,
    }

"""The soak itself: `python -m tests.soak.run --rounds 60 --mode exactly-once --seed 7`."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.cimpl import NewTopic

from tests.broker.map_reader import mapped_pairs
from tests.kafka_io import Kafka
from tests.soak.faults import Fault, await_progress, kinds
from tests.soak.load import Load, OffsetSets, Verdict, await_all, compare
from tests.soak.scene import FRAGILE, Scene, clusters

MODES = {
    "default": {},
    "exactly-once": {"a->b.exactly.once.support": "required"},
    "realtime": {"a->b.mode": "realtime", "tasks.max": "2"},
}
FENCED = frozenset({"default", "exactly-once"})
"""Modes in which a writer that comes back is refused."""
_STURDY = "load"
_KEYS = {"topics": f"{_STURDY}, {FRAGILE}", "flow.retry.delay.ms": "1000", "admin.timeout.ms": "30000"}
_REPLICAS = {
    _STURDY: [[2, 3, 1], [3, 1, 2], [1, 2, 3], [2, 1, 3]],
    FRAGILE: [[2, 3], [3, 2]],
}
"""Of each partition of a remote topic, the leader first; the topic of the source has as many partitions."""
_CONFIGS = {
    _STURDY: {"min.insync.replicas": "2"},
    FRAGILE: {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"},
}
_MAP = "mm2-offset-map.a.internal"
_INTERNAL = {
    "__consumer_offsets": (3, "compact"),
    "__transaction_state": (3, "compact"),
    "mm2-offsets.a.internal": (3, "compact"),
    "mm2-leases.a.internal": (1, "compact"),
    _MAP: (1, "compact"),
    "mm2-control.a.internal": (1, "compact"),
    "mm2-srm-status.a.internal": (1, "compact"),
    "srm-metrics-a.internal": (1, "delete"),
    "srm-meta.internal": (1, "compact"),
    "mm2-realtime.a.internal": (1, "delete"),
}
"""Partitions and cleanup of the topics that lie on the one broker that is never touched: with a broker away the flow
still records, so what dies and hangs is the writing of records."""


def soak(
    mode: str,
    chosen: Iterable[Fault],
    chance: random.Random,
    folder: Path,
    say: Callable[[str], None],
    *,
    master: str = "",
) -> Verdict:
    """Let faults happen one after the other under load, and compare everything when all has come to rest.

    With a `master`, drivers are started by spark-submit, on a Spark cluster of their own.
    """
    with clusters() as (source, target):
        here, there = Kafka(source.cluster), Kafka(target.cluster)
        for topic, replicas in _REPLICAS.items():
            here.create(topic, len(replicas))
            _make_topic(there, f"a.{topic}", replicas, _CONFIGS[topic])
        for topic, (count, cleanup) in _INTERNAL.items():
            _make_topic(there, topic, [[1]] * count, {"cleanup.policy": cleanup, "min.insync.replicas": "1"})
        scene = Scene(folder, {"a": source, "b": target}, {**_KEYS, **MODES[mode]}, chance, master)
        try:
            with ExitStack() as writing:
                loads = [writing.enter_context(Load(here, t, len(r))) for t, r in _REPLICAS.items()]
                scene.start_driver()
                await_progress(there, f"a.{_STURDY}")
                for number, fault in enumerate(chosen, 1):
                    time.sleep(chance.uniform(0, 3))  # at a random moment
                    begun = time.monotonic()
                    fault(scene)
                    await_progress(there, f"a.{_STURDY}", meanwhile=scene.restart_dead_driver)
                    say(f"{number} {fault.__name__}: records flow again after {time.monotonic() - begun:.0f} s")
                for load in loads:
                    load.end()
            return _judge(here, there, scene)
        finally:
            scene.end_drivers(kindly=False)


def _judge(here: Kafka, there: Kafka, scene: Scene) -> Verdict:
    found = Verdict()
    await_all(here, _STURDY, there, f"a.{_STURDY}", 240)
    _await_newest(here, FRAGILE, there, f"a.{FRAGILE}", 120)
    scene.end_drivers(kindly=True)
    for topic in _REPLICAS:
        logs = here.read(topic), there.read(f"a.{topic}", committed=True)
        found.add(compare(*logs, mapped_pairs(there, _MAP, topic), _told(there, topic)))
    return found


def _told(cluster: Kafka, topic: str) -> OffsetSets:
    """Source offsets that the flow calls lost, as anybody would read them from the topic of the offset map."""
    losses: dict[bytes | None, tuple[int, range] | None] = {}
    for stored in cluster.read(_MAP)[0]:
        key = json.loads(stored.record.key or b"[]")
        if key and key[0] == "loss" and key[1] == topic:
            losses[stored.record.key] = (key[2], range(key[5], key[6])) if stored.record.value is not None else None
    told: dict[int, set[int]] = {}
    for partition, offsets in filter(None, losses.values()):
        told.setdefault(partition, set()).update(offsets)
    return told


def _await_newest(source: Kafka, topic: str, target: Kafka, remote: str, seconds: float) -> None:
    """Wait until the newest record of each partition has arrived; some before may be lost."""
    newest = {partition: log[-1].record for partition, log in source.read(topic).items()}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = {partition: log[-1].record for partition, log in target.read(remote, committed=True).items() if log}
        if found == newest:
            return
        time.sleep(1)  # each look reads the whole topic


def _make_topic(cluster: Kafka, topic: str, replicas: Sequence[Sequence[int]], configs: dict[str, str]) -> None:
    new = NewTopic(topic, len(replicas), replica_assignment=[list(each) for each in replicas], config=configs)
    cluster.admin.create_topics([new])[topic].result(30)


def main() -> int:
    """Run for some minutes or rounds; 0 when nothing was lost untold, doubled, reordered, changed or wrongly mapped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rounds", type=int, help="so many faults, however long that takes, instead of --minutes")
    parser.add_argument("--mode", choices=MODES, default="default")
    parser.add_argument("--only", default="", help="faults whose names begin so, as in kill,refuse")
    parser.add_argument("--master", default="", help="a Spark cluster of their own, such as local-cluster[2,1,1024]")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    found = kinds(is_fenced=arguments.mode in FENCED, has_executors=bool(arguments.master))
    found = [fault for fault in found if fault.__name__.startswith(tuple(arguments.only.split(",")))]
    counts: Counter[str] = Counter()

    def chosen() -> Iterator[Fault]:
        for number in itertools.count():
            if number % len(found) == 0:
                chance.shuffle(found)
            is_over = time.monotonic() > end if arguments.rounds is None else number >= arguments.rounds
            if is_over:
                return
            fault = found[number % len(found)]
            counts[fault.__name__] += 1
            yield fault

    print(f"mode {arguments.mode}, seed {arguments.seed} {arguments.master}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="srm-soak-"))
    verdict = soak(
        arguments.mode, chosen(), chance, folder, lambda text: print(text, flush=True), master=arguments.master
    )
    kills, pairs = (sum(n for name, n in counts.items() if word in name) for word in ("kill", "_while_"))
    print(f"{counts.total()} faults, {kills} of them kills, {pairs} of them two at a time: {dict(counts)}")
    print(verdict, f"(logs of the drivers: {folder})")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

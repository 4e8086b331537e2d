"""The soak itself: `python -m tests.soak.run --minutes 30 --mode exactly-once --seed 7`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.broker.test_offset_map import mapped_pairs
from tests.kafka_io import Kafka
from tests.soak.faults import Fault, await_progress, kinds
from tests.soak.load import Load, Verdict, await_all, compare
from tests.soak.scene import Scene, brokers

PARTITIONS = 4
MODES = ("default", "exactly-once")
_TOPIC = "load"


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
    keys = {"a->b.exactly.once.support": "required"} if mode == "exactly-once" else {}
    keys |= {"topics": _TOPIC, "flow.retry.delay.ms": "1000", "admin.timeout.ms": "30000"}
    with brokers() as (source, target):
        here, there = Kafka(source.broker), Kafka(target.broker)
        here.create(_TOPIC, PARTITIONS)
        scene = Scene(folder, {"a": source, "b": target}, keys, chance, master)
        try:
            with Load(here, _TOPIC, PARTITIONS) as load:
                scene.start_driver()
                await_progress(there, f"a.{_TOPIC}")
                for fault in chosen:
                    time.sleep(chance.uniform(0, 3))  # at a random moment
                    begun = time.monotonic()
                    fault(scene)
                    await_progress(there, f"a.{_TOPIC}")
                    say(f"{fault.__name__}: records flow again after {time.monotonic() - begun:.0f} s")
                load.end()
            await_all(here, _TOPIC, there, f"a.{_TOPIC}", 120)
            scene.end_drivers(kindly=True)
            return compare(
                here.read(_TOPIC),
                there.read(f"a.{_TOPIC}", committed=True),
                mapped_pairs(there, "mm2-offset-map.a.internal"),
            )
        finally:
            scene.end_drivers(kindly=False)


def main() -> int:
    """Run for some minutes; 0 when nothing was lost, doubled, reordered, changed or wrongly mapped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--mode", choices=MODES, default="default")
    parser.add_argument("--only", default="", help="faults whose names begin so, as in kill,refuse")
    parser.add_argument("--master", default="", help="a Spark cluster of their own, such as local-cluster[2,1,1024]")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    found = kinds(is_exactly_once=arguments.mode == "exactly-once", has_executors=bool(arguments.master))
    found = [fault for fault in found if fault.__name__.startswith(tuple(arguments.only.split(",")))]
    counts: Counter[str] = Counter()

    def chosen() -> Iterable[Fault]:
        while time.monotonic() < end:
            for fault in chance.sample(found, len(found)):
                if time.monotonic() < end:
                    counts[fault.__name__] += 1
                    yield fault

    print(f"mode {arguments.mode}, seed {arguments.seed} {arguments.master}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="srm-soak-"))
    verdict = soak(
        arguments.mode, chosen(), chance, folder, lambda text: print(text, flush=True), master=arguments.master
    )
    kills = sum(count for name, count in counts.items() if name.startswith("kill"))
    print(f"{counts.total()} faults, {kills} of them kills: {dict(counts)}")
    print(verdict, f"(logs of the drivers: {folder})")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

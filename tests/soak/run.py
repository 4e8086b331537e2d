"""The soak itself: `python -m tests.soak.run --minutes 30 --mode exactly-once --seed 7`."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.broker.test_offset_map import read_map
from tests.kafka_io import Kafka
from tests.soak import faults
from tests.soak.faults import Fault, Scene, await_progress, brokers
from tests.soak.load import Load, Pairs, Verdict, await_all, compare

PARTITIONS = 4
MODES = ("default", "exactly-once")
_TOPIC = "load"


def soak(
    mode: str, chosen: Iterable[Fault], chance: random.Random, folder: Path, say: Callable[[str], None]
) -> Verdict:
    """Let faults happen one after the other under load, and compare everything when all has come to rest."""
    keys = {"a->b.exactly.once.support": "required"} if mode == "exactly-once" else {}
    keys |= {"topics": _TOPIC, "flow.retry.delay.ms": "1000", "admin.timeout.ms": "30000"}
    with brokers() as (source, target):
        here, there = Kafka(source), Kafka(target)
        here.create(_TOPIC, PARTITIONS)
        scene = Scene(folder, {"a": source, "b": target}, keys, chance)
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
            return compare(here.read(_TOPIC), there.read(f"a.{_TOPIC}", committed=True), _mapped(there))
        finally:
            scene.end_drivers(kindly=False)


def _mapped(target: Kafka) -> Pairs:
    found: Pairs = {}
    for (_, partition), parts in read_map(target, "mm2-offset-map.a.internal").items():
        pairs = found.setdefault(partition, {})
        for _, intervals in parts.values():
            pairs.update((up + n, down + n) for up, down, count in intervals for n in range(count))
    return found


def main() -> int:
    """Run for some minutes; 0 when nothing was lost, doubled, reordered, changed or wrongly mapped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--mode", choices=MODES, default="default")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    kinds = faults.EXACTLY_ONCE if arguments.mode == "exactly-once" else faults.ALWAYS

    def chosen() -> Iterable[Fault]:
        while time.monotonic() < end:
            yield from chance.sample(kinds, len(kinds))

    print(f"mode {arguments.mode}, seed {arguments.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="srm-soak-"))
    verdict = soak(arguments.mode, chosen(), chance, folder, lambda text: print(text, flush=True))
    print(verdict, f"(logs of the drivers: {folder})")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())

"""`make screenshots`: a picture of each page, for the documentation, of a service over clusters in memory.

What they show is made up and the same each time; the pages, and what is done on them, are the product's own.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from srm_spark.api.app import make_app
from srm_spark.api.roles import Role
from srm_spark.core.cluster import Committed
from srm_spark.core.driver_status import FlowState
from srm_spark.core.metrics import FlowSample, GroupSample, Histogram, PartitionSample, TopicMeta
from srm_spark.core.model import Flow, TopicPartition
from srm_spark.core.quarantine import QuarantinedRecord, SourcePlace, encode_content
from srm_spark.errors import ProgressFailed
from srm_spark.failure import Failure, FailureKind
from srm_spark.flow.groups.sync import SyncState
from srm_spark.flow.refused.quarantine import QuarantineWriter
from srm_spark.flow.topics.internal_topics import ensure_topic, quarantine_topic
from tests.browser.pages import CHROMIUM, PHONE, page_of, serving
from tests.unit.api.acting import Site
from tests.unit.api.boards import AB, BA, EVERY, NOW, Filled
from tests.unit.memory_words import say

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
AC = Flow("A", "C")
_MINUTES = 55
_TOPICS = {"clicks": 4, "orders": 3, "payments": 2, "returns": 1}
_HIGHEST = 1000
"""Of a picture: what is below is cut."""


def lively() -> Filled:
    """A->B is well, B->A has a paused partition, and the driver of A->C is silent since five minutes."""
    filled, chance = Filled(flows=(AB, BA, AC)), random.Random(1)
    for flow in filled.flows:
        for name, partitions in _TOPICS.items():
            meta = TopicMeta(flow, name, f"{flow.source}.{name}", partitions, name)
            filled.board.take_meta(flow, name, meta)
        end = NOW - 300_000 if flow == AC else NOW
        for at in range(NOW - _MINUTES * 60_000, end + 1, EVERY * 1000):
            _report(filled, chance, flow, at)
    filled.live()
    filled.clock.pass_by(2)
    place = TopicPartition("orders", 1)
    filled.take(PartitionSample(BA, NOW + 1000, 1.0, place, "B.orders", state="paused", reason="write-refused"))
    return filled


def _report(filled: Filled, chance: random.Random, flow: Flow, at: int) -> None:
    busy = 1.0 + 0.6 * ((at // 60_000) % 20 > 12) + chance.random() * 0.3
    lag = chance.randrange(40)
    driver, every = f"{flow.target.lower()}-driver/1/{flow.source}", float(EVERY)
    filled.take(
        FlowSample(
            flow,
            driver,
            at,
            every,
            every,
            FlowState.RUNNING,
            since=NOW - 86_400_000,
            topics=len(_TOPICS),
            partitions=sum(_TOPICS.values()),
            groups=3,
            lag_records=lag,
            lag_seconds=lag / 40,
        )
    )
    for number, (name, partitions) in enumerate(_TOPICS.items()):
        for part in range(partitions):
            records = int(busy * 4000 / (1 + number) * (0.9 + 0.2 * chance.random()))
            filled.take(
                PartitionSample(
                    flow,
                    at,
                    every,
                    TopicPartition(name, part),
                    f"{flow.source}.{name}",
                    records=records,
                    bytes=records * (300 + 90 * number),
                    latency=Histogram.of([busy * (20 + 90 * chance.random()) for _ in range(20)]),
                    lag_records=lag // 10,
                    lag_seconds=lag / 40,
                    state="running",
                )
            )
    for group in ("billing", "fraud", "search"):
        latency = Histogram.of([busy * (90 + 60 * chance.random())])
        filled.take(GroupSample(flow, at, every, group, ("orders",), latency, SyncState.SYNCED.value))


def furnished(folder: Path) -> Site:
    """Clusters with topics that were copied, groups that read them, and a record that was put aside."""
    site = Site(folder, anonymous=Role.ADMIN)
    flow = site.world.flow
    for name in _TOPICS:
        records = (f'{{"{name}": {number}}}'.encode() for number in range(12))
        site.world.topic(name, *records, timestamp=NOW)
    site.world.copied()
    del flow.source.held["t"]
    committed = flow.source.group_calls.committed
    committed.clear()
    for group, offset in (("billing", 9), ("fraud", 12), ("search", 4)):
        committed[group] = {TopicPartition(name, 0): Committed(offset) for name in ("orders", "payments")}
    say(site.world, lag=30, ago=-60.0)  # so that it is fresh for as long as this takes
    _put_aside(site, TopicPartition("clicks", 0), 7)
    drill = {"move": "planned failover", "flow": "A->B", "unsafe": []}
    drill |= {"began": "2025-11-20T09:00:00Z", "ended": "2025-11-20T09:00:14Z"}
    (folder / "srm-planned_failover-A-B-20251120T090000Z.json").write_text(json.dumps(drill))
    return site


def _put_aside(site: Site, partition: TopicPartition, offset: int) -> None:
    flow = site.world.flow
    record = flow.source.log(partition).records[offset]
    content = encode_content(record)
    why = Failure(FailureKind.TOO_LARGE, "it takes 1,200,000 bytes, and max.message.bytes of A.clicks is 1,048,576")
    place = SourcePlace(flow.settings.flow, partition, flow.source.held[partition.topic].topic_id, offset)
    ensure_topic(flow.target, quarantine_topic(flow.settings))
    writer = QuarantineWriter(flow.settings, flow.target.writer("park", ProgressFailed))
    writer.put([(QuarantinedRecord(place, why, record.timestamp, False, 1_200_000, NOW), content)])


def take(page: Page, folder: Path, name: str) -> None:
    """A picture of a page as it is."""
    height = min(_HIGHEST, int(page.evaluate("document.body.offsetHeight")))
    width = page.evaluate("window.innerWidth")
    clip = {"x": 0, "y": 0, "width": width, "height": height}
    page.screenshot(path=folder / f"{name}.png", full_page=True, clip=clip)  # type: ignore[arg-type]


def walk(page: Page, address: str, folder: Path, site: Site) -> None:
    """Through all pages, doing on the way what they are for."""
    flow = f"{address}/flows/A/B"
    take(page, folder, "overview")
    page.get_by_role("link", name="Charts of A->B").click()
    take(page, folder, "rows")
    page.goto(flow)
    page.get_by_label("Topic, or all").fill("payments")
    page.get_by_label("Reason").fill("maintenance")
    page.get_by_role("button", name="Pause").click()
    page.goto(f"{flow}/lists")
    page.locator("#add").fill("orders, payments")
    page.get_by_role("button", name="Add to the allow list").click()
    for name in ("lists", "groups", "quarantine", "losses", "events"):
        page.goto(f"{flow}/{name}")
        take(page, folder, name)
    page.goto(f"{flow}/explain?subject=group&name=billing")
    take(page, folder, "explain")
    page.goto(f"{flow}/moves")
    page.get_by_label("Groups, or all").fill("billing")
    page.get_by_role("button", name="Plan").click()
    page.get_by_label("Type A->B to begin").fill("A->B")
    take(page, folder, "plan")
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector("#live[data-over]")
    take(page, folder, "move")
    page.goto(f"{flow}/moves")
    take(page, folder, "moves")
    page.goto(flow)
    take(page, folder, "flow")
    site.world.topic("refunds", b"{}", timestamp=NOW)  # what a plan makes
    page.goto(f"{flow}/changes")
    page.get_by_role("button", name="Plan").click()
    page.get_by_label("Type A->B to begin").fill("A->B")
    take(page, folder, "changes")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_selector("#live[data-over]")
    take(page, folder, "applied")


def take_all(browser: Browser, folder: Path) -> None:
    """All pictures, into a folder that is there."""
    with tempfile.TemporaryDirectory() as work:
        site = furnished(Path(work))
        app = make_app(lively().board, anonymous=Role.ADMIN, control=site.control)
        with serving(app) as address:
            with page_of(browser, address) as page:
                walk(page, address, folder, site)
            with page_of(browser, address, viewport=PHONE, color_scheme="dark") as page:
                take(page, folder, "phone")


if __name__ == "__main__":
    to = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else FOLDER
    to.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        take_all(playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]), to)

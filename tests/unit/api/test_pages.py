"""The pages as they are sent: complete without a script, nothing from another host, nothing that is taken for HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from srm_spark.api import wording
from srm_spark.api.app import make_app
from srm_spark.api.charts import Measure, chart
from srm_spark.api.told import flows_told
from srm_spark.core.driver_status import FlowState
from srm_spark.core.model import Flow
from srm_spark.core.series import Span, Stats
from tests.unit.api.boards import AB, NOW, Filled, three_flows

MINUTE = 60_000


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(make_app(three_flows().board)) as client:
        yield client


def rows(page: str) -> list[list[str]]:
    """Words of the cells of each row of its table."""
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    return [[words(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in body.split("</tr>")[:-1]]


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def test_the_overview(client: TestClient) -> None:
    page = client.get("/").text
    assert "Cluster Replications (3)" in page
    silent, warned, active = rows(page)
    assert silent[0] == "■ INACTIVE unknown since 2025-11-24 15:49:45 UTC its driver is silent Charts of C->B"
    assert silent[3:] == ["unknown"] * 6
    assert warned[0] == "▲ WARNING 1 partition paused: orders-1 Charts of B->A"
    assert active == ["● ACTIVE Charts of A->B", "A to B", "→ B", "2", "1", "600 B/s", "12.5 ms", "100 ms", "7 1.5 s"]
    assert 'href="/flows/A/B?' in page
    assert 'aria-sort="descending"' in page


def test_charts_open_below_their_rows_and_stay_open_whatever_else_is_chosen(client: TestClient) -> None:
    page = client.get("/?range=LAST_SIX_HOURS&show=max").text
    assert "<polyline" not in page
    assert page.count('aria-expanded="false"') == 3
    for _ in range(2):
        (opens,) = re.findall(r'id="charts-\d" href="([^"]*)"[^>]*>Charts<span class="hidden"> of A-&gt;B<', page)
        page = client.get(html.unescape(opens)).text
        if "<polyline" not in page:
            break
        assert len(re.findall("<polyline", page)) == 5
        assert page.count('aria-expanded="true"') == 1
        assert 'id="plot-A-to-B-1"' in page
        (by_source,) = re.findall(r'id="by-source" href="([^"]*)"', page)
        assert "<polyline" in client.get(html.unescape(by_source)).text
        assert '<input type="hidden" name="open" value="A-&gt;B">' in page
    assert page.count('aria-expanded="false"') == 3, "the second click closes them"
    both = client.get("/?open=A->B&open=B->A&open=A->B&open=gone->B").text
    assert both.count('aria-expanded="true"') == 2
    assert client.get("/?" + "&".join(f"open=x{n}->B" for n in range(21))).status_code == 400


def test_values_and_ranges_are_kept_in_every_link(client: TestClient) -> None:
    page = client.get("/?show=max&range=LAST_THIRTY_MINUTES&sort=source&order=desc").text
    assert [row[1][0] for row in rows(page)] == ["C", "B", "A"]
    assert rows(page)[2][6] == "30 ms"
    assert rows(client.get("/?show=min").text)[2][6] == "5 ms"
    for link in re.findall(r'href="(/\?[^"]*)"', page):
        assert "range=LAST_THIRTY_MINUTES" in link
    assert "longer range" in client.get("/?range=LAST_THIRTY_DAYS").text
    assert "longer range" not in page


@pytest.mark.parametrize(
    "sort",
    [
        "status",
        "source",
        "target",
        "topics",
        "groups",
        "throughput",
        "replication-latency",
        "checkpoint-latency",
        "lag",
    ],
)
def test_every_column_sorts_both_ways_with_the_unknown_last(client: TestClient, sort: str) -> None:
    orders = [[row[1][0] for row in rows(client.get(f"/?sort={sort}&order={way}").text)] for way in ("asc", "desc")]
    if sort in ("status", "source"):
        assert orders[0] == orders[1][::-1]
    elif sort != "target":
        assert [order[-1] for order in orders] == ["C", "C"]


def test_a_search_that_finds_nothing_says_so(client: TestClient) -> None:
    page = client.get("/?search=<b>x").text
    assert "No source contains" in page
    assert "<b>x" not in page
    assert [row[1][0] for row in rows(client.get("/?search=A").text)] == ["A"]


def test_the_page_of_a_flow(client: TestClient) -> None:
    page = client.get("/flows/A/B").text
    assert [row[:3] for row in rows(page)] == [["orders", "A.orders", "2"], ["payments", "A.payments", "1"]]
    assert len(re.findall("<polyline", page)) == 5
    assert 'role="img"' in page
    assert [row[0] for row in rows(client.get("/flows/A/B?sort=lag").text)] == ["payments", "orders"]
    assert [row[0] for row in rows(client.get("/flows/A/B?search=pay").text)] == ["payments"]
    assert "1 paused" in client.get("/flows/B/A").text
    unknown = rows(client.get("/flows/C/B").text)
    assert unknown[0][4:] == ["unknown"] * 4
    assert client.get("/flows/A/X").status_code == 404


@pytest.mark.parametrize(
    ("values", "status", "said"),
    [
        ({"rpo_goal": 2, "audited_at": NOW - 1000, "differing": 0}, "ACTIVE", ["1.5 s goal 2 s", "no difference"]),
        ({"rpo_goal": 1}, "WARNING", ["a failover would lose 2 s of data; the goal is 1 s"]),
        (
            {"audited_at": NOW - 1000, "differing": 2, "differs": "orders-0: 2 lost"},
            "WARNING",
            ["copies differ: 2 records, the first orders-0: 2 lost", "2 differ"],
        ),
        ({"audit_late": "no audit has ended since noon"}, "WARNING", ["no audit has ended since noon"]),
    ],
    ids=["good", "goal", "differ", "late"],
)
def test_goals_and_audits_are_on_the_page_in_v3_and_told_to_other_sites(
    values: dict[str, object], status: str, said: list[str]
) -> None:
    filled = Filled(flows=(AB,))
    filled.live()
    filled.report(AB, NOW, **values)  # type: ignore[arg-type]
    with TestClient(make_app(filled.board)) as client:
        page = words(client.get("/flows/A/B").text)
        answer = client.get("/v3/flows")
    assert all(text in page for text in said), page
    (flow,) = answer.json()["flows"]
    assert (flow["rpo_goal_seconds"], flow["status"]) == (values.get("rpo_goal"), status)
    (found,) = flows_told(answer.content, Span(NOW - 60_000, NOW))
    now = found.now
    told: dict[str, object] = {"rpo_goal": now.rpo_goal, "audited_at": now.audited_at, "differing": now.differing}
    told |= {"differs": now.differs, "audit_late": now.audit_late}
    assert {name: value for name, value in told.items() if value is not None} == values


def test_nothing_comes_from_elsewhere_and_no_script_stands_in_a_page(client: TestClient) -> None:
    for path in ("/", "/flows/A/B", "/docs"):
        page = client.get(path).text
        for address in re.findall(r'(?:src|href|action)="([^"]*)"', page):
            assert address.startswith(("/", "#", "data:,")), address
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|\sstyle=|<style", page)
        for address in re.findall(r'(?:src|href)="(/static[^"]*)"', page):
            assert client.get(address).status_code == 200, address


def test_what_others_have_named_is_no_html() -> None:
    flow = Flow("<i>a", "b&b")
    filled = Filled(flows=(flow,))
    filled.report(flow, NOW, FlowState.STALLED, sentence="<script>alert(1)</script>")
    filled.live()
    with TestClient(make_app(filled.board)) as client:
        page = client.get("/").text
        (link,) = re.findall(r'id="flow-1" href="([^"]*)"', page)
        detail = client.get(html.unescape(link)).text
    for text in (page, detail):
        assert "<script>alert" not in text
        assert "<i>a" not in text
        assert "&lt;i&gt;a" in text


def test_empty_and_unread_boards() -> None:
    empty = Filled(flows=())
    with TestClient(make_app(empty.board)) as client:
        assert "enables no flow" in client.get("/").text
    unread = Filled(flows=(AB,))
    with TestClient(make_app(unread.board)) as client:
        assert "Not everything is known" in client.get("/").text
        page = client.get("/flows/A/B").text
    assert "No driver has told of a topic yet" in page
    assert page.count("No figures in this range") == 5


def test_more_topics_than_a_page_holds() -> None:
    filled = Filled(flows=(AB,))
    filled.report(AB, NOW)
    with filled.board.series(AB) as series:
        ((sample, *_),) = [series.partitions("payments")]
    for number in range(150):
        name = f"t{number:03}"
        filled.take(
            type(sample)(AB, NOW, 30.0, sample.partition._replace(topic=name), f"A.{name}", 1, 1, state="running")
        )
    filled.live()
    with TestClient(make_app(filled.board)) as client:
        first = client.get("/flows/A/B").text
        assert len(rows(first)) == 100
        (link,) = re.findall(r'<a href="([^"]*)">Next page', first)
        second = client.get(html.unescape(link)).text
    assert len(rows(second)) == 52
    assert "Next page" not in second


RATES = Measure(wording.rate, wording.rate_unit)


def test_charts_leave_out_what_nobody_knows() -> None:
    span = Span(NOW, NOW + 60 * MINUTE)
    seen = [0, 1, 2, 10, 11, 30]
    parts = [Stats(Span(NOW + at * MINUTE, NOW + (at + 1) * MINUTE), 1, 5.0, 5.0, 5.0) for at in seen]
    drawn = chart("Throughput", parts, span, lambda part: part.mean, RATES)
    assert [line.count(",") for line in drawn.lines] == [3, 2, 2]
    columns = [drawn.points[name] for name in ("at", "values", "texts")]
    points = [((at * 1000 - NOW) / MINUTE, value, text) for at, value, text in zip(*columns, strict=True)]
    assert points[:5] == [
        (0, None, "no figure"),
        *((at + 0.5, 5.0, "5 B/s") for at in (0, 1, 2)),
        (3, None, "no figure"),
    ]
    assert [at for at, value, _ in points if value is None] == [0, 3, 10, 12, 30, 31, 60]
    assert chart("Throughput", [], span, lambda part: part.mean, RATES).is_empty
    flat = chart("Lag", [Stats(parts[0].span, 1, 0.0, 0.0, 0.0)], span, lambda part: part.mean, RATES)
    assert not flat.is_empty
    assert flat.points["values"] == [None, 0.0, None, None]


def test_a_chart_begins_and_ends_with_its_range() -> None:
    span = Span(NOW + MINUTE // 4, NOW + 3 * MINUTE + MINUTE // 4)
    parts = [Stats(Span(NOW + at * MINUTE, NOW + (at + 1) * MINUTE), 1, 1.5e6, 1.5e6, 1.5e6) for at in range(4)]
    points = chart("Throughput", parts, span, lambda part: part.mean, RATES).points
    assert (points["at"][0], points["at"][-1]) == (span.start / 1000, span.end / 1000)
    assert points["at"] == sorted(set(points["at"]))
    assert (points["unit"], points["per"]) == ("MB/s", 1e6)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (wording.rate(None), "N/A"),
        (wording.rate(13), "13 B/s"),
        (wording.rate(1234), "1.2 kB/s"),
        (wording.rate(999_600), "1.0 MB/s"),
        (wording.rate(2.5e15), "2,500 TB/s"),
        (wording.latency(0.9), "0.9 ms"),
        (wording.latency(0.013), "0.013 ms"),
        (wording.rate_unit(2.5e15), wording.Unit("TB/s", 1e12)),
        (wording.latency(90_000), "90 s"),
        (wording.latency(600_000), "10 min"),
        (wording.records(None), "N/A"),
        (wording.records(1234567), "1,234,567 records"),
        (wording.duration(600), "10 min"),
        (wording.duration(90_000), "25 h"),
        (wording.duration(None), "unknown"),
        (wording.number(1234567), "1,234,567"),
        (wording.number(None), "unknown"),
        (wording.moment(0), "1970-01-01 00:00:00 UTC"),
    ],
)
def test_figures_in_words(said: object, expected: object) -> None:
    assert said == expected

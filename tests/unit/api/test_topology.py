"""Where clusters and flows stand in the picture: beside each other, apart, and all of it within the picture."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import pytest
from starlette.testclient import TestClient

from srm_spark.api.app import make_app
from srm_spark.api.topology import MOST_CLUSTERS, Box, Picture, picture
from srm_spark.core.model import Flow
from tests.unit.api.boards import AB, Filled, ring, three_flows


def mesh(clusters: int) -> list[Flow]:
    return [Flow(*pair) for pair in itertools.permutations([f"c{number}" for number in range(clusters)], 2)]


def drawn(flows: Sequence[Flow]) -> Picture:
    found = picture(flows)
    assert found is not None
    return found


def holds(box: Box, x: float, y: float) -> bool:
    return box.left <= x <= box.left + box.width and box.top <= y <= box.top + box.height


ALL = {
    "one way": [AB],
    "both ways": [AB, AB.reverse],
    "two into one": [Flow("A", "C"), Flow("B", "C")],
    "ring": ring(3),
    "triangle both ways": mesh(3),
    "four": mesh(4),
    "ring of twelve": ring(12),
    "twelve": mesh(12),
    "long names": [Flow("a" * 60, "b" * 60), Flow("b" * 60, "c" * 60)],
    "a hub": [Flow(f"site-{number}", "center") for number in range(11)],
}


@pytest.mark.parametrize("flows", ALL.values(), ids=ALL)
def test_everything_is_in_the_picture_and_nothing_lies_on_a_cluster(flows: Sequence[Flow]) -> None:
    found = drawn(flows)
    assert [arrow.flow for arrow in found.arrows] == list(flows)
    for one, other in itertools.combinations(found.boxes, 2):
        apart_x, apart_y = abs(one.x - other.x), abs(one.y - other.y)
        assert apart_x > (one.width + other.width) / 2 or apart_y > one.height, (one, other)
    for box in found.boxes:
        assert 0 <= box.left <= box.left + box.width <= found.width
        assert 0 <= box.top <= box.top + box.height <= found.height
    boxes = {box.alias: box for box in found.boxes}
    for arrow in found.arrows:
        source, target = boxes[arrow.flow.source], boxes[arrow.flow.target]
        assert not holds(source, *arrow.start)
        assert not holds(target, *arrow.head[0])
        along = ((target.x - source.x), (target.y - source.y))
        tip = (arrow.head[0][0] - arrow.start[0], arrow.head[0][1] - arrow.start[1])
        assert along[0] * tip[0] + along[1] * tip[1] > 0, "it points to its target"
        assert min(math.dist(arrow.head[0], corner) for corner in arrow.head[1:]) > 10
        for x, y in (arrow.start, arrow.end, arrow.mark, *arrow.head):
            assert 0 <= x <= found.width
            assert 0 <= y <= found.height
    labels = [arrow.label for arrow in found.arrows if arrow.label is not None]
    for label, next_one in itertools.combinations(labels, 2):
        assert abs(label.left - next_one.left) >= 90 or abs(label.y - next_one.y) >= 30
    for label in labels:
        assert not any(holds(box, label.x, label.y) or holds(box, label.left + 50, label.y) for box in found.boxes)
        assert 0 <= label.left <= found.width - 90
        assert 10 <= label.y <= found.height - 20


@pytest.mark.parametrize("flows", [ring(3), ring(12), mesh(2), mesh(3), mesh(4), mesh(8)])
def test_no_two_marks_lie_on_each_other(flows: Sequence[Flow]) -> None:
    marks = [arrow.mark for arrow in drawn(flows).arrows]
    assert min(math.dist(one, other) for one, other in itertools.combinations(marks, 2)) > 9


def test_two_clusters_stand_beside_each_other_and_two_flows_have_a_lane_each() -> None:
    one, other = drawn([AB, AB.reverse]).arrows
    assert one.start[1] == one.end[1] != other.start[1] == other.end[1]
    assert one.start[0] < one.end[0]
    assert other.start[0] > other.end[0]
    assert one.label is not None
    assert other.label is not None
    assert one.label.y < one.mark[1] < other.mark[1] < other.label.y


@pytest.mark.parametrize(
    ("name", "has_labels"),
    [
        ("one way", True),
        ("both ways", True),
        ("two into one", True),
        ("ring", True),
        ("triangle both ways", True),
        ("ring of twelve", False),
        ("twelve", False),
    ],
)
def test_labels_are_where_there_is_room_for_all_of_them(name: str, has_labels: bool) -> None:
    assert {arrow.label is not None for arrow in drawn(ALL[name]).arrows} == {has_labels}


def test_a_cluster_with_a_part_in_every_flow_is_in_the_middle() -> None:
    found = drawn(ALL["a hub"])
    (hub,) = (box for box in found.boxes if box.alias == "center")
    assert abs(hub.x - found.width / 2) < 60
    assert abs(hub.y - found.height / 2) < 40
    for arrow in found.arrows:
        for box in found.boxes:
            assert box.alias in (arrow.flow.source, arrow.flow.target) or not holds(box, *arrow.mark)


def test_a_picture_is_for_not_too_many_clusters() -> None:
    assert picture(ring(MOST_CLUSTERS)) is not None
    assert picture(ring(MOST_CLUSTERS + 1)) is None
    assert picture([]) is None
    assert [box.text for box in drawn([Flow("a" * 60, "b")]).boxes] == ["a" * 19 + "…", "b"]


def test_the_overview_has_each_flow_as_a_link_that_says_how_it_is() -> None:
    filled = three_flows()
    filled.board.lost("A", "nobody answers")
    with TestClient(make_app(filled.board)) as client:
        page = client.get("/").text
        arrows = re.findall(r'class="arrow (\w+)" href="([^?"]*)[^>]*aria-label="([^"]*)"', page)
        assert arrows == [
            ("active", "/flows/A/B", "A to B: active, lag 7"),
            ("unknown", "/flows/B/A", "B to A: unknown, lag unknown"),
            ("unknown", "/flows/C/B", "C to B: unknown, lag unknown"),
        ]
        assert "Topology: 3 clusters, 3 flows" in page
        assert "<title>A: nobody answers</title>" in page
        assert "lag 7 · 1.5 s" in page
        assert "arrow" not in client.get("/?search=nobody").text


def test_what_is_called_like_markup_is_text() -> None:
    filled = Filled(flows=(Flow("<b>", "A&B"),))
    with TestClient(make_app(filled.board)) as client:
        page = client.get("/").text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_too_many_clusters_are_told() -> None:
    filled = Filled(flows=tuple(ring(MOST_CLUSTERS + 1)))
    with TestClient(make_app(filled.board)) as client:
        assert "No picture of more than 24 clusters" in client.get("/").text

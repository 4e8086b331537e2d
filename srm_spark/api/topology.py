"""Where clusters and flows stand in a picture of all of them, worked out on the server: no script is needed to see it.

Two clusters stand beside each other, more of them on an ellipse, and one that has a part in every flow in the middle;
two flows of a pair run beside each other. All lengths are in the picture's own units, of which a text of 15 is 15 high.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from srm_spark.core.model import Flow

MOST_CLUSTERS = 24
"""Of more nobody could see anything."""
_MOST_LABELS = 12
"""Of more arrows each one has its mark only, and where labels would lie on each other."""
_LETTER, _BOX_HEIGHT, _PADDING = 8.6, 38.0, 14.0
_LONGEST = 20
"""Letters of a name; a longer one is cut."""
_BESIDE = 230.0
"""Between two clusters: room for a label."""
_GAP = 3.0
"""Between a box and an arrow."""
_PAIR = 10.0
"""From the middle to each of two flows of a pair."""
_HEAD = 11.0
_LABEL_GAP, _LABEL_WIDTH, _LABEL_HEIGHT, _LETTER_HEIGHT = 15.0, 104.0, 31.0, 11.0
_MARGIN = 8.0
_Point = tuple[float, float]
_RADII: tuple[_Point, ...] = ((210.0, 140.0), (310.0, 200.0))
"""Of the ellipse, at least; the larger one where labels have room in that one only."""


@dataclass(frozen=True)
class Box:
    """A cluster; `x` and `y` are its middle."""

    alias: str
    text: str
    """The alias, cut where it is long."""
    x: float
    y: float
    width: float
    height: float = _BOX_HEIGHT

    @property
    def left(self) -> float:
        """Its left edge."""
        return round(self.x - self.width / 2, 1)

    @property
    def top(self) -> float:
        """Its upper edge."""
        return round(self.y - self.height / 2, 1)


@dataclass(frozen=True)
class Label:
    """Where the two lines of an arrow's label begin; `anchor` as in SVG. `y` is the first base line."""

    x: float
    y: float
    anchor: str

    @property
    def left(self) -> float:
        """Its left edge, about."""
        return self.x - {"start": 0.0, "middle": _LABEL_WIDTH / 2, "end": _LABEL_WIDTH}[self.anchor]


@dataclass(frozen=True)
class Arrow:
    """A flow."""

    flow: Flow
    start: _Point
    end: _Point
    """Where the head begins."""
    head: tuple[_Point, ...]
    mark: _Point
    label: Label | None

    @property
    def head_points(self) -> str:
        """Of the triangle, as SVG writes them."""
        return " ".join(f"{x},{y}" for x, y in self.head)

    def moved(self, x: float, y: float) -> Arrow:
        """The same elsewhere."""
        start, end, mark, *head = (_moved(one, x, y) for one in (self.start, self.end, self.mark, *self.head))
        label = None
        if self.label is not None:
            label = replace(self.label, x=round(self.label.x + x, 1), y=round(self.label.y + y, 1))
        return Arrow(self.flow, start, end, tuple(head), mark, label)


@dataclass(frozen=True)
class Picture:
    """What a template draws; the arrows are in the order of the flows."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def picture(flows: Sequence[Flow]) -> Picture | None:
    """All clusters of these flows, in the order in which they are named; None where there are too many, or none."""
    aliases = list(dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target)))
    if not 0 < len(aliases) <= MOST_CLUSTERS:
        return None
    hubs = set(aliases).intersection(*({flow.source, flow.target} for flow in flows)) if len(aliases) > 3 else set()
    boxes, taken = [_box(alias) for alias in aliases], set(flows)
    for radii in _RADII:
        placed = _placed(boxes, hubs, radii)
        by_alias = {box.alias: box for box in placed}
        arrows = [_arrow(flow, by_alias, flow.reverse in taken) for flow in flows]
        if _have_room([arrow.label for arrow in arrows if arrow.label is not None], placed):
            return _cut(placed, arrows)
    return _cut(placed, [replace(arrow, label=None) for arrow in arrows])


def _have_room(labels: Sequence[Label], boxes: Sequence[Box]) -> bool:
    """Whether no label lies on another one, or on a cluster."""
    if len(labels) > _MOST_LABELS:
        return False
    places = [(one.left, one.y - _LETTER_HEIGHT, _LABEL_WIDTH, _LABEL_HEIGHT) for one in labels]
    others = [(box.left, box.top, box.width, box.height) for box in boxes]
    return not any(
        abs(x + w / 2 - ox - ow / 2) < (w + ow) / 2 and abs(y + h / 2 - oy - oh / 2) < (h + oh) / 2
        for number, (x, y, w, h) in enumerate(places)
        for ox, oy, ow, oh in (*places[:number], *others)
    )


def _box(alias: str) -> Box:
    text = alias if len(alias) <= _LONGEST else alias[: _LONGEST - 1] + "…"
    return Box(alias, text, 0.0, 0.0, max(64.0, len(text) * _LETTER + 2 * _PADDING))


def _placed(boxes: Sequence[Box], hubs: Set[str], radii: _Point) -> list[Box]:
    if len(boxes) < 3:
        apart = _BESIDE + sum(box.width for box in boxes) / 2
        return [replace(box, x=number * apart) for number, box in enumerate(boxes)]
    around = [box for box in boxes if box.alias not in hubs]
    wide = max(radii[0], (max(box.width for box in boxes) + 56) * len(around) / 5.5)
    high = max(radii[1], 0.55 * wide)
    turn = 0.0 if len(around) % 2 else 0.5  # an even number has two of them in the first row: that is less high
    angles = [2 * math.pi * (number + turn) / len(around) - math.pi / 2 for number in range(len(around))]
    ring = [replace(box, x=wide * math.cos(at), y=high * math.sin(at)) for box, at in zip(around, angles, strict=True)]
    return [*(box for box in boxes if box.alias in hubs), *ring]


def _arrow(flow: Flow, boxes: Mapping[str, Box], is_pair: bool) -> Arrow:
    source, target = boxes[flow.source], boxes[flow.target]
    length = math.dist((source.x, source.y), (target.x, target.y))
    dx, dy = (target.x - source.x) / length, (target.y - source.y) / length
    side = (dy, -dx)  # on the left of the way: the other flow of a pair has the other side
    if not is_pair and len(boxes) > 2:
        middle = ((source.x + target.x) / 2, (source.y + target.y) / 2)
        if middle[0] * side[0] + middle[1] * side[1] < 0:  # labels outside of the ring
            side = (-side[0], -side[1])
    aside = _PAIR if is_pair else 0.0
    sx, sy = source.x + aside * side[0], source.y + aside * side[1]
    tx, ty = target.x + aside * side[0], target.y + aside * side[1]
    leaving, arriving = _edge(source, (sx, sy), (dx, dy)), _edge(target, (tx, ty), (-dx, -dy))
    start = (sx + leaving * dx, sy + leaving * dy)
    tip = (tx - arriving * dx, ty - arriving * dy)
    end = (tip[0] - _HEAD * dx, tip[1] - _HEAD * dy)
    head = (tip, *((end[0] + sign * _HEAD / 2 * -dy, end[1] + sign * _HEAD / 2 * dx) for sign in (1, -1)))
    # Ways across a ring all meet in its middle: marks stand nearer to where they come from.
    part = 0.5 if len(boxes) <= 3 else 0.42
    mark = (start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1]))
    return Arrow(flow, start, end, head, mark, _label(mark, side))


def _edge(box: Box, point: _Point, way: _Point) -> float:
    """How far it is from a point in a box to its edge, and a little further."""
    spans = (
        ((math.copysign(half, step) - (place - middle)) / step)
        for half, step, place, middle in (
            (box.width / 2, way[0], point[0], box.x),
            (box.height / 2, way[1], point[1], box.y),
        )
        if abs(step) > 1e-9
    )
    return min(spans) + _GAP


def _label(mark: _Point, side: _Point) -> Label:
    anchor = "start" if side[0] > 0.4 else "end" if side[0] < -0.4 else "middle"
    x, y = mark[0] + _LABEL_GAP * side[0], mark[1] + _LABEL_GAP * side[1]
    # Above an arrow both lines stand on it, below it they hang, beside it they are half and half.
    first = y - _LABEL_HEIGHT / 2 + _LABEL_HEIGHT / 2 * side[1] + 12.0
    return Label(x, first, anchor)


def _moved(point: _Point, x: float, y: float) -> _Point:
    return round(point[0] + x, 1), round(point[1] + y, 1)


def _cut(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> Picture:
    """Moved so that everything lies right of and below 0, with the size that it takes."""
    labels = [arrow.label for arrow in arrows if arrow.label is not None]
    left = min([box.left for box in boxes] + [label.left for label in labels]) - _MARGIN
    top = min([box.top for box in boxes] + [label.y - 14 for label in labels]) - _MARGIN
    right = max([box.left + box.width for box in boxes] + [label.left + _LABEL_WIDTH for label in labels]) + _MARGIN
    low = max([box.top + box.height for box in boxes] + [label.y + 22 for label in labels]) + _MARGIN
    return Picture(
        round(right - left),
        round(low - top),
        tuple(replace(box, x=round(box.x - left, 1), y=round(box.y - top, 1)) for box in boxes),
        tuple(arrow.moved(-left, -top) for arrow in arrows),
    )

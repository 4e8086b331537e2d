"""A metric over time: as the path of a small drawing, worked out on the server, for which no script is needed; and as
the points of it, for the script that draws the same with the value under the pointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from srm_spark.api.wording import Unit
from srm_spark.core.series import Span, Stats

WIDTH, HEIGHT = 600, 140
_GAP_MS = 120_000
"""Without a figure for so long the line is interrupted: nobody knows what was between."""
_NO_FIGURE = "no figure"
_Stretch = list[tuple[Stats, float]]


@dataclass(frozen=True)
class Chart:
    """What a template draws."""

    title: str
    summary: str
    """For who does not see it."""
    lines: tuple[str, ...]
    """Points of each stretch without a gap."""
    areas: tuple[str, ...]
    """The same, closed along the bottom."""
    top: str
    """The value at the upper edge."""
    start: int
    end: int
    points: dict[str, Any]
    """For the script: columns `at` in seconds, `values` and `texts`, with null where nothing is known; for the axis
    `unit` and how many make one, `per`."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.lines


@dataclass(frozen=True)
class Measure:
    """How figures of a metric are said."""

    text: Callable[[float | None], str]
    unit: Callable[[float], Unit]
    """For figures up to that one."""


def chart(
    title: str, parts: Sequence[Stats], span: Span, value: Callable[[Stats], float | None], measure: Measure
) -> Chart:
    """The chart of one metric; `value` is what of each part is drawn."""
    text = measure.text
    known = [(part, number) for part in parts if (number := value(part)) is not None]
    if not known:
        return Chart(title, "nothing in this range", (), (), text(0.0), span.start, span.end, {})
    numbers = [number for _, number in known]
    top = max(numbers) * 1.1 or 1.0
    unit, stretches = measure.unit(top), _stretches(known)
    drawn = [_drawn(one, span, top) for one in stretches]
    return Chart(
        title,
        f"newest {text(numbers[-1])}, most {text(max(numbers))}, least {text(min(numbers))}",
        tuple(_points(one) for one in drawn),
        tuple(_points([(one[0][0], float(HEIGHT)), *one, (one[-1][0], float(HEIGHT))]) for one in drawn),
        text(top),
        span.start,
        span.end,
        _columns(stretches, span, text) | {"unit": unit.name, "per": unit.size},
    )


def _stretches(known: Sequence[tuple[Stats, float]]) -> list[_Stretch]:
    """Without a gap in each; none where nothing is known."""
    gap = max(_GAP_MS, 3 * max(part.span.end - part.span.start for part, _ in known))
    found: list[_Stretch] = []
    before: int | None = None
    for part, number in known:
        if before is None or part.span.midpoint - before > gap:
            found.append([])
        found[-1].append((part, number))
        before = part.span.midpoint
    return found


def _drawn(stretch: _Stretch, span: Span, top: float) -> list[tuple[float, float]]:
    length = max(1, span.end - span.start)
    points = [
        (WIDTH * (_within(part.span.midpoint, span) - span.start) / length, HEIGHT - HEIGHT * number / top)
        for part, number in stretch
    ]
    if len(points) > 1:
        return points
    ((x, y),) = points
    return [(x - 1, y), (x + 1, y)]


def _columns(stretches: Sequence[_Stretch], span: Span, text: Callable[[float | None], str]) -> dict[str, Any]:
    """Nothing is known at the edges of the range and of each stretch, so that nobody draws over a gap."""
    edges = [span.start, span.end]
    for stretch in stretches:
        edges += [stretch[0][0].span.start, stretch[-1][0].span.end]
    points: dict[int, float | None] = {at: None for at in edges if span.start <= at <= span.end}
    for stretch in stretches:
        points |= {_within(part.span.midpoint, span): number for part, number in stretch}
    return {
        "at": [at / 1000 for at in sorted(points)],
        "values": [points[at] for at in sorted(points)],
        "texts": [_NO_FIGURE if (number := points[at]) is None else text(number) for at in sorted(points)],
    }


def _within(at: int, span: Span) -> int:
    return min(max(at, span.start), span.end)


def _points(of: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in of)

"""A metric over time as the path of a small drawing, worked out on the server: no script is needed to see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from srm_spark.core.series import Span, Stats

WIDTH, HEIGHT = 600, 140
_GAP_MS = 120_000
"""Without a figure for so long the line is interrupted: nobody knows what was between."""


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

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.lines


def chart(
    title: str,
    parts: Sequence[Stats],
    span: Span,
    value: Callable[[Stats], float | None],
    text: Callable[[float | None], str],
) -> Chart:
    """The chart of one metric; `value` is what of each part is drawn."""
    known = [(part, number) for part in parts if (number := value(part)) is not None]
    if not known:
        return Chart(title, "nothing in this range", (), (), text(0.0), span.start, span.end)
    most = max(number for _, number in known)
    top = most * 1.1 or 1.0
    length = max(1, span.end - span.start)
    gap = max(_GAP_MS, 3 * max(part.span.end - part.span.start for part, _ in known))
    stretches: list[list[tuple[float, float]]] = []
    before: int | None = None
    for part, number in known:
        at = part.span.midpoint
        if before is None or at - before > gap:
            stretches.append([])
        x = min(max(WIDTH * (at - span.start) / length, 0.0), float(WIDTH))
        stretches[-1].append((x, HEIGHT - HEIGHT * number / top))
        before = at
    widened = [one if len(one) > 1 else [(one[0][0] - 1, one[0][1]), (one[0][0] + 1, one[0][1])] for one in stretches]
    newest = known[-1][1]
    return Chart(
        title,
        f"newest {text(newest)}, most {text(most)}, least {text(min(number for _, number in known))}",
        tuple(_points(one) for one in widened),
        tuple(_points([(one[0][0], float(HEIGHT)), *one, (one[-1][0], float(HEIGHT))]) for one in widened),
        text(top),
        span.start,
        span.end,
    )


def _points(of: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in of)

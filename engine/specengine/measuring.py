"""Measures what passes cost, one pass at a time, so that an answer never waits for it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from specengine.costs import GRID, MEASURED_WIDTHS, CostTable

Pass = Callable[[int], float]
"""Runs a pass of a width and returns its seconds, without the part that the context behind it adds."""

_ORDER: Final = (4, 8, 16, 2, 32, 3, 6)
"""The widths that decide most come first."""
_DRAFT_READ: Final = 32
_UNKNOWN: Final = 1.5
"""What each token beyond the widest measured pass is taken to cost, in passes of one."""
_ODD: Final = 1.25
"""A pass slower than its neighbours suggest by more is measured again: a single stall would rule its width out."""


def measuring(
    target: Pass, draft: Pass | None = None, read: Pass | None = None, kv_share: float = 0.0
) -> Iterator[CostTable]:
    """Yields a table after each pass, the last of them complete.

    Widths not measured yet lie on lines between measured ones; wider ones cost more than a pass of one for each token
    more, so that nothing is drafted on a guess. `draft` runs a step, `read` a pass without logits. Passes over
    `MEASURED_WIDTHS` take about 16 times the first; widths beyond them continue the curve of the last two, and real
    rounds correct them.
    What a longer context adds is first taken from `kv_share`, the bytes of its keys and values over those of the
    weights, for the pass and for each of its tokens.
    """
    target(1)  # pages the weights in
    points = {1: target(1)}

    def table(step_s: float | None = None, read_s: float | None = None) -> CostTable:
        more_s = max(0.0, points[8] - points[1]) / 7 if 8 in points else points[1]
        return CostTable(_curve(points), step_s, read_s, context_s=kv_share * points[1], pair_s=kv_share * more_s)

    yield table()
    for width in _ORDER:
        points[width] = target(width)
        yield table()
    for width in (1, *_odd(points)):
        points[width] = min(points[width], target(width))
        yield table()
    if draft is None or read is None:
        return
    draft(1)
    step_s = draft(1)
    yield table()
    step_s = min(step_s, draft(1))
    yield table()
    yield table(step_s, read(_DRAFT_READ) / _DRAFT_READ)


def unmeasured() -> CostTable:
    """What is taken for the costs before the first pass: nothing can pay."""
    return CostTable([float(width) for width in GRID], known=False)


def _curve(points: dict[int, float]) -> list[float]:
    last = max(points)
    slope = _UNKNOWN * points[1]
    if last == MEASURED_WIDTHS[-1]:
        before = MEASURED_WIDTHS[-2]
        slope = max(0.0, (points[last] - points[before]) / (last - before))
    return [_between(points, width) if width <= last else points[last] + slope * (width - last) for width in GRID]


def _odd(points: dict[int, float]) -> list[int]:
    """Widths that cost more than a wider pass, or much more than a line between their neighbours."""
    known = sorted(points)
    return [
        width
        for left, width, right in zip(known, known[1:], known[2:], strict=False)
        if points[width] > points[right]
        or points[width] > _ODD * _between({left: points[left], right: points[right]}, width)
    ]


def _between(points: dict[int, float], width: int) -> float:
    known = sorted(points)
    right = known[bisect_left(known, width)]
    if right == width:
        return points[width]
    left = known[known.index(right) - 1]
    return points[left] + (points[right] - points[left]) * (width - left) / (right - left)

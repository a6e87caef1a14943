"""γ over an answer: how far each round drafted, from which source, and how much of it was accepted."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from specchat.bench.page.svg import Scale, line, linear, plot, root, steps, tag, text
from specchat.bench.records import Run
from specengine.trace import Round

_WIDTH: Final = 720
_HEIGHT: Final = 124
_LEFT: Final = 34
_RIGHT: Final = _WIDTH - 8
_TOP: Final = 16
_BOTTOM: Final = _HEIGHT - 22
_MARKS: Final = (1, 4, 16, 64, 127)
_SOURCES: Final = ("lookup", "draft", "both", "none")


def gamma(run: Run) -> Markup:
    """One run, all its turns: a bar for each round, as wide as what it emitted and as high as what it drafted."""
    total, longest = len(run.tokens), max(4, *(one.drafted for one in run.rounds))
    x, y = linear(0, max(total, 1), _LEFT, _RIGHT), root(longest, _BOTTOM, _TOP)
    parts = [line(_LEFT, y(mark), _RIGHT, y(mark), "grid") for mark in _MARKS if mark <= longest]
    parts += [text(_LEFT - 6, y(mark) + 4, str(mark), "tick", "end") for mark in (0, *_marks(longest, y))]
    at = 0
    for number, trace in enumerate(run.traces, 1):
        if len(run.traces) > 1:
            parts.append(line(x(at), _TOP - 12, x(at), _BOTTOM, "turn"))
            parts.append(text(x(at) + 4, _TOP - 5, f"turn {number}", "tick"))
        for one in trace.rounds:
            parts.append(_bar(one, x(at), x(at + one.emitted), y))
            at += one.emitted
    parts.append(line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
    parts += [
        text(x(mark), _BOTTOM + 15, f"{mark:g}", "tick", "middle") for mark in steps(total, 9) if x(mark) < _RIGHT - 44
    ]
    parts.append(text(_RIGHT, _BOTTOM + 15, "tokens", "tick", "end"))
    return plot(_WIDTH, _HEIGHT, f"{run.workload}: draft length over the answer, {_said(run.rounds)}", *parts)


def _bar(one: Round, start: float, end: float, y: Scale) -> Markup:
    width = max(0.8, end - start - (0.6 if end - start > 3 else 0))
    if not one.drafted:
        return tag("rect", x=start, y=_BOTTOM - 1.5, width=width, height=1.5, kind="bar plain")
    drawn = one.drafted - one.copied
    layers = []
    for source, low, high in ((one.source, 0, drawn), ("lookup", drawn, one.drafted)):
        if high > low:
            stands = min(max(one.accepted, low), high)
            layers.append(_layer(start, width, y(low), y(high), f"drafted {source}"))
            layers.append(_layer(start, width, y(low), y(stands), f"bar {source}"))
    return tag("g", tag("title", f"{_drafted_by(one)}: {one.drafted} drafted, {one.accepted} accepted"), *layers)


def _layer(x: float, width: float, bottom: float, top: float, kind: str) -> Markup:
    return tag("rect", x=x, y=top, width=width, height=bottom - top, kind=kind)


def _drafted_by(one: Round) -> str:
    return f"{one.drafted - one.copied} {one.source}, {one.copied} lookup" if one.copied else one.source


def _marks(longest: int, y: Scale) -> list[int]:
    """Those of the marks that have room for a label."""
    chosen: list[int] = []
    for mark in _MARKS:
        if mark <= longest and (not chosen or y(chosen[-1]) - y(mark) > 11) and y(0) - y(mark) > 11:
            chosen.append(mark)
    return chosen


def _said(rounds: Sequence[Round]) -> str:
    counts = Counter("both" if one.copied else one.source for one in rounds)
    return ", ".join(
        f"{counts[source]} round{'s' * (counts[source] != 1)} of {source}" for source in _SOURCES if counts[source]
    )

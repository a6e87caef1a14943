"""Speedup over plain decoding: a bar for each mode, and a line over γ for each source of fixed drafts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from specchat.bench.page.svg import Scale, apart, line, linear, logarithmic, path, plot, tag, text
from specchat.bench.results import Result, Spread

WIDTH: Final = 340
_ROW: Final = 21
_BAR: Final = 13
_NAME: Final = 76
"""Room for the names of our modes,"""
_WIDEST_NAME: Final = 190
"""and for those of other engines, at most,"""
_LETTER: Final = 6.4
"""at about so much a letter."""
_RIGHT: Final = WIDTH - 52
"""Room for the figure behind the longest bar."""
_HEIGHT: Final = 170


@dataclass(frozen=True, slots=True)
class Bar:
    """A mode of ours, or of another engine."""

    name: str
    kind: str
    """What colours it."""
    ratio: Spread
    """Speedup over our plain decoding."""


def bars(workload: str, shown: Sequence[Bar], top: float) -> Markup:
    """One workload: the median of each mode, and its range over the rounds; `top` is the scale's end."""
    left = min(_WIDEST_NAME, max(_NAME, *(12 + _LETTER * len(bar.name) for bar in shown)))
    x = linear(0, top, left, _RIGHT)
    height = len(shown) * _ROW + 8
    rows = [_bar(workload, bar, i * _ROW + 4, x) for i, bar in enumerate(shown)]
    said = ", ".join(f"{bar.name} {bar.ratio.median:.2f}×" for bar in shown)
    one = line(x(1), 0, x(1), height, "one")
    return plot(WIDTH, height, f"{workload}, speedup over plain: {said}", *rows, one)


def over_gamma(fixed: Sequence[Result], beside: Sequence[Result], top: float) -> Markup:
    """One workload: what every fixed γ gives, by source, and as level lines what stands `beside` it."""
    judged = [(result, result.ratio_to_plain) for result in fixed if result.ratio_to_plain and result.gamma]
    lengths = sorted({result.gamma for result, _ in judged if result.gamma})
    left, right, bottom = 8, WIDTH - 88, _HEIGHT - 30
    x = logarithmic(lengths[0], max(lengths[-1], lengths[0] + 1), left + 8, right)
    y = linear(0, top, bottom, 8)
    parts = [line(left, bottom, right, bottom, "axis")]
    parts += [text(x(length), bottom + 14, str(length), "tick", "middle") for length in _spaced(lengths, x)]
    parts.append(text((left + right) / 2, bottom + 27, "fixed draft length γ", "tick", "middle"))
    ends: list[tuple[str, str, float]] = []
    for result in beside:
        if result.ratio_to_plain:
            at = y(result.ratio_to_plain.median)
            parts.append(line(left, at, right, at, f"level {result.mode}"))
            gain = "" if result.mode == "plain" else f" {result.ratio_to_plain.median:.2f}×"
            ends.append((result.mode, f"{result.mode}{gain}", at))
    for source in ("lookup", "draft", "both"):
        of_source = sorted(
            (result.gamma, ratio) for result, ratio in judged if result.gamma and source_of(result) == source
        )
        if not of_source:
            continue
        points = [(x(length), y(ratio.median)) for length, ratio in of_source]
        parts.append(path(points, f"curve {source}"))
        for (length, ratio), (px, py) in zip(of_source, points, strict=True):
            about = tag("title", f"{source}:{length} {_figures(ratio)}")
            parts.append(tag("circle", about, cx=px, cy=py, r=2.5, kind=f"dot {source}"))
        ends.append((source, f"{source} {of_source[-1][1].median:.2f}×", points[-1][1]))
    for (kind, words, _), at in zip(ends, apart([end[2] for end in ends], 10, bottom), strict=True):
        parts.append(text(right + 6, at + 4, words, f"label {kind}"))
    return plot(WIDTH, _HEIGHT, f"{fixed[0].workload}: speedup over plain by fixed draft length", *parts)


def _spaced(lengths: Sequence[int], x: Scale) -> list[int]:
    """Those that have room for a label."""
    shown: list[int] = []
    for length in lengths:
        if not shown or x(length) - x(shown[-1]) > 16:
            shown.append(length)
    return shown


def source_of(result: Result) -> str:
    """What colours it: the mode without its draft length."""
    return result.mode.partition(":")[0]


def _bar(workload: str, bar: Bar, top: float, x: Scale) -> Markup:
    start, middle, ratio = x(0), top + _BAR / 2, bar.ratio
    width = max(1.0, x(ratio.median) - start)
    parts = [
        tag("title", f"{workload}, {bar.name}: {_figures(ratio)}"),
        text(start - 8, middle + 4, bar.name, "label", "end"),
        tag("rect", x=start, y=top, width=width, height=_BAR, rx=2, kind=f"bar {bar.kind}"),
    ]
    if ratio.max > ratio.min:
        parts.append(line(x(ratio.min), middle, x(ratio.max), middle, "range"))
    parts.append(text(max(x(ratio.median), x(ratio.max)) + 6, middle + 4, f"{ratio.median:.2f}×", "figure"))
    return tag("g", *parts)


def _figures(ratio: Spread) -> str:
    return f"{ratio.median:.2f}× ({ratio.min:.2f}–{ratio.max:.2f})"

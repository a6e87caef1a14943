"""Parts of plots: elements of SVG, scales that map values to places, and labels that keep out of each other's way."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

Scale = Callable[[float], float]
"""From a value to a place, in units of the plot."""

_GAP: Final = 12.0
"""Least distance between the baselines of labels above each other."""


def tag(name: str, *inside: str, **attributes: str | float) -> Markup:
    """An element; text inside and values of attributes are escaped. `stroke_width` is written stroke-width, `kind`
    is the class."""
    written = Markup("").join(
        Markup(' {}="{}"').format("class" if key == "kind" else key.replace("_", "-"), _written(value))
        for key, value in attributes.items()
    )
    return Markup("<{}{}>{}</{}>").format(name, written, Markup("").join(inside), name)


def plot(width: float, height: float, about: str, *inside: str) -> Markup:
    """A picture that grows with the page; `about` is what it says, for those who can't see it."""
    return tag("svg", tag("title", about), *inside, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=about)


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> Markup:
    return tag("text", words, x=x, y=y, kind=kind, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, kind=kind)


def path(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    """Straight lines from point to point."""
    return tag("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), kind=kind)


def linear(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    inner = linear(math.log(low), math.log(high), start, end)
    return lambda value: inner(math.log(value))


def root(high: float, start: float, end: float) -> Scale:
    """From 0: differences among small values show, large ones still fit."""
    inner = linear(0, math.sqrt(high), start, end)
    return lambda value: inner(math.sqrt(value))


def steps(high: float, most: int) -> list[float]:
    """Round values from 0 to `high`, `most` of them or fewer."""
    rough = high / max(most - 1, 1)
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough)
    return [step * i for i in range(int(high / step + 1e-9) + 1)]


def apart(places: Sequence[float], low: float, high: float) -> list[float]:
    """The places moved as little as is needed for labels there not to overlap, between `low` and `high`."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + _GAP)
    limit = high
    for i in reversed(order):
        moved[i] = max(low, min(moved[i], limit))
        limit = moved[i] - _GAP
    return moved


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")

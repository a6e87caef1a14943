"""What passes cost: v(k), a target pass over k tokens in passes over one, with the draft model's step."""

from typing import Final

from markupsafe import Markup

from specchat.bench.page.svg import apart, line, logarithmic, path, plot, tag, text
from specengine.costs import GRID, CostTable

_WIDTH: Final = 720
_HEIGHT: Final = 360
_LEFT: Final = 56
_RIGHT: Final = _WIDTH - 140
_TOP: Final = 14
_BOTTOM: Final = _HEIGHT - 40
_NAMED: Final = (2, 4, 8, 16, 32, 64)
"""Widths that are written out."""


def cost_curve(costs: CostTable, draft_name: str | None) -> Markup:
    """Both axes are logarithmic: below the straight line, a pass costs less than writing its tokens one by one."""
    ms = [1000 * costs.target(width) for width in GRID]
    step = 1000 * costs.draft_step_s if draft_name and costs.draft_step_s else None
    widest = GRID[-1]
    low, high = min(ms[0], step or ms[0]) / 1.5, max(ms[-1], ms[0] * widest) * 1.1
    x = logarithmic(1, widest, _LEFT + 10, _RIGHT)
    y = logarithmic(low, high, _BOTTOM, _TOP)
    curve = [(x(width), y(each)) for width, each in zip(GRID, ms, strict=True)]
    none = [(x(1), y(ms[0])), (x(widest), y(widest * ms[0]))]
    parts = [
        *_axes(
            x_of=[(x(width), str(width)) for width in (1, *_NAMED, widest)],
            y_of=[(y(at), _ms(at)) for at in _round(low, high)],
        ),
        _gain(curve, none),
        path(none, "reference"),
        text(x(12) - 6, y(12 * ms[0]) - 6, "k passes over one token", "tick", "end"),
        line(x(1), y(ms[0]), _RIGHT, y(ms[0]), "reference"),
        path(curve, "curve target"),
    ]
    for (px, py), width, each in zip(curve, GRID, ms, strict=True):
        about = tag("title", f"{width} tokens: {each:.1f} ms, {each / ms[0]:.2f} passes")
        parts.append(tag("circle", about, cx=px, cy=py, r=3, kind="dot target"))
        if width in _NAMED:
            beside = 19 if y(ms[0]) - py > 26 else -9
            parts.append(text(px + 2, py + beside, f"{each / ms[0]:.1f}×", "figure target", "middle"))
    named = [
        (curve[-1][1], f"a target pass, {ms[-1] / ms[0]:.1f}×", "label target"),
        (y(ms[0]), f"over one token: {_ms(ms[0])} ms", "tick"),
    ]
    if step is not None:
        parts.append(line(x(1), y(step), _RIGHT, y(step), "level draft"))
        named.append((y(step), f"draft step: {_ms(step)} ms", "label draft"))
        named.append((y(step) + 14, f"c = {step / ms[0]:.2f}", "label draft"))
    places = apart([at for at, _, _ in named], _TOP, _BOTTOM)
    parts += [text(_RIGHT + 10, at + 4, words, kind) for at, (_, words, kind) in zip(places, named, strict=True)]
    eight = costs.target(8) / costs.target(1)
    said = f"A target pass over one token takes {ms[0]:.1f} ms, one over 8 tokens {eight:.1f} times that"
    return plot(_WIDTH, _HEIGHT, said, *parts)


def _axes(x_of: list[tuple[float, str]], y_of: list[tuple[float, str]]) -> list[Markup]:
    parts = [line(_LEFT, at, _RIGHT, at, "grid") for at, _ in y_of]
    parts += [text(_LEFT - 8, at + 4, words, "tick", "end") for at, words in y_of]
    parts.append(line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
    parts += [text(at, _BOTTOM + 16, words, "tick", "middle") for at, words in x_of]
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 33, "k, tokens in the pass", "tick", "middle"))
    parts.append(text(_LEFT - 8, _TOP - 2, "ms", "tick", "end"))
    return parts


def _gain(curve: list[tuple[float, float]], none: list[tuple[float, float]]) -> Markup:
    """The area between the curve and the line of no gain, where the curve lies below it."""
    (x0, y0), (x1, y1) = none
    upper = [(px, min(py, y0 + (y1 - y0) * (px - x0) / (x1 - x0))) for px, py in curve]
    outline = [*curve, *reversed(upper)]
    return tag("path", d="M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in outline) + "Z", kind="gain")


def _round(low: float, high: float) -> list[float]:
    marks = [factor * 10.0**power for power in range(-3, 7) for factor in (1, 3)]
    return [mark for mark in marks if low <= mark <= high]


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"

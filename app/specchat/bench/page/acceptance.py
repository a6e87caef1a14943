"""Acceptance by position: what share of the drafts' first, second, … tokens was accepted, for each source."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from specchat.bench.figures import SourceFigures
from specchat.bench.page.svg import apart, line, linear, logarithmic, path, plot, tag, text
from specchat.bench.results import Result

FEWEST: Final = 3
"""Positions that fewer drafts had are left out."""
_WIDTH: Final = 340
_HEIGHT: Final = 170
_LEFT: Final = 34
_RIGHT: Final = _WIDTH - 104
_BOTTOM: Final = _HEIGHT - 30
_POSITIONS: Final = (1, 2, 4, 8, 16, 32, 64, 127)


def acceptance(results: Sequence[Result]) -> Markup | None:
    """One workload; each source's line comes from the mode that drafted most from it. None where nothing drafted."""
    shown = [found for source in ("lookup", "draft") if (found := _most(results, source))]
    shares = [(mode, figures.source, _shares(figures)) for mode, figures in shown]
    shares = [entry for entry in shares if entry[2]]
    if not shares:
        return None
    longest = max(len(points) for _, _, points in shares)
    x = logarithmic(1, max(longest, 2), _LEFT + 6, _RIGHT)
    y = linear(0, 1, _BOTTOM, 10)
    parts = [line(_LEFT, y(share), _RIGHT, y(share), "grid") for share in (0.5, 1.0)]
    parts += [text(_LEFT - 6, y(share) + 4, f"{share:.0%}", "tick", "end") for share in (0, 0.5, 1.0)]
    parts.append(line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
    ticks = [position for position in _POSITIONS if position <= longest]
    parts += [text(x(position), _BOTTOM + 14, str(position), "tick", "middle") for position in ticks]
    parts.append(text((_LEFT + _RIGHT) / 2, _BOTTOM + 27, "position in the draft", "tick", "middle"))
    for mode, source, points in shares:
        places = [(x(i), y(share)) for i, share in enumerate(points, 1)]
        parts.append(path(places, f"curve {source}"))
        for i, ((px, py), share) in enumerate(zip(places, points, strict=True), 1):
            about = tag("title", f"{source} in {mode}, token {i}: {share:.0%}")
            parts.append(tag("circle", about, cx=px, cy=py, r=2 if longest < 40 else 1.4, kind=f"dot {source}"))
    ends = [(y(points[-1]), x(len(points))) for _, _, points in shares]
    for (mode, source, _), (_, end), at in zip(
        shares, ends, apart([place for place, _ in ends], 12, _BOTTOM - 2), strict=True
    ):
        words = mode if mode.partition(":")[0] == source else f"{source} ({mode})"
        parts.append(text(end + 7, at + 4, words, f"label {source}"))
    said = "; ".join(f"{source} in {mode} from {points[0]:.0%} at the first token" for mode, source, points in shares)
    return plot(_WIDTH, _HEIGHT, f"{results[0].workload}, acceptance by position: {said}", *parts)


def _most(results: Sequence[Result], source: str) -> tuple[str, SourceFigures] | None:
    found = [(result.mode, one) for result in results for one in result.sources if one.source == source]
    return max(found, key=lambda entry: entry[1].drafted, default=None)


def _shares(figures: SourceFigures) -> list[float]:
    pairs = zip(figures.accepted_at, figures.drafted_at, strict=True)
    return [accepted / drafted for accepted, drafted in pairs if drafted >= FEWEST]

"""How an answer went: its rate and its draft lengths over time, as sparklines."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from specengine.stats import Stats

MOST: Final = 128
"""Stretches kept of an answer, however long it is."""
_FIRST_STRETCH_S: Final = 0.1
BLOCKS: Final = "▁▂▃▄▅▆▇█"
ASCII: Final = "_.:-=+*#"


def glyphs(environment: Mapping[str, str], encoding: str | None) -> str:
    """What sparklines are drawn with: eight levels, the lowest first. Consoles without block characters get ASCII."""
    plain = "utf" not in (encoding or "").lower() or environment.get("TERM") in ("linux", "dumb", "vt100", "vt220")
    return ASCII if plain and sys.platform != "win32" else BLOCKS


@dataclass(slots=True)
class _Stretch:
    seconds: float = 0.0
    tokens: int = 0
    rounds: int = 0
    drafted: int = 0

    def add(self, other: "_Stretch") -> None:
        self.seconds += other.seconds
        self.tokens += other.tokens
        self.rounds += other.rounds
        self.drafted += other.drafted


class Course:
    """Follows the figures of one answer. When it holds too many stretches of time, neighbours become one."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []
        self._stretch_s = _FIRST_STRETCH_S
        self._seen = _Stretch()

    def see(self, stats: Stats) -> None:
        """Takes in the figures after one more round."""
        seen = self._seen
        rounds = stats.target_passes - seen.rounds
        new = _Stretch(stats.decode_s - seen.seconds, stats.emitted - seen.tokens, rounds, rounds * stats.gamma)
        if rounds <= 0:
            return
        seen.add(new)
        if self._stretches and self._stretches[-1].seconds < self._stretch_s:
            self._stretches[-1].add(new)
        else:
            self._stretches.append(new)
        if len(self._stretches) > MOST:
            self._join()

    @property
    def rates(self) -> list[float]:
        """Tokens per second, stretch by stretch."""
        return [stretch.tokens / stretch.seconds if stretch.seconds > 0 else 0.0 for stretch in self._stretches]

    @property
    def gammas(self) -> list[float]:
        """Mean draft length, stretch by stretch."""
        return [stretch.drafted / stretch.rounds for stretch in self._stretches]

    def _join(self) -> None:
        self._stretch_s *= 2
        for left, right in zip(self._stretches[::2], self._stretches[1::2], strict=False):
            left.add(right)
        self._stretches = self._stretches[::2]


def sparkline(values: Sequence[float], width: int, levels: str = BLOCKS) -> str:
    """A column for each value, or for the mean of neighbouring ones where there are more than `width`. The scale goes
    from 0, which alone has the lowest level, to the greatest."""
    count = len(values)
    columns = min(width, count)
    means = []
    for column in range(columns):
        part = values[column * count // columns : (column + 1) * count // columns]
        means.append(sum(part) / len(part))
    top = max(means, default=0.0)
    return "".join(levels[0 if mean <= 0 else 1 + round((len(levels) - 2) * mean / top)] for mean in means)

"""What a pass costs on this machine: seconds by width for the target, seconds a step for the draft model.

Measured (`measuring`), then followed with every real pass, since costs change with the weather
of a machine. Curves are not convex (kernels switch at some widths), so a table is kept, not a formula. What a longer
context adds is a formula: reading its keys and values once a pass, and attending to them from each token.
"""

from bisect import bisect_left
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

MEASURED_WIDTHS: Final = (1, 2, 3, 4, 6, 8, 16, 32)
GRID: Final = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_WEIGHT: Final = 0.25
"""How far an observation moves the entry of its own width."""
_NEW: Final = 8.0
"""A surprise of a width seen n times is put down to the machine, which slows down or speeds up for every width and for
the draft model, by (1 + n) / (8 + n), and by the rest to that width: its entry may have been wrong from the start."""
_MOST_SEEN: Final = 70.0
"""More passes than that say nothing more: a tenth of every surprise stays with the width, whose cost may change too."""
_STALL: Final = 1.5
"""A pass slower than expected by more counts as this much slower: one stall of the machine says little, many do."""
_MOVED: Final = 0.5
"""Surprises of other widths that add up to this since a plain pass was seen leave what one takes in doubt: entries have
moved by an eighth."""
_OFF: Final = 0.15
"""So does a plain pass that surprises by more than this itself."""


class CostTable(msgspec.Struct):
    """Seconds of target passes by width, over `GRID` and behind nothing, and of one step of the draft model."""

    target_s: list[float]
    draft_step_s: float | None = None
    draft_read_s: float | None = None
    """Seconds a token when the draft model reads many at once (catching up)."""
    host_s: float = 0.001
    """Seconds of a round outside the models."""
    context_s: float = 0.0
    """What each token in the KV cache adds to a target pass of any width: its keys and values are read once."""
    pair_s: float = 0.0
    """What each token in the KV cache adds for each token of the pass, which attends to it."""
    skipped: tuple[int, ...] = ()
    """Layers that a draft made of the target leaves out, where they were chosen: the step is one without them."""
    seen: list[float] = msgspec.field(default_factory=lambda: [0.0] * len(GRID))
    """Real passes of each width that the table was followed by."""
    known: bool = True
    """False before anything was measured: the seconds mean nothing then."""
    drift: float = 0.0
    """How far passes have surprised, in sum, since a plain one was seen; in parts of what was expected."""

    @property
    def plain_s(self) -> float:
        """Seconds of a round without a draft."""
        return self.target(1) + self.host_s

    @property
    def plain_in_doubt(self) -> bool:
        """Whether the machine has changed so much since a plain pass was seen that another one should be: where drafts
        seem to pay there are none, and a plain pass measured on a busy machine makes every draft seem to pay."""
        return abs(self.drift) > _MOVED

    def at(self, context: int) -> "CostTable":
        """The table behind `context` tokens."""
        if self.context_s == 0 and self.pair_s == 0:
            return self
        grown = [
            seconds + context * (self.context_s + width * self.pair_s)
            for width, seconds in zip(GRID, self.target_s, strict=True)
        ]
        return CostTable(grown, self.draft_step_s, self.draft_read_s, self.host_s, known=self.known)

    def target(self, width: int) -> float:
        """Expected seconds of a target pass over `width` tokens (1 to 128, the widest pass of a round)."""
        return _interpolate(self.target_s, width)

    def targets(self, longest: int) -> npt.NDArray[np.float64]:
        """Expected seconds of passes over 2, 3, …, `longest` tokens."""
        return np.interp(np.arange(2, longest + 1), GRID, self.target_s)

    def observe_target(self, width: int, seconds: float, context: int = 0) -> None:
        """Takes in what a real pass behind `context` tokens took. A surprise is put down to the pass itself and to the
        context in proportion to what each was expected to take."""
        if not self.known:
            return
        base, reading, attending = self.target(width), context * self.context_s, context * width * self.pair_s
        expected = base + reading + attending
        surprise = min(seconds / expected, _STALL) - 1
        self.drift = surprise * _MOVED / _OFF if width == 1 else self.drift + surprise
        shared = self._see(width, base / expected * surprise)
        self.draft_step_s = self.draft_step_s and self.draft_step_s * (1 + shared)
        self.draft_read_s = self.draft_read_s and self.draft_read_s * (1 + shared)
        self.context_s *= 1 + _WEIGHT * reading / expected * surprise
        self.pair_s *= 1 + _WEIGHT * attending / expected * surprise

    def _see(self, width: int, surprise: float) -> float:
        """Moves the entries of all widths, that of `width` most; returns how far all have moved."""
        right = min(bisect_left(GRID, width), len(GRID) - 1)
        left = right if width >= GRID[right] else right - 1
        near = (width - GRID[left]) / (GRID[right] - GRID[left]) if right > left else 1.0
        own = {left: 1 - near, right: near}
        seen = sum(share * self.seen[i] for i, share in own.items())
        shared = _WEIGHT * (1 + seen) / (_NEW + seen)
        for i in range(len(GRID)):
            self.target_s[i] *= 1 + (shared + (_WEIGHT - shared) * own.get(i, 0.0)) * surprise
            self.seen[i] = min(self.seen[i] + own.get(i, 0.0), _MOST_SEEN)
        return shared * surprise

    def observe_draft(self, steps: int, seconds: float) -> None:
        """Takes in what `steps` passes of the draft model took."""
        if steps > 0:
            self.draft_step_s = _follow(self.draft_step_s, seconds / steps)

    def observe_draft_read(self, tokens: int, seconds: float) -> None:
        """Takes in what reading `tokens` at once took the draft model."""
        if tokens > 0:
            self.draft_read_s = _follow(self.draft_read_s, seconds / tokens)

    def observe_host(self, seconds: float) -> None:
        """Takes in a round's seconds outside the models."""
        self.host_s = _follow(self.host_s, seconds)


def _interpolate(seconds: list[float], width: int) -> float:
    right = min(bisect_left(GRID, width), len(GRID) - 1)
    if GRID[right] <= width:
        return seconds[right]
    left = right - 1
    share = (width - GRID[left]) / (GRID[right] - GRID[left])
    return seconds[left] + (seconds[right] - seconds[left]) * share


def _follow(known: float | None, seen: float) -> float:
    if known is None:
        return seen
    return known + 0.1 * (min(seen, _STALL * known) - known)

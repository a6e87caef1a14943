"""How soon prompt lookup will be back, once it has lost its match, and how fast it is then.

In copied text with edits a draft model only has to bridge the gaps. The tokens behind a gap cost next to nothing when
lookup drafts them, so they are worth less to a draft of the model that runs on into them.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from specengine.draft import Draft

_LIVE: Final = 4.0
"""Match length from which lookup counts as back."""
_FIRST_GAP: Final = 10.0
"""Tokens of a gap, before any was seen."""
_MEMORY: Final = 0.8
"""What is left of earlier gaps and rounds after one more."""


class Resumption:
    """Learns from rounds; gaps are taken as geometrically distributed."""

    def __init__(self) -> None:
        self._gaps = 1.0
        self._gap_tokens = _FIRST_GAP
        self._open = 0
        """Tokens since lookup lost its match; 0 while it has one."""
        self._tokens = 0.0
        self._seconds = 0.0
        """Of recent rounds in which lookup drafted."""

    def see(self, lookup: Draft) -> None:
        """Takes in what lookup proposes for the next round."""
        if not self._open or not len(lookup):
            return
        match_length = lookup.evidence[0]
        if match_length >= _LIVE:
            # A longer match began earlier, inside the last round: the gap ended there.
            gap = max(1.0, self._open - (match_length - _LIVE))
            self._gaps = self._gaps * _MEMORY + 1
            self._gap_tokens = self._gap_tokens * _MEMORY + gap
            self._open = 0

    def observe(self, verified: Draft, emitted: int, seconds: float) -> None:
        """Takes in a round that emitted so many tokens."""
        if verified.source == "lookup":
            self._tokens = self._tokens * _MEMORY + emitted
            self._seconds = self._seconds * _MEMORY + seconds
            self._open = 1 if emitted <= len(verified) else 0
        else:
            self._open += emitted

    def worth(self, count: int, rate: float) -> npt.NDArray[np.float64]:
        """What each of the next `count` tokens is worth to a draft that goes at `rate` tokens a second: 1 for one that
        only it can give, less where lookup is likely to be back and faster."""
        if self._seconds == 0 or rate * self._seconds >= self._tokens:
            return np.ones(count)
        still_open = (1 - self._gaps / self._gap_tokens) ** np.arange(1, count + 1)
        worth: npt.NDArray[np.float64] = still_open + (1 - still_open) * rate * self._seconds / self._tokens
        return worth

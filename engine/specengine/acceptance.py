"""How likely is a drafted token to be accepted? Estimated per source from evidence known before verifying.

Counts in bins of evidence, forgotten exponentially. A token behind a rejected one was never seen, so it counts nowhere.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_RECENT: Final = 0.95
"""The same for the recent mean over all bins."""


class AcceptanceEstimate:
    """Acceptance probability as a function of evidence, learned from what the target emitted."""

    def __init__(
        self,
        edges: Sequence[float],
        prior: Sequence[float],
        strength: float,
        first_mean: float,
        memory: float = 0.985,
    ) -> None:
        """`edges` divide evidence into len(edges) + 1 bins; `prior` has one probability a bin, worth `strength`
        observations; `first_mean` is the recent mean before any; `memory` is what is left of a bin's counts after one
        more observation."""
        self._memory = memory
        self._edges = np.asarray(edges, dtype=np.float64)
        self._seen = np.full(len(prior), strength)
        self._accepted = np.asarray(prior, dtype=np.float64) * strength
        self.recent = first_mean
        """Mean acceptance of the last few dozen observed tokens."""

    def probabilities(self, evidence: Sequence[float]) -> npt.NDArray[np.float64]:
        """Acceptance probability of each token, given that the ones before it were accepted."""
        bins = np.searchsorted(self._edges, np.asarray(evidence), side="right")
        rates: npt.NDArray[np.float64] = self._accepted[bins] / self._seen[bins]
        return rates

    def probability(self, evidence: float) -> float:
        i = bisect_right(self._edges, evidence)
        return float(self._accepted[i] / self._seen[i])

    def observe(self, evidence: Sequence[float], drafted: Sequence[int], emitted: Sequence[int]) -> None:
        """Scores a proposal against what the target emitted after the same tokens, verified or not."""
        for quality, token, truth in zip(evidence, drafted, emitted, strict=False):
            hit = float(token == truth)
            i = bisect_right(self._edges, quality)
            self._seen[i] = self._seen[i] * self._memory + 1
            self._accepted[i] = self._accepted[i] * self._memory + hit
            self.recent = self.recent * _RECENT + hit * (1 - _RECENT)
            if not hit:
                break


def lookup_estimate() -> AcceptanceEstimate:
    """For prompt lookup: evidence is the match length. Optimistic where matches are long."""
    return AcceptanceEstimate(
        edges=(1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 32, 64),
        prior=(0.15, 0.35, 0.45, 0.60, 0.70, 0.80, 0.86, 0.90, 0.92, 0.94, 0.96, 0.98, 0.99),
        strength=16.0,
        first_mean=0.5,
        memory=0.998,
    )


def model_estimate() -> AcceptanceEstimate:
    """For a draft model: evidence is its top probability."""
    return AcceptanceEstimate(
        edges=(0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99),
        prior=(0.25, 0.40, 0.55, 0.70, 0.80, 0.88, 0.94, 0.98),
        strength=16.0,
        first_mean=0.8,
    )

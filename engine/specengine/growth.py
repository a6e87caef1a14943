"""How far a draft model goes, decided token by token (`draft.Growth`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specengine.acceptance import AcceptanceEstimate


@dataclass(frozen=True, slots=True)
class BestRateGrowth:
    """Goes on while more is expected of it than its time is worth at the rate that was expected of the round.

    What was spent on drafting is spent: it stays in the time of the round.
    """

    estimate: AcceptanceEstimate
    worth: Sequence[float]
    """What each drafted token is worth once accepted (`resumption.Resumption.worth`); as many as may be drafted."""
    rate: float
    """Tokens per second."""
    lookup: AcceptanceEstimate
    """Of prompt lookup, which may go on where the draft model stops."""
    step_s: float
    """A step of the draft model,"""
    rounds_s: Sequence[float]
    """a round that drafts 0, 1, 2, … tokens, as many as the draft model may,"""
    widths_s: npt.NDArray[np.float64]
    """and a round without its draft whose target pass is over 2, 3, … tokens, as many as there is room for. Seconds."""

    def runs_on(self, evidence: Sequence[float]) -> bool:
        reach, expected = self._so_far(evidence)
        return self._best_ahead(reach, expected, len(evidence)) > self._surplus(expected, len(evidence), len(evidence))

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        reach, expected = self._so_far(evidence)
        k = len(evidence)
        reach_next = reach * self.estimate.probability(confidence)
        expected_next = expected + reach_next * self.worth[k]
        stop_now = self._surplus(expected, k, k + 1)
        take = self._surplus(expected_next, k + 1, k + 1)
        return max(take, self._best_ahead(reach_next, expected_next, k + 1)) > stop_now

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:
        """All that prompt lookup would go on with that is worth its width, unless more is expected of another token of
        the draft model before it: where that says the same, lookup has one more token to go by; where not, lookup would
        have been wrong, and its whole run for nothing."""
        k = len(evidence)
        widths_s = self.widths_s[k : k + len(matches)] + k * self.step_s
        if not len(widths_s):
            return 0
        reach, expected = self._so_far(evidence)
        more = k < len(self.worth)
        if more and reach * (self.estimate.recent - self.lookup.probability(matches[0])) >= self.rate * self.step_s:
            return 0  # another token brings more by what it is right in beyond lookup: no need to look at its run
        chances = self.lookup.probabilities(matches[: len(widths_s)])
        now = expected + reach * np.cumsum(np.cumprod(chances)) - self.rate * widths_s
        best = int(np.argmax(now))
        if now[best] <= self._surplus(expected, k, k):
            return 0
        if more and now[best] <= self._after_another(reach, expected, chances, widths_s):
            return 0
        return best + 1 if now[best] > self._best_ahead(reach, expected, k) else 0

    def _after_another(
        self, reach: float, expected: float, chances: npt.NDArray[np.float64], widths_s: npt.NDArray[np.float64]
    ) -> float:
        """Surplus if the draft model draws one more token before lookup goes on. It says what lookup says in as many
        cases as lookup is right; it is right in `recent` of all."""
        same = float(chances[0])
        other = max(0.0, self.estimate.recent - same)
        run = np.concatenate([[1.0], 1.0 + np.cumsum(np.cumprod(chances[1:]))])
        agreed = float(np.max(expected + reach * run - self.rate * widths_s))
        alone = expected - self.rate * float(widths_s[0])
        return same * agreed + (1 - same) * alone + reach * other - self.rate * self.step_s

    def _best_ahead(self, reach: float, expected: float, drafted: int) -> float:
        """Best surplus over all longer drafts, if further tokens are accepted at the recent mean."""
        best, recent, rate = float("-inf"), self.estimate.recent, self.rate
        for k in range(drafted + 1, len(self.worth) + 1):
            reach *= recent
            expected += reach * self.worth[k - 1]
            best = max(best, expected - rate * self.rounds_s[k])
        return best

    def _so_far(self, evidence: Sequence[float]) -> tuple[float, float]:
        reach, expected = 1.0, 1.0
        for confidence, worth in zip(evidence, self.worth, strict=False):
            reach *= self.estimate.probability(confidence)
            expected += reach * worth
        return reach, expected

    def _surplus(self, expected: float, drafted: int, passes: int) -> float:
        """Tokens expected beyond those that the round's time is worth."""
        return expected - self.rate * (self.rounds_s[drafted] + (passes - drafted) * self.step_s)


@dataclass(frozen=True, slots=True)
class SureGrowth:
    """Goes on while the draft model is sure of its next token: a probe that would fail ends after one draft pass."""

    least: float
    """Least top probability of a token that is drawn."""

    def runs_on(self, evidence: Sequence[float]) -> bool:  # noqa: ARG002 - as every Growth
        return True

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:  # noqa: ARG002
        return confidence >= self.least

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:  # noqa: ARG002
        return 0

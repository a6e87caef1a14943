"""How far a draft model goes, decided token by token (`draft.Growth`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from specengine.acceptance import AcceptanceEstimate
from specengine.costs import CostTable


@dataclass(frozen=True, slots=True)
class BestRateGrowth:
    """Goes on while more is expected of it than its time is worth at the rate that was expected of the round.

    What was spent on drafting is spent: it stays in the time of the round.
    """

    costs: CostTable
    estimate: AcceptanceEstimate
    worth: npt.NDArray[np.float64]
    """What each drafted token is worth once accepted (`resumption.Resumption.worth`); as many as may be drafted."""
    rate: float
    """Tokens per second."""
    lookup: AcceptanceEstimate
    """Of prompt lookup, which may go on where the draft model stops."""

    def runs_on(self, evidence: Sequence[float]) -> bool:
        reach, expected = self._so_far(evidence)
        return self._best_ahead(reach, expected, len(evidence)) > self._surplus(expected, len(evidence), len(evidence))

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        reach, expected = self._so_far(evidence)
        k = len(evidence)
        reach_next = reach * self.estimate.probability(confidence)
        expected_next = expected + reach_next * float(self.worth[k])
        stop_now = self._surplus(expected, k, k + 1)
        take = self._surplus(expected_next, k + 1, k + 1)
        return max(take, self._best_ahead(reach_next, expected_next, k + 1)) > stop_now

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:
        """All that prompt lookup would go on with that is worth its width, unless more is expected of another token of
        the draft model before it: where that says the same, lookup has one more token to go by; where not, lookup would
        have been wrong, and its whole run for nothing."""
        if not matches:
            return 0
        reach, expected = self._so_far(evidence)
        k, most = len(evidence), len(matches)
        chances = self.lookup.probabilities(matches)
        widths_s = self.costs.targets(k + most + 1)[k:] + k * self._step_s + self.costs.host_s
        now = expected + reach * np.cumsum(np.cumprod(chances)) - self.rate * widths_s
        best = int(np.argmax(now))
        later = self._after_another(reach, expected, chances, widths_s) if k < len(self.worth) else float("-inf")
        ahead = self._best_ahead(reach, expected, k)
        return best + 1 if now[best] > max(self._surplus(expected, k, k), ahead, later) else 0

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
        return same * agreed + (1 - same) * alone + reach * other - self.rate * self._step_s

    def _best_ahead(self, reach: float, expected: float, drafted: int) -> float:
        """Best surplus over all longer drafts, if further tokens are accepted at the recent mean."""
        best = float("-inf")
        for k in range(drafted + 1, len(self.worth) + 1):
            reach *= self.estimate.recent
            expected += reach * float(self.worth[k - 1])
            best = max(best, self._surplus(expected, k, k))
        return best

    def _so_far(self, evidence: Sequence[float]) -> tuple[float, float]:
        if not evidence:
            return 1.0, 1.0
        reach = np.cumprod(self.estimate.probabilities(evidence))
        return float(reach[-1]), 1.0 + float((reach * self.worth[: len(evidence)]).sum())

    def _surplus(self, expected: float, drafted: int, passes: int) -> float:
        """Tokens expected beyond those that the round's time is worth."""
        seconds = passes * self._step_s + self.costs.target(drafted + 1) + self.costs.host_s
        return expected - self.rate * seconds

    @property
    def _step_s(self) -> float:
        return self.costs.draft_step_s or 0.0


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

"""What is a draft worth now? Each round takes the source and length with the best expected tokens per expected second.

For k drafted tokens with probabilities R_i that the first i are all accepted, a round is expected to emit
E = 1 + Σ_{i≤k} R_i tokens (Leviathan 2023, equation 1, with unequal acceptance) and to take
T = time to draft k + target pass of width k + 1 + host. The candidate with the greatest E / T wins, k = 0 included,
over the whole cost table. A running average rate takes no part: valuing time by it locks drafting out after a fast
stretch.

No clock and no I/O in here: costs and outcomes come in as data, so whole runs can be replayed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from specengine.acceptance import AcceptanceEstimate, lookup_estimate, model_estimate
from specengine.costs import CostTable
from specengine.draft import PLAIN, Draft, Plan
from specengine.settings import Speculation

MAX_MODEL_GAMMA: Final = 16
PROBE_TOKENS: Final = 2
PROBE_SHARE: Final = 0.01
"""Part of decoding time that may go into probing a draft model that is off."""
MOST_BUDGET_S: Final = 60.0
RECOUP_TOKENS: Final = 64
"""A draft model that lags behind may catch up at once if that pays within this many tokens."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a decision depends on, besides costs and estimates."""

    lookup: Draft
    """What prompt lookup proposes; empty if it has nothing or is off."""
    model_available: bool
    model_missing: int
    """Tokens that the draft model must read before its first step, beyond a normal round's."""
    room: int
    """Most tokens that a draft may have: what context, limits and row count leave."""
    speculation: Speculation
    gamma: int | None
    """A draft length fixed by the user."""
    context: int = 0
    """Committed tokens: passes cost more behind a longer context."""


@dataclass(slots=True)
class Gamma:
    """Costs, acceptance estimates and the budget for probes: the memory behind the decisions."""

    costs: CostTable
    lookup: AcceptanceEstimate = field(default_factory=lookup_estimate)
    model: AcceptanceEstimate = field(default_factory=model_estimate)
    probe_budget_s: float = 0.0

    def plan(self, now: Situation) -> Plan:
        """The source and length of this round's draft."""
        if now.speculation == "off" or now.room < 1:
            return PLAIN
        if now.gamma is not None:
            return _fixed(now, now.gamma)
        costs = self.costs.at(now.context)
        plain = _Candidate(PLAIN, 1.0 / costs.plain_s)
        candidates = [self._lookup_candidate(now, costs), self._model_candidate(now, costs)]
        best = max((c for c in candidates if c is not None), key=lambda c: c.rate, default=plain)
        if now.speculation == "on" and best is not plain:
            return best.plan
        if best.rate > plain.rate:
            return best.plan
        return self._probe(now, costs) or PLAIN

    def observe(self, lookup: Draft, verified: Draft, plan: Plan, emitted: Sequence[int], seconds: float) -> None:
        """Learns from a round: the silent lookup proposal and the verified draft against what the target emitted.

        `seconds` is what the round took, drafting included.
        """
        self.lookup.observe(lookup.evidence, lookup.tokens, emitted)
        if verified.source == "draft":
            self.model.observe(verified.evidence, verified.tokens, emitted)
        if plan.probe:
            self.probe_budget_s -= max(0.0, seconds - self.costs.plain_s)
        else:
            self.probe_budget_s = min(self.probe_budget_s + PROBE_SHARE * seconds, MOST_BUDGET_S)

    def model_can_pay(self) -> bool:
        """Whether the draft model could pay if every token of it were accepted. If not, it isn't even read in."""
        costs, step = self.costs, self.costs.draft_step_s
        if step is None:
            return False
        return any(
            (k + 1) * costs.plain_s > k * step + costs.target(k + 1) + costs.host_s
            for k in range(1, MAX_MODEL_GAMMA + 1)
        )

    def _lookup_candidate(self, now: Situation, costs: CostTable) -> "_Candidate | None":
        limit = min(len(now.lookup), now.room)
        if limit < 1:
            return None
        reach = np.cumprod(self.lookup.probabilities(now.lookup.evidence[:limit]))
        expected = 1.0 + np.cumsum(reach)
        rates = expected / (costs.targets(limit + 1) + costs.host_s)
        best = int(np.argmax(rates))
        return _Candidate(Plan("lookup", best + 1), float(rates[best]))

    def _model_candidate(self, now: Situation, costs: CostTable) -> "_Candidate | None":
        if not now.model_available or not self.model_can_pay():
            return None
        assert costs.draft_step_s is not None
        growth = RatioGrowth(costs, self.model, min(now.room, MAX_MODEL_GAMMA))
        rate = growth.best_ahead(1.0, 1.0, 0)
        plain = 1.0 / (costs.plain_s)
        catch_up_s = now.model_missing * (costs.draft_read_s or costs.draft_step_s)
        gain_s = RECOUP_TOKENS / plain - RECOUP_TOKENS / rate
        if catch_up_s > 0 and catch_up_s > gain_s:
            return None
        return _Candidate(Plan("draft", growth.limit, growth), rate)

    def _probe(self, now: Situation, costs: CostTable) -> Plan | None:
        if not now.model_available or not self.model_can_pay() or costs.draft_step_s is None:
            return None
        limit = min(PROBE_TOKENS, now.room)
        read_s = now.model_missing * (costs.draft_read_s or costs.draft_step_s)
        extra_s = costs.target(limit + 1) - costs.target(1)
        if read_s + limit * costs.draft_step_s + extra_s > self.probe_budget_s:
            return None
        return Plan("draft", limit, probe=True)


@dataclass(frozen=True, slots=True)
class RatioGrowth:
    """How far a draft model goes: on while the best rate reachable from here beats stopping now.

    What was spent on drafting is spent: it stays in the time of the round.
    """

    costs: CostTable
    estimate: AcceptanceEstimate
    limit: int

    def runs_on(self, evidence: Sequence[float]) -> bool:
        reach, expected = self._so_far(evidence)
        return self.best_ahead(reach, expected, len(evidence)) > self._rate(expected, len(evidence), len(evidence))

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        reach, expected = self._so_far(evidence)
        k = len(evidence)
        reach_next = reach * self.estimate.probability(confidence)
        stop_now = self._rate(expected, k, k + 1)
        take = self._rate(expected + reach_next, k + 1, k + 1)
        return max(take, self.best_ahead(reach_next, expected + reach_next, k + 1)) > stop_now

    def best_ahead(self, reach: float, expected: float, drafted: int) -> float:
        """Best rate over all longer drafts, if further tokens are accepted at the recent mean."""
        best = 0.0
        for k in range(drafted + 1, self.limit + 1):
            reach *= self.estimate.recent
            expected += reach
            best = max(best, self._rate(expected, k, k))
        return best

    def _so_far(self, evidence: Sequence[float]) -> tuple[float, float]:
        reach = np.cumprod(self.estimate.probabilities(evidence)) if evidence else np.ones(0)
        return (float(reach[-1]) if evidence else 1.0), 1.0 + float(reach.sum())

    def _rate(self, expected: float, drafted: int, passes: int) -> float:
        seconds = passes * (self.costs.draft_step_s or 0.0) + self.costs.target(drafted + 1) + self.costs.host_s
        return expected / seconds


@dataclass(frozen=True, slots=True)
class _Candidate:
    plan: Plan
    rate: float
    """Expected tokens per second."""


def _fixed(now: Situation, gamma: int) -> Plan:
    limit = min(gamma, now.room)
    if limit >= 1 and len(now.lookup):
        return Plan("lookup", min(limit, len(now.lookup)))
    if limit >= 1 and now.model_available:
        return Plan("draft", limit)
    return PLAIN

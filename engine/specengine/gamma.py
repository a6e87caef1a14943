"""What is a draft worth now? Each round takes the source and length with the best expected tokens per expected second.

For k drafted tokens with probabilities R_i that the first i are all accepted, a round is expected to emit
E = 1 + Σ_{i≤k} R_i tokens (Leviathan 2023, equation 1, with unequal acceptance) and to take
T = time to draft k + target pass of width k + 1 + host. The candidate with the greatest E / T wins, k = 0 included,
over the whole cost table. A running average rate takes no part: valuing time by it locks drafting out after a fast
stretch.

No clock and no I/O in here: costs and outcomes come in as data, so whole runs can be replayed (`replay`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from specengine.acceptance import AcceptanceEstimate, lookup_estimate, model_estimate
from specengine.costs import CostTable
from specengine.draft import PLAIN, Draft, Plan
from specengine.growth import BestRateGrowth, SureGrowth
from specengine.resumption import Resumption
from specengine.settings import Speculation

MAX_MODEL_GAMMA: Final = 16
LEAST_GAIN: Final = 1.02
"""A draft must promise this many times the plain rate: estimates err, and those that err upwards are taken up."""
PROBE_TOKENS: Final = 3
_PROBE_GROWTH: Final = SureGrowth(0.8)
PROBE_SHARE: Final = 0.01
"""Part of decoding time that may be lost to probing a draft model that is off."""
FIRST_PROBES_TOKENS: Final = 4.0
"""What may be lost to the first probes, before any decoding: the time of so many plain tokens. Where reading a short
prompt costs less, an answer needn't be half over before the draft model is known; where it costs more, what is lost
would show in an answer that drafts can't speed up."""
FIRST_PROBES_ACCEPTANCE: Final = 0.9
"""They are made where the draft model would pay at this acceptance: where it had to be better still, most models stay
off, and short answers would pay for finding that out."""
MOST_BUDGET_S: Final = 60.0
MOST_CHECKS: Final = 8.0
CHECKS_SHARE: Final = 1 / 32
"""Part of rounds that may be plain only to see what a plain pass takes now: where times jump, doubt never ends."""


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
    """Costs, acceptance estimates and budgets: the memory behind the decisions."""

    costs: CostTable
    lookup: AcceptanceEstimate = field(default_factory=lookup_estimate)
    model: AcceptanceEstimate = field(default_factory=model_estimate)
    resumption: Resumption = field(default_factory=Resumption)
    probe_budget_s: float = 0.0
    checks: float = MOST_CHECKS
    """Plain rounds that may still be spent on seeing what a plain pass takes."""
    missed_gain_s: float = 0.0
    """What the draft model would have saved, had it read what it lacks."""

    def plan(self, now: Situation) -> Plan:
        """The source and length of this round's draft."""
        if now.speculation == "off" or now.room < 1:
            return PLAIN
        if now.gamma is not None:
            return _fixed(now, now.gamma)
        self.resumption.see(now.lookup)
        costs = self.costs.at(now.context)
        plain = _Candidate(PLAIN, LEAST_GAIN / costs.plain_s)
        lookup = self._lookup_candidate(now, costs)
        best = max((plain, lookup), key=lambda c: c.rate) if lookup else plain
        model = self._model_candidate(now, costs, best.rate)
        if now.speculation == "on":
            drafts = [candidate for candidate in (lookup, model) if candidate]
            return max(drafts, key=lambda c: c.rate).plan if drafts else PLAIN
        if model and model.rate > best.rate:
            best = model
        if best is not plain and self.costs.plain_in_doubt and self.checks >= 1:
            self.checks -= 1
            return PLAIN
        return best.plan if best is not plain else self._probe(now, costs) or PLAIN

    def observe(self, lookup: Draft, verified: Draft, plan: Plan, emitted: Sequence[int], seconds: float) -> None:
        """Learns from a round: the silent lookup proposal and the verified draft against what the target emitted.

        `seconds` is what the round took, drafting included.
        """
        self.checks = min(self.checks + CHECKS_SHARE, MOST_CHECKS)
        self.lookup.observe(lookup.evidence, lookup.tokens, emitted)
        self.resumption.observe(verified, len(emitted), seconds)
        if verified.source == "draft":
            self.model.observe(verified.evidence, verified.tokens, emitted)
            if len(emitted) > verified.drawn:
                self.lookup.observe(verified.copied, verified.tokens[verified.drawn :], emitted[verified.drawn :])
        if plan.probe:
            self.probe_budget_s -= max(0.0, seconds - len(emitted) * self.costs.plain_s)
        else:
            self.probe_budget_s = min(self.probe_budget_s + PROBE_SHARE * seconds, MOST_BUDGET_S)

    def model_can_pay(self, acceptance: float = 1.0) -> bool:
        """Whether the draft model would pay at this acceptance. If not even at 1, it is neither read in nor probed."""
        costs, step = self.costs, self.costs.draft_step_s
        if step is None:
            return False
        lengths = np.arange(1, MAX_MODEL_GAMMA + 1)
        expected = 1.0 + np.cumsum(acceptance**lengths)
        seconds = lengths * step + costs.targets(MAX_MODEL_GAMMA + 1) + costs.host_s
        return bool(np.any(expected * costs.plain_s > seconds))

    def _lookup_candidate(self, now: Situation, costs: CostTable) -> "_Candidate | None":
        limit = min(len(now.lookup), now.room)
        if limit < 1:
            return None
        reach = np.cumprod(self.lookup.probabilities(now.lookup.evidence[:limit]))
        rates = (1.0 + np.cumsum(reach)) / (costs.targets(limit + 1) + costs.host_s)
        best = int(np.argmax(rates))
        return _Candidate(Plan("lookup", best + 1), float(rates[best]))

    def _model_candidate(self, now: Situation, costs: CostTable, other_rate: float) -> "_Candidate | None":
        """The draft model, if it has read the context or it is time to let it: what reading costs is paid once as much
        was missed by not having read."""
        if not now.model_available or not self.model_can_pay():
            return None
        assert costs.draft_step_s is not None
        limit = min(now.room, MAX_MODEL_GAMMA)
        lengths = np.arange(1, limit + 1)
        seconds = lengths * costs.draft_step_s + costs.targets(limit + 1) + costs.host_s
        reach = self.model.recent**lengths
        worth = self.resumption.worth(limit, float(np.max((1.0 + np.cumsum(reach)) / seconds)))
        expected: npt.NDArray[np.float64] = 1.0 + np.cumsum(reach * worth)
        gain_s = float(np.max(expected / other_rate - seconds))
        if now.model_missing:
            self.missed_gain_s += max(0.0, gain_s)
            read_s = now.model_missing * (costs.draft_read_s or costs.draft_step_s)
            if now.speculation == "auto" and read_s > self.missed_gain_s:
                return None
        rate = float(np.max(expected / seconds))
        if rate > other_rate:
            self.missed_gain_s = 0.0
        growth = BestRateGrowth(
            self.model,
            worth.tolist(),
            max(rate, other_rate),
            self.lookup,
            costs.draft_step_s,
            [costs.plain_s, *seconds.tolist()],
            costs.targets(now.room + 1) + costs.host_s,
        )
        return _Candidate(Plan("draft", limit, growth), rate)

    def _probe(self, now: Situation, costs: CostTable) -> Plan | None:
        if not now.model_available or not self.model_can_pay() or costs.draft_step_s is None:
            return None
        limit = min(PROBE_TOKENS, now.room)
        read_s = now.model_missing * (costs.draft_read_s or costs.draft_step_s)
        extra_s = costs.target(limit + 1) - costs.target(1)
        first_s = FIRST_PROBES_TOKENS * costs.plain_s if self.model_can_pay(FIRST_PROBES_ACCEPTANCE) else 0.0
        if read_s + limit * costs.draft_step_s + extra_s > self.probe_budget_s + first_s:
            return None
        return Plan("draft", limit, _PROBE_GROWTH, probe=True)


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

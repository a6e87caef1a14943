"""Why drafts were as long as they were: counts of rounds while an answer is made, and at its end what the measured
costs and the acceptance so far say of each source."""

from typing import Final

import numpy as np

from specengine.advice import advise
from specengine.controls import Controls
from specengine.costs import CostTable
from specengine.draft import Draft, Plan
from specengine.gamma import LEAST_GAIN, Gamma
from specengine.stats import Why

_SHORTEST_MATCH: Final = 2
"""The shortest that prompt lookup finds; evidence is less where it is doubted."""
_LONGEST_MATCH: Final = 64
"""Match lengths looked at, and tokens of a run."""


def see(why: Why, controls: Controls, proposal: Draft, plan: Plan) -> None:
    """Counts a round by what was decided in it, before its draft is made."""
    if controls.speculation == "off":
        why.off += 1
    elif controls.gamma is not None:
        why.fixed += 1
    else:
        why.free += 1
        why.probes += plan.probe
        if len(proposal):
            why.offered += 1
            _see_match(why, proposal.evidence[0], plan.source == proposal.source)


def see_copied(why: Why, proposal: Draft, draft: Draft) -> None:
    """Counts what prompt lookup put behind a draft model's tokens; `proposal` is what it had without them."""
    if draft.copied:
        why.offered += not len(proposal)
        why.behind += 1


def conclude(why: Why, gamma: Gamma, context: int, draft_model: bool) -> None:
    """Adds what holds at the end of an answer, behind `context` tokens; `draft_model` says whether there is one."""
    costs = gamma.costs.at(context)
    if (needs := shortest_paying_match(gamma, costs)) is not None:
        why.lookup_needs = max(_SHORTEST_MATCH, needs)
        why.lookup_acceptance = gamma.lookup.probability(why.lookup_needs)
    advice = advise(gamma.costs, "draft", context)
    why.best = advice.lookup.best
    why.two_tokens = advice.two_tokens
    if draft_model and advice.draft is not None:
        why.c = advice.c
        why.draft_needs, why.draft_needs_gamma = advice.draft.needed, advice.draft.needed_gamma
        why.draft_acceptance = gamma.model.recent


def shortest_paying_match(gamma: Gamma, costs: CostTable) -> int | None:
    """The shortest match from which lookup is expected to pay, by the acceptance seen so far; None if none is."""
    seconds = costs.targets(_LONGEST_MATCH + 1) + costs.host_s
    chances = gamma.lookup.probabilities(range(2 * _LONGEST_MATCH))
    for match in range(1, _LONGEST_MATCH + 1):
        expected = 1.0 + np.cumsum(np.cumprod(chances[match : match + _LONGEST_MATCH]))
        if np.max(expected / seconds) > LEAST_GAIN / costs.plain_s:
            return match
    return None


def _see_match(why: Why, evidence: float, drafted: bool) -> None:
    length = max(_SHORTEST_MATCH, int(evidence))
    if drafted:
        why.shortest_taken = length if why.shortest_taken is None else min(why.shortest_taken, length)
    else:
        why.longest_left = length if why.longest_left is None else max(why.longest_left, length)

"""The best that could have been done with an answer, known afterwards: by every fixed setting, and round by round.

A fixed setting drafts up to so many tokens of prompt lookup whenever it has a proposal, else up to so many of the
draft model, else nothing. What it does doesn't depend on costs: its passes are counted once, and priced by any table.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np

from specengine.costs import CostTable
from specengine.drafters.lookup import PromptLookup
from specengine.replay import MOST_DRAFTED, shared_prefix
from specengine.trace import Trace

LOOKUP_LENGTHS: Final = (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 56, 63)
DRAFT_LENGTHS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15)


@dataclass(frozen=True, slots=True, order=True)
class Fixed:
    """Draft lengths; 0 leaves a source out, both 0 is plain decoding."""

    lookup: int
    draft: int

    def __str__(self) -> str:
        parts = [f"lookup {self.lookup}"] * bool(self.lookup) + [f"draft {self.draft}"] * bool(self.draft)
        return " + ".join(parts) or "plain"


PLAIN: Final = Fixed(0, 0)


def fixed_settings(with_draft: bool) -> list[Fixed]:
    """Plain, lookup alone, the draft model alone, and their pairs."""
    drafts = (0, *DRAFT_LENGTHS) if with_draft else (0,)
    return [Fixed(lookup, draft) for lookup, draft in product((0, *LOOKUP_LENGTHS), drafts)]


@dataclass(frozen=True, slots=True)
class Hindsight:
    """An answer, with all that could have been drafted at each of its positions."""

    tokens: int
    context: int
    """Tokens before the answer."""
    unread: int
    """How many of them are new to a draft model that took part in the turns before."""
    proposed: tuple[int, ...]
    """Length of prompt lookup's proposal at each position,"""
    matched: tuple[int, ...]
    """and how many of its tokens, from the first on, would have been accepted."""
    agreed: tuple[int, ...] | None
    """How many tokens in a row the draft model would have got right from each position; None without one."""


def hindsight(traces: Sequence[Trace]) -> list[Hindsight]:
    """Looks at answers in order; those that continue a chat find its index."""
    found: list[Hindsight] = []
    lookup, before = PromptLookup(), list[int]()
    for trace in traces:
        if not trace.continues:
            lookup, before = PromptLookup(frozenset(trace.end_of_generation), frozenset(trace.control)), []
        kept = shared_prefix(before, trace.prompt)
        lookup.rollback(kept)
        proposed, matched = _proposals(trace, lookup)
        agreed = _agreed(trace.draft_along.agrees) if trace.draft_along is not None else None
        unread = len(trace.prompt) - kept
        found.append(Hindsight(len(trace.answer), len(trace.prompt), unread, proposed, matched, agreed))
        before = [*trace.prompt, *trace.answer]
    return found


@dataclass(slots=True)
class Passes:
    """What a setting ran for an answer."""

    widths: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Target passes by width and context, the latter in whole steps of `_CONTEXT_STEP` tokens."""
    draft_steps: int = 0
    draft_read: int = 0

    def seconds(self, costs: CostTable) -> float:
        return (
            sum(n * (costs.at(context).target(width) + costs.host_s) for (width, context), n in self.widths.items())
            + self.draft_steps * (costs.draft_step_s or 0.0)
            + self.draft_read * (costs.draft_read_s or 0.0)
        )


def passes(seen: Hindsight, setting: Fixed) -> Passes:
    """Runs an answer with a fixed setting."""
    ran = Passes()
    position, lag = 0, seen.unread
    while position < seen.tokens:
        room = min(seen.tokens - position - 1, MOST_DRAFTED)
        drafted, right, steps = 0, 0, 0
        if setting.lookup and seen.proposed[position] and room:
            drafted = min(setting.lookup, seen.proposed[position], room)
            right = min(seen.matched[position], drafted)
        elif setting.draft and seen.agreed is not None and room and (position or lag <= 2):
            drafted = steps = min(setting.draft, room)
            right = min(seen.agreed[position], drafted)
        if steps:
            ran.draft_steps += steps
            ran.draft_read += lag - 1 if lag > 2 else 0
            lag = 2 if right == drafted else 1
        else:
            lag += right + 1
        ran.widths[drafted + 1, (seen.context + position) // _CONTEXT_STEP * _CONTEXT_STEP] += 1
        position += right + 1
    return ran


def oracle_seconds(seen: Hindsight, costs: CostTable) -> float:
    """The least time in which any choice of sources and lengths could have given the answer.

    A shortest path: from each position to those that some draft, all of it accepted, reaches: of the draft model, with
    or without prompt lookup behind it, or of lookup alone. The draft model is taken to have read everything for
    nothing, so no policy can be faster.
    """
    best = np.zeros(seen.tokens + 1)
    step = costs.draft_step_s or 0.0
    for position in range(seen.tokens - 1, -1, -1):
        costs_here = costs.at(seen.context + position)
        room = min(seen.tokens - position - 1, MOST_DRAFTED)
        drafts = min(seen.agreed[position], room, DRAFT_LENGTHS[-1]) if seen.agreed is not None else 0
        by_length = np.concatenate([[costs_here.target(1)], costs_here.targets(room + 1)])
        by_length += best[position + 1 : position + room + 2]
        least = by_length[0]
        for drawn in range(drafts + 1):
            copied = min(seen.matched[position + drawn], room - drawn)
            least = min(least, float(by_length[drawn : drawn + copied + 1].min()) + drawn * step)
        best[position] = least + costs.host_s
    return float(best[0])


_CONTEXT_STEP: Final = 64


def _proposals(trace: Trace, lookup: PromptLookup) -> tuple[tuple[int, ...], tuple[int, ...]]:
    committed = list(trace.prompt)
    proposed, matched = [], []
    for position, token in enumerate(trace.answer):
        proposal = lookup.propose(committed, MOST_DRAFTED).tokens
        proposed.append(len(proposal))
        matched.append(shared_prefix(proposal, trace.answer[position : position + MOST_DRAFTED]))
        committed.append(token)
    return tuple(proposed), tuple(matched)


def _agreed(agrees: Sequence[bool]) -> tuple[int, ...]:
    runs = [0] * (len(agrees) + 1)
    for position in range(len(agrees) - 1, -1, -1):
        runs[position] = runs[position + 1] + 1 if agrees[position] else 0
    return tuple(runs[:-1])

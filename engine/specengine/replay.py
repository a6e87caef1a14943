"""What would other decisions have cost? Answers told again from traces, under any cost table, without a model.

Speculation doesn't change the text, so the text of a trace is the text under every policy. What prompt lookup would
propose follows from the text; what the draft model would say at each position was recorded (`trace.DraftAlong`). Only
behind a wrong draft token is its confidence taken from the text's own position, where the real one was never asked.

Times are expected ones of the cost table: nothing here depends on a clock, so results are the same everywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from specengine.costs import CostTable
from specengine.draft import NOTHING, Draft, Plan
from specengine.drafters.lookup import PromptLookup
from specengine.gamma import Situation
from specengine.trace import DraftAlong, Trace

MOST_DRAFTED = 127
"""Longest draft of a round: the widest pass is one longer."""


class Policy(Protocol):
    """Who decides: `gamma.Gamma`, or anything of its shape."""

    def plan(self, now: Situation) -> Plan: ...

    def observe(self, lookup: Draft, verified: Draft, plan: Plan, emitted: Sequence[int], seconds: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Told:
    """One round of a replay."""

    position: int
    """Tokens of the answer before it."""
    source: str
    drafted: int
    accepted: int
    emitted: int
    seconds: float


@dataclass(slots=True)
class Replay:
    """What a policy did with an answer."""

    rounds: list[Told] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.rounds)

    @property
    def tokens(self) -> int:
        return sum(one.emitted for one in self.rounds)

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.seconds


def replay(traces: Sequence[Trace], policy: Callable[[], Policy], costs: CostTable) -> list[Replay]:
    """Replays answers in order: each with a new policy and empty indexes, unless it continues the chat before it.

    `costs` are the times that passes take; what the policy believes of them is its own affair.
    """
    replays = []
    teller: _Teller | None = None
    for trace in traces:
        if teller is None or not trace.continues:
            teller = _Teller(policy(), costs, trace)
        replays.append(teller.tell(trace))
    return replays


def shared_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens both begin with."""
    length = min(len(left), len(right))
    return next((i for i in range(length) if left[i] != right[i]), length)


class _Teller:
    """Keeps what outlives an answer: the policy, the index, and how far the draft model has read."""

    def __init__(self, policy: Policy, costs: CostTable, first: Trace) -> None:
        self._policy = policy
        self._costs = costs
        self._lookup = PromptLookup(frozenset(first.end_of_generation), frozenset(first.control))
        self._read = 0
        """Tokens in the draft model's KV cache."""
        self._committed: list[int] = []

    def tell(self, trace: Trace) -> Replay:
        context = [*trace.prompt]
        kept = shared_prefix(self._committed, context)
        self._lookup.rollback(kept)
        self._read = min(self._read, kept, len(context) - 1)
        self._committed = context
        told = Replay()
        while told.tokens < len(trace.answer):
            told.rounds.append(self._round(trace, told.tokens))
        return told

    def _round(self, trace: Trace, position: int) -> Told:
        truth = trace.answer[position:]
        room = min(len(truth) - 1, MOST_DRAFTED)
        proposal = self._lookup.propose(self._committed, room)
        missing = max(0, len(self._committed) - 2 - self._read)
        ready = trace.draft_along is not None and (missing == 0 or position > 0)
        plan = self._policy.plan(
            Situation(proposal, ready, missing, room, "auto", None, len(self._committed)),
        )
        draft, passes, read = self._draft(trace, position, room, proposal, plan, missing)
        accepted = next((i for i, token in enumerate(draft.tokens) if token != truth[i]), len(draft))
        emitted = truth[: accepted + 1]
        seconds = (
            self._costs.at(len(self._committed)).target(len(draft) + 1)
            + passes * (self._costs.draft_step_s or 0.0)
            + read * (self._costs.draft_read_s or 0.0)
            + self._costs.host_s
        )
        if passes:
            self._read = len(self._committed) + min(passes - 1, accepted)
        self._committed.extend(emitted)
        self._lookup.observe(self._committed, written=True)
        self._policy.observe(proposal, draft, plan, emitted, seconds)
        return Told(position, draft.source, len(draft), accepted, len(emitted), seconds)

    def _draft(
        self, trace: Trace, position: int, room: int, proposal: Draft, plan: Plan, missing: int
    ) -> tuple[Draft, int, int]:
        """The draft, the passes of the draft model that it took, and the tokens that it had to read before."""
        if plan.source == "lookup":
            return proposal.first(plan.limit), 0, 0
        if plan.source != "draft" or trace.draft_along is None:
            return NOTHING, 0, 0
        draft, passes = self._drawn(trace.draft_along, trace, position, room, plan)
        self._lookup.rollback(len(self._committed))
        return draft, passes, missing + 1 if missing else 0

    def _drawn(self, along: DraftAlong, trace: Trace, position: int, room: int, plan: Plan) -> tuple[Draft, int]:
        """What the draft model draws (`drafters.model`), and its passes. Behind a wrong token prompt lookup is asked as
        if it had been right, where it would have found other words, or none."""
        truth, passes = trace.answer, 0
        tokens: list[int] = []
        evidence: list[float] = []
        copied = NOTHING
        while len(tokens) < plan.limit:
            at = position + len(tokens)
            passes += 1
            if plan.growth is not None and not plan.growth.takes(evidence, along.confidence[at]):
                break
            tokens.append(truth[at] if along.agrees[at] else _WRONG)
            evidence.append(along.confidence[at])
            if tokens[-1] in trace.end_of_generation:
                break
            if plan.growth is None or len(tokens) >= plan.limit:
                continue
            copy = self._lookup.propose([*self._committed, *truth[position : at + 1]], room - len(tokens))
            if count := plan.growth.copies(evidence, copy.evidence):
                copied = copy.first(count)
                break
            if not plan.growth.runs_on(evidence):
                break
        return Draft("draft", tuple(tokens), tuple(evidence)).followed_by(copied) if tokens else NOTHING, passes


_WRONG = -1
"""Stands for a token that the target didn't emit."""

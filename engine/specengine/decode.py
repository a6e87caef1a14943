"""The round: draft → verify → accept → roll back → emit.

Committed tokens live in one list. Before and after every round the target's KV cache holds all of them but the last,
and the draft model's holds a prefix of them: whatever ends a round, rejected tokens are cut off.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from specengine import why
from specengine.controls import Controls
from specengine.costs import CostTable
from specengine.draft import NOTHING, Draft, Plan
from specengine.drafters.lookup import PromptLookup
from specengine.drafters.model import NO_WORK, DraftModel, DraftWork
from specengine.errors import Stopped
from specengine.gamma import Gamma, Situation
from specengine.language_model import LanguageModel
from specengine.noise import Noise
from specengine.protocol import Reason
from specengine.settings import Sampling
from specengine.stats import SourceStats, Stats
from specengine.trace import Round
from specengine.verify import verify

INTERRUPTIBLE_WIDTH: Final = 16
"""Passes at least this wide ask whether to stop while they run; the asking costs a narrow pass about 4 %."""
_RECENT_S: Final = 1.0


@dataclass(slots=True)
class Decoder:
    """Models, drafters and the committed tokens of one conversation."""

    target: LanguageModel
    gamma: Gamma
    lookup: PromptLookup | None
    model: DraftModel | None
    committed: list[int] = field(default_factory=list)
    on_round: Callable[[Round], None] | None = None
    """Is told of every round when it is over."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Where an answer must end."""

    length: int
    """Most committed tokens, prompt included."""
    reason: Reason
    """What to call it: the user's own limit or a full context."""


Take = Callable[[int, str], Reason | None]
"""Receives each emitted token with its source and says whether the answer ends with it."""


def decode(
    decoder: Decoder, sampling: Sampling, limit: Limit, take: Take, controls: Controls, stats: Stats
) -> Iterator[Reason | None]:
    """Runs rounds after the prompt until the answer ends; yields after each, last the reason of the end.

    The target's cache must hold the prompt without its last token. Emitted tokens go to `take` one by one, so that the
    earliest end inside a block wins; those behind it are dropped. Closing the generator leaves all caches in step.
    """
    noise = Noise(sampling.seed)
    meter = _Meter()
    reason: Reason | None = None
    while reason is None:
        if controls.stop:
            reason = "stopped"
        else:
            own_noise = noise.fork(stats.target_passes) if sampling.coupling == "maximal" else noise
            try:
                reason = _round(decoder, sampling, own_noise, limit, take, controls, stats)
            except Stopped:
                reason = "stopped"
            stats.context_used = len(decoder.committed)
            meter.update(stats, decoder.gamma)
        yield reason


def _round(
    decoder: Decoder, sampling: Sampling, noise: Noise, limit: Limit, take: Take, controls: Controls, stats: Stats
) -> Reason | None:
    started = time.perf_counter()
    committed, target = decoder.committed, decoder.target
    room = min(limit.length - len(committed) - 1, target.n_ctx - len(committed), target.max_rows - 1)
    proposal = decoder.lookup.propose(committed, max(0, room)) if decoder.lookup else NOTHING
    plan = decoder.gamma.plan(_situation(decoder, proposal, room, controls, stats))
    why.see(stats.why, controls, proposal, plan)
    try:
        draft, work = _draft(decoder, plan, proposal, room, sampling, noise, controls)
        why.see_copied(stats.why, proposal, draft)
        drafted = time.perf_counter()
        width = len(draft) + 1
        should_stop = (lambda: controls.stop) if width >= INTERRUPTIBLE_WIDTH else None
        rows = target.forward([committed[-1], *draft.tokens], width, should_stop)
        verified = time.perf_counter()
        verdict = verify(rows, draft, committed, len(committed), sampling, noise)
        emitted = [*draft.tokens[: verdict.accepted], verdict.next_token]
        reason, kept = _commit(committed, emitted, draft, limit, take)
        if decoder.lookup is not None:
            decoder.lookup.observe(committed, written=True)
    finally:
        _cut_to_committed(decoder)

    ended = time.perf_counter()
    done = Round(
        length=len(committed) - kept,
        emitted=kept,
        source=draft.source,
        drafted=len(draft),
        accepted=min(verdict.accepted, kept),
        lookup=len(proposal),
        probe=plan.probe,
        draft_passes=work.passes,
        draft_read=work.prefilled,
        draft_caught_up=work.caught_up,
        draft_s=drafted - started,
        draft_read_s=work.prefill_s,
        draft_steps_s=work.steps_s,
        verify_s=verified - drafted,
        host_s=ended - verified,
        copied=len(draft.copied),
    )
    _count(stats, done)
    _follow_costs(decoder.gamma.costs, done)
    decoder.gamma.observe(proposal, draft, plan, emitted, done.seconds)
    if decoder.on_round is not None:
        decoder.on_round(done)
    return reason


def _situation(decoder: Decoder, proposal: Draft, room: int, controls: Controls, stats: Stats) -> Situation:
    model = decoder.model
    missing = model.missing(decoder.committed) if model else 0
    # The first token of an answer never waits for the draft model to read the prompt.
    ready = model is not None and model.fits(decoder.committed) and (missing == 0 or stats.emitted > 0)
    return Situation(proposal, ready, missing, room, controls.speculation, controls.gamma, len(decoder.committed))


def _draft(
    decoder: Decoder, plan: Plan, proposal: Draft, room: int, sampling: Sampling, noise: Noise, controls: Controls
) -> tuple[Draft, DraftWork]:
    if plan.source == "lookup":
        return proposal.first(plan.limit), NO_WORK
    if plan.source == "draft" and decoder.model is not None:
        with _going_on(decoder, room) as go_on:
            draft = decoder.model.propose(decoder.committed, plan, sampling, noise, lambda: controls.stop, go_on)
        return draft, decoder.model.work
    return NOTHING, NO_WORK


@contextmanager
def _going_on(decoder: Decoder, room: int) -> Iterator[Callable[[Sequence[int]], Draft] | None]:
    """What prompt lookup would put behind drawn tokens. Its index forgets them afterwards: they are not committed."""
    lookup = decoder.lookup
    if lookup is None:
        yield None
        return
    length, context = len(decoder.committed), list(decoder.committed)

    def go_on(drawn: Sequence[int]) -> Draft:
        context[length:] = drawn
        return lookup.propose(context, room - len(drawn))

    try:
        yield go_on
    finally:
        lookup.rollback(length)


def _commit(
    committed: list[int], emitted: list[int], draft: Draft, limit: Limit, take: Take
) -> tuple[Reason | None, int]:
    """Appends emitted tokens up to the earliest end among them; returns why the answer ends and how many were kept."""
    for i, token in enumerate(emitted):
        committed.append(token)
        drafted_by = draft.source if i < draft.drawn else "lookup"
        reason = take(token, drafted_by if i < len(emitted) - 1 else "target")
        if reason is None and len(committed) >= limit.length:
            reason = limit.reason
        if reason is not None:
            return reason, i + 1
    return None, len(emitted)


def _cut_to_committed(decoder: Decoder) -> None:
    length = len(decoder.committed) - 1
    decoder.target.rollback(min(length, decoder.target.length))
    if decoder.model is not None:
        decoder.model.rollback(length)


def _count(stats: Stats, done: Round) -> None:
    stats.target_passes += 1
    stats.emitted += done.emitted
    stats.draft_passes += done.draft_passes
    stats.draft_prefilled_tokens += done.draft_read
    stats.draft_caught_up_tokens += done.draft_caught_up
    stats.draft_s += done.draft_s
    stats.verify_s += done.verify_s
    stats.host_s += done.host_s
    stats.gamma = done.drafted
    stats.source = "both" if done.copied else done.source
    for part in done.parts:
        source = stats.sources.setdefault(part.source, SourceStats())
        source.rounds += 1
        source.drafted += part.judged
        source.accepted += part.accepted


def _follow_costs(costs: CostTable, done: Round) -> None:
    costs.observe_target(done.drafted + 1, done.verify_s, done.length)
    costs.observe_draft(done.draft_passes, done.draft_steps_s)
    costs.observe_draft_read(done.draft_read, done.draft_read_s)
    costs.observe_host(done.seconds - done.verify_s - done.draft_read_s - done.draft_steps_s)


class _Meter:
    """The rate over about the last second of decoding."""

    def __init__(self) -> None:
        self._rounds: deque[tuple[float, int]] = deque([(0.0, 0)])

    def update(self, stats: Stats, gamma: Gamma) -> None:
        self._rounds.append((stats.decode_s, stats.emitted))
        while len(self._rounds) > 2 and stats.decode_s - self._rounds[1][0] >= _RECENT_S:
            self._rounds.popleft()
        start_s, start = self._rounds[0]
        if stats.decode_s > start_s:
            stats.recent_tokens_per_s = (stats.emitted - start) / (stats.decode_s - start_s)
        costs = gamma.costs.at(stats.context_used)
        stats.plain_s_per_token = costs.plain_s if costs.known else None

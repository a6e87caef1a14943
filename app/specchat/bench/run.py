"""The measuring itself: every workload in every mode, round by round, on one loaded engine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from specchat.bench.workloads import Workload
from specengine.controls import Controls
from specengine.costs import GRID, CostTable
from specengine.engine import Engine
from specengine.errors import EngineError
from specengine.protocol import Chat, Chunk, Done, Generate, Loaded, Message, Prefilling, Raw
from specengine.settings import Limits, Sampling, Speculation

Mode = Literal["plain", "lookup", "draft", "auto"]
LOOKUP_MODES: Final[tuple[Mode, ...]] = ("lookup", "auto")

_SWITCHES: Final[dict[Mode, tuple[Speculation, bool, bool]]] = {
    "plain": ("off", False, False),
    "lookup": ("auto", True, False),
    "draft": ("auto", False, True),
    "auto": ("auto", True, True),
}
"""Speculation, prompt lookup, draft model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured."""

    workloads: tuple[Workload, ...]
    modes: tuple[Mode, ...]
    rounds: int
    max_tokens: int
    sampling: Sampling
    gamma: int | None = None
    """A fixed draft length for every mode but plain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The first token of a workload from empty caches: the whole prompt is read."""

    workload: str
    mode: Mode
    prompt_tokens: int
    prefilled_tokens: int
    first_token_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One answer, with its counters; seconds are those of its rounds, from the first token's on."""

    workload: str
    mode: Mode
    round: int
    tokens: tuple[int, ...]
    """The emitted ids."""
    seconds: float
    reused_tokens: int
    target_passes: int
    draft_passes: int
    draft_prefilled: int
    """Tokens of the prompt that the draft model had to read; their time is part of `seconds`."""
    drafted: int
    accepted: int
    ceiling: float
    """Speedup that the cost table allowed at full acceptance, when the run had ended."""

    @property
    def tokens_per_s(self) -> float:
        return len(self.tokens) / self.seconds


Record = ColdStart | Run

Tell = Callable[[str, str], None]
"""Is told what is being done, and how far it has come."""


def possible_modes(loaded: Loaded) -> tuple[Mode, ...]:
    """The modes that this model, with its draft model if there is one, can be run in."""
    if loaded.speculation_refused:
        return ("plain",)
    return ("plain", "lookup", "draft", "auto") if loaded.draft else ("plain", "lookup", "auto")


def order(modes: Sequence[Mode], round: int) -> tuple[Mode, ...]:
    """The modes as they follow each other in a round: another one begins each time, so that a machine that grows
    slower or faster favours none."""
    first = round % len(modes)
    return (*modes[first:], *modes[:first])


def measure(engine: Engine, plan: Plan, controls: Controls, tell: Tell) -> Iterator[Record]:
    """Yields each record as it is made; ends early, without the run that was cut short, once `controls.stop` is set.

    A workload begins with a cold start in the first mode; then every run finds the target's KV cache holding the
    prompt, and nothing else: no lookup index, no acceptance estimates, an empty cache in the draft model. The cost
    table goes on following the passes.

    Raises:
        EngineError: a prompt doesn't fit the context, or a pass failed.
    """
    for workload in plan.workloads:
        cold = _cold_start(engine, plan, workload, controls, tell)
        if cold is None:
            return
        yield cold
        for round in range(plan.rounds):
            for mode in order(plan.modes, round):
                run = _run(engine, plan, workload, mode, round, controls, tell)
                if run is None:
                    return
                yield run


def ceiling(costs: CostTable) -> float:
    """The best speedup that the table allows if every drafted token is accepted: k + 1 plain rounds' time over that
    of one pass that verifies k, for the best k."""
    return max((k + 1) * costs.plain_s / (costs.target(k + 1) + costs.host_s) for k in range(GRID[-1]))


def _cold_start(engine: Engine, plan: Plan, workload: Workload, controls: Controls, tell: Tell) -> ColdStart | None:
    mode = plan.modes[0]
    engine.committed.clear()
    done = _answer(
        engine, plan, workload, mode, 1, controls, lambda at: tell(f"{workload.name}: reading the prompt", at)
    )
    if done is None:
        return None
    assert done.stats.first_token_s is not None
    return ColdStart(
        workload=workload.name,
        mode=mode,
        prompt_tokens=done.stats.prompt_tokens,
        prefilled_tokens=done.stats.prefilled_tokens,
        first_token_s=done.stats.first_token_s,
    )


def _run(
    engine: Engine, plan: Plan, workload: Workload, mode: Mode, round: int, controls: Controls, tell: Tell
) -> Run | None:
    what = f"{workload.name}: round {round + 1} of {plan.rounds}"
    done = _answer(engine, plan, workload, mode, plan.max_tokens, controls, lambda at: tell(what, f"{mode}, {at}"))
    if done is None:
        return None
    stats = done.stats
    return Run(
        workload=workload.name,
        mode=mode,
        round=round,
        tokens=done.tokens,
        seconds=stats.decode_s,
        reused_tokens=stats.reused_tokens,
        target_passes=stats.target_passes,
        draft_passes=stats.draft_passes,
        draft_prefilled=stats.draft_prefilled_tokens,
        drafted=stats.drafted,
        accepted=stats.accepted,
        ceiling=ceiling(engine.gamma.costs),
    )


def _answer(
    engine: Engine,
    plan: Plan,
    workload: Workload,
    mode: Mode,
    max_tokens: int,
    controls: Controls,
    tell: Callable[[str], None],
) -> Done | None:
    """One answer from empty indexes and estimates; None if it was stopped."""
    engine.forget()
    if engine.model is not None:
        engine.model.rollback(0)
    request = _request(engine.loaded, plan, workload, mode, max_tokens)
    controls.speculation, controls.gamma = request.speculation, request.gamma
    for message in engine.generate(request, controls):
        match message:
            case Prefilling(_, read, total):
                tell(f"{read:,} of {total:,} tokens")
            case Chunk(_, _, stats):
                tell(f"{stats.emitted} of {max_tokens} tokens")
            case Done(_, "stopped"):
                return None
            case Done():
                return message
    raise EngineError("The engine ended an answer without saying so; run the bench again.")


def _request(loaded: Loaded, plan: Plan, workload: Workload, mode: Mode, max_tokens: int) -> Generate:
    turns = (Message("system", workload.system), Message("user", workload.prompt))
    speculation, lookup, draft = _SWITCHES[mode]
    return Generate(
        id=0,
        # A base model has no template: it goes on with the text as it is.
        prompt=Chat(turns) if loaded.template else Raw("\n\n".join(turn.content for turn in turns)),
        sampling=plan.sampling,
        limits=Limits(max_tokens),
        speculation=speculation,
        gamma=None if mode == "plain" else plan.gamma,
        lookup=lookup,
        draft=draft,
    )

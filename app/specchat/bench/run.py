"""The measuring itself: every workload in every mode, round by round, on one loaded engine."""

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from specchat.bench.modes import mode as mode_of
from specchat.bench.records import ColdStart, ContestRun, Plan, Record, Run
from specchat.bench.rivals.contract import ShouldStop
from specchat.bench.workloads import Workload
from specengine.controls import Controls
from specengine.costs import GRID, CostTable
from specengine.draft_along import draft_along
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.protocol import Chat, Chunk, Done, Generate, Message, Prefilling, Raw
from specengine.settings import Limits, Sampling
from specengine.stats import Stats
from specengine.trace import DraftAlong, Round, Trace


class Guest(Protocol):
    """Another engine in one of its modes, which takes its turn in every round."""

    @property
    def label(self) -> str: ...

    def run(self, like: Run, workload: Workload, round: int, plan: Plan, should_stop: ShouldStop) -> ContestRun | None:
        """Answers what one of our runs was asked; None where there is nothing to count.

        Raises:
            Stopped: `should_stop` returned true.
        """
        ...


Tell = Callable[[str, str], None]
"""Is told what is being done, and how far it has come."""

T = TypeVar("T")


def order(modes: Sequence[T], round: int) -> tuple[T, ...]:
    """The modes as they follow each other in a round: another one begins each time, so that a machine that grows
    slower or faster favours none."""
    first = round % len(modes)
    return (*modes[first:], *modes[:first])


def measure(
    engine: Engine, plan: Plan, controls: Controls, tell: Tell, guests: Sequence[Guest] = ()
) -> Iterator[Record]:
    """Yields each record as it is made; ends early, without the run that was cut short, once `controls.stop` is set.

    A workload begins with a cold start in the first mode; then every run finds the target's KV cache holding the
    prompt, and nothing else: no lookup index, no acceptance estimates, an empty cache in the draft model. Further turns
    of a chat find what the turns before left. The cost table goes on following the passes. Guests come after our modes
    in the first round, take turns with them from then on, and are asked what our first run was asked.

    Raises:
        EngineError: a prompt doesn't fit the context, or a pass failed.
    """
    bench = _Bench(engine, plan, controls, tell)
    try:
        for workload in plan.workloads:
            yield bench.cold_start(workload, plan.modes[0])
            yield from bench.rounds(workload, guests)
    except Stopped:
        return


def ceiling(costs: CostTable) -> float:
    """The best speedup that the table allows if every drafted token is accepted: k + 1 plain rounds' time over that
    of one pass that verifies k, for the best k."""
    return max((k + 1) * costs.plain_s / (costs.target(k + 1) + costs.host_s) for k in range(GRID[-1]))


@dataclass(slots=True)
class _Answer:
    """What one turn gave."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    text: str
    rounds: tuple[Round, ...]
    stats: Stats


@dataclass(slots=True)
class _Bench:
    engine: Engine
    plan: Plan
    controls: Controls
    tell: Tell
    alongs: dict[tuple[tuple[int, ...], int, Sampling], DraftAlong | None] = field(default_factory=dict)
    """By committed ids and the prompt's length: modes and rounds that gave the same text share it."""

    def cold_start(self, workload: Workload, mode: str) -> ColdStart:
        self.engine.committed.clear()
        first = replace(workload, then=())
        (answer,) = self._answers(first, mode, 1, lambda at: self.tell(f"{workload.name}: reading the prompt", at))
        assert answer.stats.first_token_s is not None
        return ColdStart(
            workload=workload.name,
            mode=mode,
            prompt_tokens=answer.stats.prompt_tokens,
            prefilled_tokens=answer.stats.prefilled_tokens,
            first_token_s=answer.stats.first_token_s,
        )

    def rounds(self, workload: Workload, guests: Sequence[Guest]) -> Iterator[Run | ContestRun]:
        first: Run | None = None
        sides: tuple[str | Guest, ...] = (*self.plan.modes, *guests)
        for round in range(self.plan.rounds):
            for one in order(sides, round):
                if isinstance(one, str):
                    run = self.run(workload, one, round)
                    first = first or run
                    yield run
                elif first is not None and (theirs := self.guest_run(one, first, workload, round)) is not None:
                    yield theirs

    def guest_run(self, guest: Guest, like: Run, workload: Workload, round: int) -> ContestRun | None:
        what, started = f"{workload.name}: round {round + 1} of {self.plan.rounds}", time.monotonic()
        self.tell(what, guest.label)

        def should_stop() -> bool:
            # Guests say nothing while they work, but ask this all the time.
            self.tell(what, f"{guest.label}, {time.monotonic() - started:.0f} s")
            return self.controls.stop

        return guest.run(like, workload, round, self.plan, should_stop)

    def run(self, workload: Workload, mode: str, round: int) -> Run:
        what = f"{workload.name}: round {round + 1} of {self.plan.rounds}"
        traces: list[Trace] = []
        answers: list[_Answer] = []
        for answer in self._answers(workload, mode, self.plan.max_tokens, lambda at: self.tell(what, f"{mode}, {at}")):
            answers.append(answer)
            traces.append(self._trace(answer, workload, mode, round, continues=bool(traces)))
        return Run(
            workload=workload.name,
            mode=mode,
            round=round,
            tokens=tuple(token for answer in answers for token in answer.tokens),
            seconds=sum(answer.stats.decode_s for answer in answers),
            reused_tokens=sum(answer.stats.reused_tokens for answer in answers),
            target_passes=sum(answer.stats.target_passes for answer in answers),
            draft_passes=sum(answer.stats.draft_passes for answer in answers),
            draft_prefilled=sum(answer.stats.draft_prefilled_tokens for answer in answers),
            drafted=sum(answer.stats.drafted for answer in answers),
            accepted=sum(answer.stats.accepted for answer in answers),
            ceiling=ceiling(self.engine.gamma.costs),
            traces=tuple(traces),
        )

    def _answers(
        self, workload: Workload, mode: str, max_tokens: int, tell: Callable[[str], None]
    ) -> Iterator[_Answer]:
        """The answers to all turns, from empty indexes and estimates.

        Raises:
            Stopped: `controls.stop` was set.
        """
        self.engine.forget()
        if self.engine.model is not None:
            self.engine.model.rollback(0)
        turns = [Message("system", workload.system)]
        for number, prompt in enumerate(workload.turns, 1):
            turns.append(Message("user", prompt))
            which = f"turn {number} of {len(workload.turns)}, " if workload.then else ""
            answer = self._answer(self._request(workload, turns, mode, max_tokens), which, tell)
            yield answer
            turns.append(Message("assistant", answer.text, answer.tokens))

    def _answer(self, request: Generate, which: str, tell: Callable[[str], None]) -> _Answer:
        engine, controls = self.engine, self.controls
        controls.speculation, controls.gamma = request.speculation, request.gamma
        rounds: list[Round] = []
        text: list[str] = []
        engine.on_round = rounds.append
        try:
            for message in engine.generate(request, controls):
                match message:
                    case Prefilling(_, read, total):
                        tell(f"{which}{read:,} of {total:,} tokens read")
                    case Chunk(_, _, stats):
                        text.append(message.text)
                        tell(f"{which}{stats.emitted} of {request.limits.max_tokens} tokens")
                    case Done(_, "stopped"):
                        raise Stopped
                    case Done(_, _, tokens, stats):
                        prompt = tuple(engine.committed[: len(engine.committed) - len(tokens)])
                        return _Answer(prompt, tokens, "".join(text), tuple(rounds), stats)
        finally:
            engine.on_round = None
        raise EngineError("The engine ended an answer without saying so; run the bench again.")

    def _request(self, workload: Workload, turns: Sequence[Message], mode: str, max_tokens: int) -> Generate:
        wanted = mode_of(mode)
        gamma = self.plan.gamma if wanted.gamma is None else wanted.gamma
        return Generate(
            id=0,
            # A base model has no template: it goes on with the text as it is.
            prompt=Chat(tuple(turns))
            if self.engine.loaded.template
            else Raw("\n\n".join(turn.content for turn in turns)),
            sampling=self.plan.sampling_of(workload),
            limits=Limits(max_tokens),
            speculation=wanted.speculation,
            gamma=None if wanted.speculation == "off" else gamma,
            lookup=wanted.lookup,
            draft=wanted.draft,
        )

    def _trace(self, answer: _Answer, workload: Workload, mode: str, round: int, continues: bool) -> Trace:
        engine = self.engine
        return Trace(
            workload=workload.name,
            mode=mode,
            round=round,
            model=engine.loaded.name,
            draft=engine.loaded.draft,
            sampling=self.plan.sampling_of(workload),
            prompt=answer.prompt,
            answer=answer.tokens,
            end_of_generation=tuple(sorted(engine.target.vocabulary.end_of_generation)),
            control=tuple(sorted(engine.target.vocabulary.control)),
            rounds=answer.rounds,
            continues=continues,
            draft_along=self._along(answer, self.plan.sampling_of(workload)) if self.plan.along else None,
            costs=copy.deepcopy(engine.gamma.costs),
        )

    def _along(self, answer: _Answer, sampling: Sampling) -> DraftAlong | None:
        if self.engine.model is None:
            return None
        committed = (*answer.prompt, *answer.tokens)
        key = (committed, len(answer.prompt), sampling)
        if key not in self.alongs:
            try:
                self.alongs[key] = draft_along(
                    self.engine.model, committed, len(answer.prompt), sampling, lambda: self.controls.stop
                )
            except Stopped:
                return None  # the answer itself was finished
        return self.alongs[key]

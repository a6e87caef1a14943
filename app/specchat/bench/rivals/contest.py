"""Rivals' runs inside our rounds, and what they amount to beside ours."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from specchat.bench.records import ContestRun, Plan, Record, Run
from specchat.bench.results import Spread
from specchat.bench.rivals.contract import Question, Rival, RivalRun, ShouldStop
from specchat.bench.workloads import Workload
from specengine.errors import EngineError


@dataclass(slots=True)
class Contestant:
    """A rival in one mode; implements `run.Guest`."""

    rival: Rival
    mode: str
    n_ctx: int
    """Tokens that our context holds: no answer of ours goes beyond."""
    say: Callable[[str], None]
    """Is told, in a sentence, why it takes no further part."""
    failure: str | None = None

    @property
    def label(self) -> str:
        return f"{self.rival.name} {self.mode}"

    def run(self, like: Run, workload: Workload, round: int, plan: Plan, should_stop: ShouldStop) -> ContestRun | None:
        """As `run.Guest.run`; once it has failed there is nothing any more."""
        turns: list[RivalRun] = []
        for trace in like.traces:
            room = min(plan.max_tokens, self.n_ctx - len(trace.prompt))
            question = Question(trace.prompt, room, trace.sampling, continues=bool(turns))
            turn = None if self.failure else self._answer(question, should_stop)
            if turn is None:
                return None
            turns.append(turn)
        return ContestRun(
            workload=workload.name, engine=self.rival.name, mode=self.mode, round=round, turns=tuple(turns)
        )

    def _answer(self, question: Question, should_stop: ShouldStop) -> RivalRun | None:
        try:
            return self.rival.answer(self.mode, question, should_stop)
        except EngineError as error:
            self.failure = str(error)
            self.say(f"{error} It is left out from here on ({self.mode}).")
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalResult:
    """One workload by a rival in one mode; counters are sums over its rounds, None where the rival doesn't tell."""

    engine: str
    workload: str
    mode: str
    rounds: int
    tokens_per_s: Spread
    ratio_to_plain: Spread | None
    """Each round's rate over our plain's in the same round; None where plain wasn't run."""
    ratio_to_auto: Spread | None
    """The same over our auto's."""
    tokens: int
    target_passes: int | None
    drafted: int | None
    accepted: int | None
    acceptance: float | None
    ttft_s: float | None
    same_text_as_plain: bool | None
    """As our plain's; None where tokens are drawn at random or aren't told."""
    first_fork: int | None
    """Index of the first emitted token that differs from plain's, the earliest over the rounds."""
    temperature: float


def contestants(rivals: Iterable[Rival], n_ctx: int, say: Callable[[str], None]) -> list[Contestant]:
    """Every rival in every mode."""
    return [Contestant(rival, mode, n_ctx, say) for rival in rivals for mode in rival.modes]


def rival_results(records: Sequence[Record], field: Sequence[Contestant], plan: Plan) -> tuple[RivalResult, ...]:
    """What the rivals' runs amount to, workload by workload; leaves out what has no finished run."""
    contest = [one for one in records if isinstance(one, ContestRun)]
    return tuple(
        _result(runs, records, plan.sampling_of(workload).temperature)
        for workload in plan.workloads
        for one in field
        if (runs := [run for run in contest if _key(run) == (workload.name, one.rival.name, one.mode)])
    )


def described(field: Sequence[Contestant]) -> list[dict[str, Any]]:
    """Who took part, for the record."""
    return [
        {
            "engine": one.rival.name,
            "version": one.rival.version,
            "mode": one.mode,
            "meaning": one.rival.modes[one.mode],
            "failure": one.failure,
        }
        for one in field
    ]


def comparison(results: Sequence[RivalResult]) -> str:
    """How our auto compares with the fastest rival on each workload; empty where it wasn't run beside any."""
    best: dict[str, tuple[float, RivalResult]] = {}
    for result in results:
        if result.ratio_to_auto is not None:
            ratio = result.ratio_to_auto.median
            if result.workload not in best or ratio > best[result.workload][0]:
                best[result.workload] = ratio, result
    if not best:
        return ""
    said = [f"{name} {1 / ratio:.2f}× ({one.engine}, {one.mode})" for name, (ratio, one) in best.items()]
    return f"Our auto beside the fastest of the others: {', '.join(said)}."


def _result(runs: Sequence[ContestRun], records: Sequence[Record], temperature: float) -> RivalResult:
    first = runs[0]
    turns = [turn for run in runs for turn in run.turns]
    plain = _ours(records, first.workload, "plain")
    drafted, accepted = _sum(turn.drafted for turn in turns), _sum(turn.accepted for turn in turns)
    pairs = [(run, plain[run.round]) for run in runs if run.round in plain]
    compared = pairs if temperature == 0 and all(turn.tokens is not None for turn in turns) else []
    forks = [fork for run, ours in compared if (fork := _fork(run, ours)) is not None]
    return RivalResult(
        engine=first.engine,
        workload=first.workload,
        mode=first.mode,
        rounds=len(runs),
        tokens_per_s=_spread([run.tokens_per_s for run in runs]),
        ratio_to_plain=_ratio(runs, plain),
        ratio_to_auto=_ratio(runs, _ours(records, first.workload, "auto")),
        tokens=sum(run.n_tokens for run in runs),
        target_passes=_sum(turn.target_passes for turn in turns),
        drafted=drafted,
        accepted=accepted,
        acceptance=accepted / drafted if drafted and accepted is not None else None,
        ttft_s=next((run.turns[0].first_token_s for run in runs if run.turns[0].first_token_s is not None), None),
        same_text_as_plain=not forks if compared else None,
        first_fork=min(forks, default=None),
        temperature=temperature,
    )


def _key(run: ContestRun) -> tuple[str, str, str]:
    return run.workload, run.engine, run.mode


def _ours(records: Sequence[Record], workload: str, mode: str) -> dict[int, Run]:
    """Our runs by round."""
    return {one.round: one for one in records if isinstance(one, Run) and (one.workload, one.mode) == (workload, mode)}


def _ratio(runs: Sequence[ContestRun], ours: dict[int, Run]) -> Spread | None:
    ratios = [run.tokens_per_s / ours[run.round].tokens_per_s for run in runs if run.round in ours]
    return _spread(ratios) if ratios else None


def _fork(run: ContestRun, ours: Run) -> int | None:
    """Where the texts part, as an index into our tokens of all turns; None if they are the same. Each turn is compared
    for itself: the prompts hold our answers to the turns before."""
    before = 0
    for turn, trace in zip(run.turns, ours.traces, strict=True):
        theirs = turn.tokens or ()
        shorter = min(len(theirs), len(trace.answer))
        for i in range(shorter):
            if theirs[i] != trace.answer[i]:
                return before + i
        if len(theirs) != len(trace.answer):
            return before + shorter
        before += len(trace.answer)
    return None


def _sum(counts: Iterable[int | None]) -> int | None:
    told = [count for count in counts if count is not None]
    return sum(told) if told else None


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))

"""From single runs to results: one for each workload and mode, medians over the rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from specchat.bench.figures import SourceFigures, Timing, by_source, timing
from specchat.bench.modes import mode as mode_of
from specchat.bench.records import ColdStart, Plan, Record, Run
from specchat.bench.workloads import Workload


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the rounds."""

    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One workload in one mode. Counters are sums over its rounds; so acceptance is accepted / drafted."""

    workload: str
    mode: str
    rounds: int
    tokens_per_s: Spread
    """Decoding alone: the prompt was read before."""
    ratio_to_plain: Spread | None
    """Each round's rate over plain's in the same round; None where plain wasn't run."""
    tokens: int
    target_passes: int
    draft_passes: int
    draft_prefilled: int
    drafted: int
    accepted: int
    acceptance: float | None
    tokens_per_pass: float
    ttft_s: float | None
    """Time to first token from empty caches; only on the mode that the workload's cold start was made in."""
    ceiling: float | None
    """Speedup that the cost table allows at full acceptance, and"""
    share_of_ceiling: float | None
    """how much of it was reached: for modes with lookup, where the answer copies the prompt."""
    same_text_as_plain: bool | None
    first_fork: int | None
    """Index of the first emitted token that differs from plain's, the earliest over the rounds."""
    temperature: float = 0.0
    gamma: int | None = None
    """The draft length, where it was fixed."""
    timing: Timing | None = None
    """Over the rounds of all runs, as are"""
    sources: tuple[SourceFigures, ...] = ()
    """those that drafted."""


def results(records: Sequence[Record], plan: Plan) -> tuple[Result, ...]:
    """What the records amount to, in the order of the plan; leaves out what has no finished run."""
    return tuple(
        _result(runs, records, workload, plan)
        for workload in plan.workloads
        for mode in plan.modes
        if (runs := _runs(records, workload.name, mode))
    )


def _result(runs: Sequence[Run], records: Sequence[Record], workload: Workload, plan: Plan) -> Result:
    mode = mode_of(runs[0].mode)
    plain = {run.round: run for run in _runs(records, workload.name, "plain")}
    pairs = [(run, plain[run.round]) for run in runs if run.round in plain]
    ratios = [run.tokens_per_s / other.tokens_per_s for run, other in pairs]
    forks = [fork for run, other in pairs if (fork := _fork(run.tokens, other.tokens)) is not None]
    tokens, passes = sum(len(run.tokens) for run in runs), sum(run.target_passes for run in runs)
    drafted, accepted = sum(run.drafted for run in runs), sum(run.accepted for run in runs)
    rounds = [one for run in runs for one in run.rounds]
    judged = bool(pairs) and workload.copies and mode.lookup and mode.gamma is None
    return Result(
        workload=workload.name,
        mode=mode.name,
        rounds=len(runs),
        tokens_per_s=_spread([run.tokens_per_s for run in runs]),
        ratio_to_plain=_spread(ratios) if ratios else None,
        tokens=tokens,
        target_passes=passes,
        draft_passes=sum(run.draft_passes for run in runs),
        draft_prefilled=sum(run.draft_prefilled for run in runs),
        drafted=drafted,
        accepted=accepted,
        acceptance=accepted / drafted if drafted else None,
        tokens_per_pass=tokens / passes,
        ttft_s=_first_token_s(records, workload.name, mode.name),
        ceiling=median(run.ceiling for run, _ in pairs) if judged else None,
        share_of_ceiling=_share_of_ceiling(pairs) if judged else None,
        same_text_as_plain=not forks if pairs else None,
        first_fork=min(forks, default=None),
        temperature=plan.sampling_of(workload).temperature,
        gamma=None if mode.speculation == "off" else mode.gamma or plan.gamma,
        timing=timing(rounds),
        sources=by_source(rounds),
    )


def _runs(records: Sequence[Record], workload: str, mode: str) -> list[Run]:
    return [
        record for record in records if isinstance(record, Run) and record.workload == workload and record.mode == mode
    ]


def _first_token_s(records: Sequence[Record], workload: str, mode: str) -> float | None:
    for record in records:
        if isinstance(record, ColdStart) and record.workload == workload and record.mode == mode:
            return record.first_token_s
    return None


def _share_of_ceiling(pairs: Sequence[tuple[Run, Run]]) -> float:
    return median(run.tokens_per_s / plain.tokens_per_s / run.ceiling for run, plain in pairs)


def _fork(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Where two answers part; None if they are the same."""
    shorter = min(len(left), len(right))
    return next((i for i in range(shorter) if left[i] != right[i]), None if len(left) == len(right) else shorter)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))

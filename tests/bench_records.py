"""What the tests of the bench share: a tiny pair of models, plans and made-up runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import tiny
from specchat.bench.modes import ADAPTIVE
from specchat.bench.records import Plan, Run
from specchat.bench.workloads import Workload
from specengine.costs import GRID, CostTable
from specengine.settings import Sampling
from specengine.trace import Round, Trace

MODES: Final = ADAPTIVE
COPY: Final = Workload("copy", f"{'one two three four five six seven eight nine ten ' * 2}one two", copies=True)
TALE: Final = Workload("tale", "Tell me of the sea.")
_GREEDY: Final = Sampling(temperature=0)


def tiny_pair(folder: Path) -> tuple[Path, Path]:
    """A target and a draft model that never end an answer."""
    target = tiny.make(folder / "target.gguf", cycle=1.0, end=-30, context=16384)
    return target, tiny.make(folder / "draft.gguf", cycle=1.0, end=-30, context=16384, noise=0.1)


def planned(
    *,
    modes: tuple[str, ...] = MODES,
    rounds: int = 3,
    max_tokens: int = 48,
    sampling: Sampling = _GREEDY,
    gamma: int | None = None,
) -> Plan:
    return Plan(
        workloads=(COPY, TALE), modes=modes, rounds=rounds, max_tokens=max_tokens, sampling=sampling, gamma=gamma
    )


def round_of(
    source: str = "none", drafted: int = 0, accepted: int = 0, seconds: float = 0.1, *, length: int = 9
) -> Round:
    """A round that spends 5 % of its time in the draft and 15 % on the host."""
    return Round(
        length=length,
        emitted=accepted + 1,
        source=source,
        drafted=drafted,
        accepted=accepted,
        lookup=drafted if source == "lookup" else 0,
        probe=False,
        draft_passes=drafted if source == "draft" else 0,
        draft_read=0,
        draft_caught_up=0,
        draft_s=0.05 * seconds,
        draft_read_s=0.0,
        draft_steps_s=0.0,
        verify_s=0.8 * seconds,
        host_s=0.15 * seconds,
    )


def trace_of(rounds: Sequence[Round], *, workload: str = "copy", mode: str = "auto", round: int = 0) -> Trace:
    return Trace(
        workload=workload,
        mode=mode,
        round=round,
        model="toy",
        draft="small",
        sampling=_GREEDY,
        prompt=tuple(range(9)),
        answer=tuple(range(sum(one.emitted for one in rounds))),
        end_of_generation=(),
        control=(),
        rounds=tuple(rounds),
        costs=CostTable([0.1 * width for width in GRID]),
    )


def run_of(
    mode: str,
    round: int,
    seconds: float,
    *,
    workload: str = "copy",
    tokens: Sequence[int] = range(100),
    target_passes: int | None = None,
    drafted: int = 0,
    accepted: int = 0,
    rounds: Sequence[Round] = (),
) -> Run:
    return Run(
        workload=workload,
        mode=mode,
        round=round,
        tokens=tuple(tokens),
        seconds=seconds,
        reused_tokens=9,
        target_passes=target_passes or len(tokens),
        draft_passes=0,
        draft_prefilled=0,
        drafted=drafted,
        accepted=accepted,
        ceiling=4.0,
        traces=(trace_of(rounds, workload=workload, mode=mode, round=round),) if rounds else (),
    )

"""What the tests of the bench share: a tiny pair of models, plans and made-up runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import tiny
from specchat.bench.run import Mode, Plan, Run
from specchat.bench.workloads import Workload
from specengine.settings import Sampling

MODES: Final[tuple[Mode, ...]] = ("plain", "lookup", "draft", "auto")
COPY: Final = Workload("copy", f"{'one two three four five six seven eight nine ten ' * 2}one two", copies=True)
TALE: Final = Workload("tale", "Tell me of the sea.")
_GREEDY: Final = Sampling(temperature=0)


def tiny_pair(folder: Path) -> tuple[Path, Path]:
    """A target and a draft model that never end an answer."""
    target = tiny.make(folder / "target.gguf", cycle=1.0, end=-30, context=16384)
    return target, tiny.make(folder / "draft.gguf", cycle=1.0, end=-30, context=16384, noise=0.1)


def planned(
    *,
    modes: tuple[Mode, ...] = MODES,
    rounds: int = 3,
    max_tokens: int = 48,
    sampling: Sampling = _GREEDY,
    gamma: int | None = None,
) -> Plan:
    return Plan(
        workloads=(COPY, TALE), modes=modes, rounds=rounds, max_tokens=max_tokens, sampling=sampling, gamma=gamma
    )


def run_of(
    mode: Mode,
    round: int,
    seconds: float,
    *,
    workload: str = "copy",
    tokens: Sequence[int] = range(100),
    target_passes: int | None = None,
    drafted: int = 0,
    accepted: int = 0,
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
    )

"""What a bench is to measure, and what it makes: a plan, and one record for each run."""

from dataclasses import dataclass, replace

from specchat.bench.rivals.contract import RivalRun
from specchat.bench.workloads import Workload
from specengine.settings import Sampling
from specengine.trace import Round, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured."""

    workloads: tuple[Workload, ...]
    modes: tuple[str, ...]
    rounds: int
    max_tokens: int
    """Most tokens of an answer."""
    sampling: Sampling
    gamma: int | None = None
    """A fixed draft length for every mode that speculates and fixes none of its own."""
    along: bool = False
    """Read every answer through the draft model afterwards, for the traces."""

    def sampling_of(self, workload: Workload) -> Sampling:
        """How its tokens are drawn."""
        own = workload.temperature
        return self.sampling if own is None else replace(self.sampling, temperature=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The first token of a workload from empty caches: the whole prompt is read."""

    workload: str
    mode: str
    prompt_tokens: int
    prefilled_tokens: int
    first_token_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One workload in one mode, all its turns; counters are sums over them. Seconds are those of the rounds, so that
    reading prompts is left out."""

    workload: str
    mode: str
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
    traces: tuple[Trace, ...] = ()
    """One a turn, with all its rounds."""

    @property
    def tokens_per_s(self) -> float:
        return len(self.tokens) / self.seconds

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of all turns."""
        return tuple(one for trace in self.traces for one in trace.rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestRun:
    """One workload by another engine in one of its modes, a `RivalRun` a turn."""

    workload: str
    engine: str
    mode: str
    round: int
    turns: tuple[RivalRun, ...]

    @property
    def n_tokens(self) -> int:
        return sum(turn.n_tokens for turn in self.turns)

    @property
    def tokens_per_s(self) -> float:
        return self.n_tokens / sum(turn.seconds for turn in self.turns)


Record = ColdStart | Run | ContestRun

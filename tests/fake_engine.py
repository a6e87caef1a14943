"""A scripted engine with Host's methods: answers chunk by chunk, loads, crashes and slow prefills on demand."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from specchat.host import EngineDied
from specengine.errors import EngineError
from specengine.protocol import (
    Adjust,
    Chunk,
    Done,
    Generate,
    Load,
    Loaded,
    MeasureNearTie,
    NearTie,
    Notice,
    Prefilling,
    Progress,
    Reason,
    Token,
    WidthNoise,
)
from specengine.stats import SourceStats, Stats

CRASH = "The engine ended in the middle of its work (killed by SIGSEGV). It starts again when it is needed."


@dataclass
class Script:
    """One answer."""

    chunks: Iterable[str | Sequence[Token]] = ("Hello",)
    """Texts of one token each, written by the target; or tokens of any source."""
    prefill: tuple[int, int] | None = None
    """Tokens done and tokens in all, reported once before the first chunk."""
    notices: tuple[str, ...] = ()
    crash_after: int | None = None
    """Chunks after which the process dies."""
    refuse: str | None = None
    """The sentence of an EngineError instead of an answer."""
    reason: Reason = "end"
    ids: tuple[int, ...] | None = None
    """Of the emitted tokens; counted up from 0 by default."""
    pace: Callable[[], Awaitable[None]] = field(default=lambda: asyncio.sleep(0))
    """Awaited before each chunk."""


@dataclass
class FakeEngine:
    """Answers with the scripts in turn; without any, with "Hello"."""

    scripts: deque[Script] = field(default_factory=deque)
    load_steps: tuple[float, ...] = ()
    load_pace: Callable[[], Awaitable[None]] = field(default=lambda: asyncio.sleep(0))
    load_error: str | None = None
    draft_refused: str | None = None
    infill: bool = False
    n_ctx_trained: int | None = None
    requests: list[Generate] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    adjusted: list[Adjust] = field(default_factory=list)
    near_tie: NearTie = field(default_factory=lambda: NearTie(0.02, 0.05, True))
    forks: list[MeasureNearTie] = field(default_factory=list)
    noise: WidthNoise = field(default_factory=lambda: WidthNoise(0.0, 0.0, True))
    closed: bool = False
    loaded: Loaded | None = None
    _died: Loaded | None = None
    _stopped: set[int] = field(default_factory=set)

    def script(self, *chunks: str | Sequence[Token], **rest: object) -> "FakeEngine":
        self.scripts.append(Script(chunks, **rest))  # type: ignore[arg-type]
        return self

    async def load(self, load: Load) -> AsyncGenerator[Progress | Notice | Loaded]:
        self.loads.append(load)
        for fraction in self.load_steps:
            yield Progress("loading the model", fraction)
            await self.load_pace()
        if self.load_error:
            raise EngineError(self.load_error)
        self.loaded = Loaded(
            load.name or load.model, load.model, "fake", "CPU, 2 threads", 8192, 1000, load.draft_called or None,
            self.draft_refused, infill=self.infill, n_ctx_trained=self.n_ctx_trained,
        )  # fmt: skip
        yield self.loaded

    async def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]:
        self.requests.append(request)
        script = self.scripts.popleft() if self.scripts else Script()
        if script.refuse:
            raise EngineError(script.refuse)
        if self.loaded is None:
            self.loaded = self._died
        for notice in script.notices:
            yield Notice(request.id, notice)
        if script.prefill:
            yield Prefilling(request.id, *script.prefill)
        emitted: list[str | Sequence[Token]] = []
        told: list[Token] = []
        for chunk in script.chunks:
            await script.pace()
            if request.id in self._stopped:
                yield Done(request.id, "stopped", tuple(range(len(emitted))), stats_after(len(emitted)))
                return
            if script.crash_after == len(emitted):
                raise self._death()
            emitted.append(chunk)
            tokens = (Token(chunk, "target"),) if isinstance(chunk, str) else tuple(chunk)
            told += tokens
            yield Chunk(request.id, tokens, stats_after(len(emitted)) if isinstance(chunk, str) else stats_of(told))
        if script.crash_after is not None:
            raise self._death()
        by_source = any(token.source != "target" for token in told)
        stats = stats_of(told) if by_source else stats_after(len(emitted))
        yield Done(request.id, script.reason, script.ids or tuple(range(stats.emitted)), stats)

    def _death(self) -> EngineDied:
        """What was loaded is loaded again by the next request."""
        self._died, self.loaded = self.loaded, None
        return EngineDied(CRASH)

    async def measure_near_tie(self, asked: MeasureNearTie) -> NearTie:
        self.forks.append(asked)
        return self.near_tie

    async def measure_width_noise(self) -> WidthNoise:
        if self.load_error:
            raise EngineError(self.load_error)
        return self.noise

    def adjust(self, adjust: Adjust) -> None:
        self.adjusted.append(adjust)

    def stop(self, id: int) -> None:
        self._stopped.add(id)

    async def close(self) -> None:
        self.closed = True


def stats_of(tokens: Iterable[Token]) -> Stats:
    """Figures of an answer of these tokens, all drafts accepted."""
    counts = Counter(token.source for token in tokens for _ in range(token.count))
    sources = {name: SourceStats(1, count, count) for name, count in counts.items() if name != "target"}
    return replace(stats_after(counts.total()), sources=sources)


def stats_after(tokens: int) -> Stats:
    """Figures that fit together, for an answer of so many tokens: half of them accepted from lookup."""
    passes = max(1, tokens // 2)
    return Stats(
        prompt_tokens=120,
        reused_tokens=100,
        prefilled_tokens=19,
        emitted=tokens,
        target_passes=passes,
        sources={"lookup": SourceStats(passes, 2 * (tokens - passes), tokens - passes)} if tokens > passes else {},
        prefill_s=0.2,
        draft_s=0.01 * tokens,
        verify_s=0.03 * tokens,
        host_s=0.01 * tokens,
        first_token_s=0.25,
        recent_tokens_per_s=21.5,
        plain_s_per_token=0.1,
        gamma=4,
        source="lookup",
        n_ctx=8192,
        context_used=120 + tokens,
    )

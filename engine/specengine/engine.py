"""One conversation with a loaded model: prompt → tokens, reuse of the KV cache, the answer as a stream of chunks."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from specengine import why
from specengine.context_size import shorter_or_larger
from specengine.controls import Controls
from specengine.costs import CostTable
from specengine.decode import Decoder, Limit, decode
from specengine.drafters.lookup import PromptLookup
from specengine.drafters.model import DraftModel
from specengine.errors import EngineError, Stopped
from specengine.gamma import Gamma
from specengine.language_model import LanguageModel
from specengine.layer_skipping import LayerChoice
from specengine.near_tie import measure_near_tie
from specengine.own_text import own_text
from specengine.prompt import FittedGap, drop_oldest, fit_gap, raw_tokens
from specengine.protocol import (
    Chat,
    Chunk,
    Done,
    Generate,
    Infill,
    Loaded,
    MeasureNearTie,
    Message,
    NearTie,
    Notice,
    Prefilling,
    Raw,
    Reason,
    Token,
    WidthNoise,
)
from specengine.stats import Stats
from specengine.text_stream import TextStream
from specengine.trace import Round
from specengine.width_noise import measure_width_noise

_ENOUGH_ROUNDS = 32
"""An answer of so many rounds has refreshed the costs enough to keep them."""
_ANSWER_ROOM = 512
"""Tokens kept free for an answer where the user set no limit, as far as a quarter of the context allows."""


@dataclass(slots=True)
class Engine:
    """A loaded target, its sources of drafts, and the one list of committed tokens that their caches follow."""

    loaded: Loaded
    target: LanguageModel
    model: DraftModel | None
    lookup: PromptLookup
    gamma: Gamma
    committed: list[int] = field(default_factory=list)
    on_round: Callable[[Round], None] | None = None
    """Is told of every round of an answer when it is over."""
    measuring: Iterator[CostTable] | None = None
    """Measurements of what passes cost that are still to be made (`measuring`)."""
    keep_costs: Callable[[CostTable], None] | None = None
    """Keeps costs for the next start."""
    layers: LayerChoice | None = None
    """Where the target drafts for itself."""
    answered: int = 0
    """Where the last answer begins."""

    def generate(self, request: Generate, controls: Controls) -> Iterator[Prefilling | Chunk | Notice | Done]:
        """Streams the answer; closing the iterator early leaves the conversation usable.

        Raises:
            EngineError: the prompt can't be used, or a pass failed.
        """
        with self._aside() if request.aside else nullcontext():
            yield from self._generate(request, controls)

    def _generate(self, request: Generate, controls: Controls) -> Iterator[Prefilling | Chunk | Notice | Done]:
        started = time.perf_counter()
        prompt, messages, begun, notice = self._prompt(request)
        if notice:
            yield notice
        stats = Stats(prompt_tokens=len(prompt), n_ctx=self.target.n_ctx)
        self._reuse(prompt, stats)
        if request.lookup:
            for own in own_text(prompt, messages, self.lookup.length, begun):
                self.lookup.observe(prompt[: own.start])
                self.lookup.observe(prompt[: own.stop], written=True)
        try:
            yield from self._prefill(request.id, controls, stats)
        except Stopped:
            yield Done(request.id, "stopped", tuple(prompt[len(prompt) - begun :]), stats)
            return
        yield from self._decode(request, begun, controls, stats, started)

    def measure_width_noise(self) -> WidthNoise:
        """How far wider passes differ from narrow ones on this model and machine; empties the KV caches."""
        self.committed.clear()
        self.lookup.rollback(0)
        return measure_width_noise(self.target)

    def measure_near_tie(self, asked: MeasureNearTie) -> NearTie:
        """How close the choice was where two answers to a request parted.

        Raises:
            EngineError: the prompt can't be used, or a pass failed.
        """
        prompt, *_ = self._prompt(asked.request)
        self._reuse([*prompt, *asked.shared], stats := Stats())
        for _ in self._prefill(asked.request.id, Controls(), stats):
            pass
        return measure_near_tie(self.target, self.committed, asked.tokens, asked.request.sampling)

    def measure_costs(self, should_stop: Callable[[], bool]) -> None:
        """Measures what passes cost, as far as it isn't known yet, and chooses layers for a draft made of the target's
        own; once stopped, it can go on later."""
        while self.measuring is not None and not should_stop():
            self._measure()
        if self.layers is None or self.measuring is not None:
            return
        if self.layers.choose(self.committed, self.answered, self.gamma, should_stop) and self.keep_costs:
            self.keep_costs(self.gamma.costs)

    def close(self) -> None:
        """Frees the models."""
        self.target.close()
        if self.model is not None:
            self.model.model.close()

    def forget(self) -> None:
        """Empties the lookup index and the acceptance estimates; costs and the KV caches stay."""
        self.lookup.rollback(0)
        self.gamma = Gamma(self.gamma.costs)

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Decides meanwhile as in a first answer. What is learned of costs stays, what is learned of text does not."""
        kept, self.gamma = self.gamma, Gamma(self.gamma.costs)
        try:
            yield
        finally:
            kept.costs, self.gamma = self.gamma.costs, kept

    def _prompt(self, request: Generate) -> tuple[list[int], Sequence[Message], int, Notice | None]:
        """The prompt's tokens, the messages of a chat that they hold, how many of them at the end are an answer that is
        to go on, and what to say of it."""
        vocabulary, n_ctx = self.target.vocabulary, self.target.n_ctx
        room = min(request.limits.max_tokens or _ANSWER_ROOM, n_ctx // 4)
        match request.prompt:
            case Chat(messages):
                template = self.target.chat_template
                if template is None:
                    raise EngineError(
                        f"{self.loaded.name} has no chat template, so it can't chat; choose a model made for chat."
                    )
                fitted = drop_oldest(vocabulary, template, messages, n_ctx, room, self.loaded.n_ctx_trained)
                return fitted.tokens, fitted.messages, fitted.begun, _dropped(request.id, fitted.dropped)
            case Raw(text):
                tokens = raw_tokens(vocabulary, text)
            case Infill(prefix, suffix):
                gap = fit_gap(vocabulary, prefix, suffix, n_ctx, room)
                return gap.tokens, (), 0, _nearest(request.id, gap)
        if not tokens:
            raise EngineError("The prompt is empty; give the model some text to continue.")
        if len(tokens) >= n_ctx:
            raise EngineError(
                f"The prompt takes {len(tokens):,} tokens and the context holds {n_ctx:,}: "
                f"{shorter_or_larger(len(tokens), self.loaded.n_ctx_trained)}"
            )
        return tokens, (), 0, None

    def _reuse(self, prompt: list[int], stats: Stats) -> None:
        """Keeps the caches and the index as far as the prompt goes on from what they hold."""
        shared = _shared_prefix(self.committed, prompt)
        # The last prompt token runs in the first round, in every mode, so that all modes share the same prefill.
        reused = min(shared, self.target.length, len(prompt) - 1)
        if self.target.refusal and reused < self.target.length:
            reused = 0
        self.lookup.rollback(shared)
        self.target.rollback(reused)
        if self.model is not None:
            self.model.rollback(min(shared, len(prompt) - 1))
        self.committed[:] = prompt
        self.answered = len(prompt)
        stats.reused_tokens = reused

    def _prefill(self, request_id: int, controls: Controls, stats: Stats) -> Iterator[Prefilling]:
        started = time.perf_counter()
        first, end = self.target.length, len(self.committed) - 1
        try:
            for position in range(first, end, self.target.n_batch):
                yield Prefilling(request_id, position - first, end - first)
                if controls.stop:
                    raise Stopped
                chunk = self.committed[position : min(end, position + self.target.n_batch)]
                self.target.forward(chunk, 0, lambda: controls.stop)
        finally:
            stats.prefilled_tokens = max(0, self.target.length - first)
            stats.prefill_s = time.perf_counter() - started
            stats.context_used = self.target.length
            if self.target.length < end:
                self.lookup.rollback(self.target.length)
                del self.committed[self.target.length :]
        if end > first:
            yield Prefilling(request_id, end - first, end - first)

    def _decode(
        self, request: Generate, begun: int, controls: Controls, stats: Stats, started: float
    ) -> Iterator[Chunk | Done]:
        n_prompt = len(self.committed)
        stream = TextStream(self.target.vocabulary, request.limits.stop)
        stream.follow(self.committed[n_prompt - begun :])
        settled: list[Token] = []

        def take(token: int, source: str) -> Reason | None:
            if stats.first_token_s is None:
                stats.first_token_s = time.perf_counter() - started
            settled.extend(stream.push(token, source))
            if stream.stopped:
                return "stop"
            return "end" if token in self.target.vocabulary.end_of_generation else None

        reason: Reason | None = None
        for reason in decode(
            self._decoder(request), request.sampling, self._limit(request, n_prompt), take, controls, stats
        ):
            if reason is None:
                yield Chunk(request.id, tuple(settled), stats)
                settled.clear()
                if self.measuring is not None and controls.speculation != "off" and (request.lookup or request.draft):
                    self._measure()
        settled.extend(stream.finish(cut=reason != "end"))
        yield Chunk(request.id, tuple(settled), stats)
        emitted = tuple(self.committed[n_prompt - begun :])
        if self.layers is not None and request.draft and controls.speculation != "off" and not request.aside:
            self.layers.see(len(self.committed) - n_prompt)
        if stream.tokens_before_stop is not None:
            reason, emitted = "stop", emitted[: begun + stream.tokens_before_stop]
        if self.keep_costs and self.measuring is None and stats.target_passes >= _ENOUGH_ROUNDS:
            self.keep_costs(self.gamma.costs)
        why.conclude(stats.why, self.gamma, stats.context_used, self.model is not None and request.draft)
        yield Done(request.id, reason or "stopped", emitted, stats)

    def _measure(self) -> None:
        """One more measurement: between the rounds of an answer, so that no token waits for all of them."""
        assert self.measuring is not None
        try:
            table = next(self.measuring)
        except EngineError:  # no room behind this context
            self.measuring = None
        except StopIteration:
            self.measuring = None
            if self.keep_costs:
                self.keep_costs(self.gamma.costs)
        else:
            table.host_s = self.gamma.costs.host_s
            self.gamma.costs = table

    def _decoder(self, request: Generate) -> Decoder:
        speculative = self.target.refusal is None
        return Decoder(
            self.target,
            self.gamma,
            self.lookup if request.lookup and speculative else None,
            self.model if request.draft and speculative else None,
            self.committed,
            self.on_round,
        )

    def _limit(self, request: Generate, n_prompt: int) -> Limit:
        longest = request.limits.max_tokens
        if longest is not None and n_prompt + longest <= self.target.n_ctx:
            return Limit(n_prompt + longest, "length")
        return Limit(self.target.n_ctx, "context")


def _shared_prefix(left: list[int], right: list[int]) -> int:
    length = min(len(left), len(right))
    return next((i for i in range(length) if left[i] != right[i]), length)


def _dropped(request_id: int, turns: int) -> Notice | None:
    if not turns:
        return None
    what = "turn was" if turns == 1 else f"{turns} turns were"
    return Notice(request_id, f"The conversation outgrew the context: the oldest {what} left out of the prompt.")


def _nearest(request_id: int, gap: FittedGap) -> Notice | None:
    if not gap.cut:
        return None
    return Notice(
        request_id,
        f"The text outgrew the context: {gap.before:,} tokens before the gap and {gap.after:,} after it were read.",
    )

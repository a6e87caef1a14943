"""Answers of real models, round by round: what was drafted and accepted, and whether the caches are in step."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt

from specengine.backends.llamacpp import LlamaModel, LlamaOptions
from specengine.controls import Controls
from specengine.costs import GRID, CostTable
from specengine.decode import Decoder, Limit, decode
from specengine.drafters.lookup import PromptLookup
from specengine.drafters.model import DraftModel
from specengine.engine import Engine
from specengine.gamma import Gamma
from specengine.language_model import LanguageModel, Rows
from specengine.model_folder import read_folder
from specengine.protocol import Chat, Chunk, Done, Generate, Infill, Loaded, Notice, Prefilling, Raw, Reason
from specengine.settings import Limits, Sampling, Speculation
from specengine.stats import Stats

EXACT = LlamaOptions(n_ctx=1024, threads=1, kv_type="f32", flash_attention=False)
"""Passes of all widths agree to about 1e-5."""
LOGITS_AGREE = 1e-4
ITSELF = Path("self")


class FixedCosts(CostTable):
    """A cost table that real passes leave as it is, so that decisions are the same on every machine."""

    def observe_target(self, width: int, seconds: float, context: int = 0) -> None:
        pass

    def observe_draft(self, steps: int, seconds: float) -> None:
        pass

    def observe_draft_read(self, tokens: int, seconds: float) -> None:
        pass

    def observe_host(self, seconds: float) -> None:
        pass


def flat_costs() -> FixedCosts:
    """Passes of all widths cost the same and drafting next to nothing: speculation always pays."""
    return FixedCosts([0.010] * len(GRID), draft_step_s=0.0005, draft_read_s=0.0001, host_s=0.0001)


def opened(path: Path, options: LlamaOptions = EXACT) -> LanguageModel:
    """A model in the engine that its files are made for. Folders are computed in fp32, whatever the options."""
    if path.is_file():
        return LlamaModel(path, options)
    from specengine.backends.torch_nf4.model import TorchModel
    from specengine.backends.torch_nf4.options import TorchOptions

    return TorchModel(
        read_folder(path), TorchOptions(options.n_ctx, precision="fp32", quantised=False, threads=options.threads)
    )


def without_some_layers(model: LanguageModel) -> LanguageModel:
    """The same model in torch, as it drafts for itself."""
    from specengine.backends.torch_nf4.model import TorchModel
    from specengine.backends.torch_nf4.self_draft import SelfDraft

    assert isinstance(model, TorchModel)
    return SelfDraft(model)


@contextmanager
def loaded(path: Path, options: LlamaOptions = EXACT) -> Iterator[LanguageModel]:
    model = opened(path, options)
    try:
        yield model
    finally:
        model.close()


@contextmanager
def engine(
    target: Path, draft: Path | None = None, *, options: LlamaOptions = EXACT, costs: CostTable | None = None
) -> Iterator[Engine]:
    """An engine around model files, with given costs; `specengine.loading.load` measures them. With `ITSELF` as draft,
    the target drafts for itself."""
    models = [opened(path, options) for path in (target, draft) if path is not None and path != ITSELF]
    if draft == ITSELF:
        models.append(without_some_layers(models[0]))
    made = Engine(
        Loaded(target.stem, str(target), "a test", "CPU", models[0].n_ctx, models[0].vocabulary.size),
        models[0],
        DraftModel(models[1], models[0].vocabulary.size) if len(models) > 1 else None,
        PromptLookup(models[0].vocabulary.end_of_generation),
        Gamma(costs or flat_costs()),
    )
    try:
        yield made
    finally:
        made.close()


@dataclass(frozen=True)
class Round:
    """What one round added to the counters."""

    source: str
    drafted: int
    accepted: int
    kept: int
    """Emitted tokens that became part of the answer."""
    target_passes: int
    draft_passes: int
    prefilled: int
    """By the draft model."""
    caught_up: int

    @property
    def rejected(self) -> bool:
        return self.accepted < self.drafted

    @property
    def last_offset(self) -> int:
        """Where in the block of drafted tokens and one more the round ended."""
        return self.kept - 1


@dataclass(frozen=True)
class Answer:
    tokens: tuple[int, ...]
    text: str
    reason: Reason
    rounds: list[Round]
    stats: Stats
    notices: list[str]
    sources: Counter[str]
    """How many tokens came from whom, by what the chunks say."""

    def accepted(self, source: str) -> int:
        return sum(one.accepted for one in self.rounds if one.source == source)

    def rejected(self, source: str) -> int:
        """Rounds in which the target turned down a token of the source."""
        return sum(one.rejected for one in self.rounds if one.source == source)

    def offsets(self, source: str) -> set[int]:
        """Block positions at which rounds of the source ended."""
        return {one.last_offset for one in self.rounds if one.source == source}


class StopAt(Controls):
    """Says stop when it has been asked `limit` times."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.times = 0
        super().__init__()

    @property
    def stop(self) -> bool:
        self.times += 1
        return self.times > self.limit

    @stop.setter
    def stop(self, value: bool) -> None:
        pass


def asking(limit: int) -> tuple[Callable[[], bool], Callable[[], int]]:
    """A `should_stop` that says yes from its `limit`th question on, and what tells how often it was asked."""
    asked = count()
    times = [0]

    def should_stop() -> bool:
        times[0] = next(asked) + 1
        return times[0] > limit

    return should_stop, lambda: times[0]


EachRound = Callable[[int, Controls], None]
"""Called after every round with the number of rounds so far."""


def answer(
    engine: Engine,
    prompt: str | Chat | Raw | Infill,
    sampling: Sampling,
    *,
    limits: Limits,
    lookup: bool = False,
    draft: bool = False,
    speculation: Speculation = "on",
    gamma: int | None = None,
    each_round: EachRound | None = None,
    controls: Controls | None = None,
) -> Answer:
    """Runs a request to its end; without `lookup` and `draft` it decodes plainly."""
    controls = controls or Controls()
    controls.speculation, controls.gamma = speculation, gamma
    request = Generate(
        1, Raw(prompt) if isinstance(prompt, str) else prompt, sampling, limits, lookup=lookup, draft=draft
    )
    rounds: list[Round] = []
    text: list[str] = []
    notices: list[str] = []
    sources: Counter[str] = Counter()
    before = Stats()
    for message in engine.generate(request, controls):
        match message:
            case Chunk(_, tokens, stats):
                text.append(message.text)
                for token in tokens:
                    sources[token.source] += token.count
                if stats.target_passes > before.target_passes:
                    rounds.append(_round(before, stats))
                    before = replace(stats, sources={name: replace(of) for name, of in stats.sources.items()})
                    if each_round is not None:
                        each_round(len(rounds), controls)
            case Notice():
                notices.append(message.text)
            case Done():
                return Answer(message.tokens, "".join(text), message.reason, rounds, message.stats, notices, sources)
            case Prefilling():
                pass
    raise AssertionError("the answer ended without a Done")


def _round(before: Stats, now: Stats) -> Round:
    return Round(
        now.source,
        now.drafted - before.drafted,
        now.accepted - before.accepted,
        now.emitted - before.emitted,
        now.target_passes - before.target_passes,
        now.draft_passes - before.draft_passes,
        now.draft_prefilled_tokens - before.draft_prefilled_tokens,
        now.draft_caught_up_tokens - before.draft_caught_up_tokens,
    )


class CacheWatch:
    """Looks into the KV caches after every round: their lengths, and the logits that they lead to.

    What a cache holds shows in what comes next, so a token is run behind it and cut off again; afterwards the rows are
    compared with those of fresh models that read the same tokens in one go.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._target_rows: list[tuple[int, Rows]] = []
        self._draft_rows: list[tuple[int, Rows]] = []

    def __call__(self, rounds: int, controls: Controls) -> None:
        committed, target = self._engine.committed, self._engine.target
        assert target.length == len(committed) - 1
        self._target_rows.append((target.length, _next_row(target, committed)))
        if self._engine.model is not None:
            draft = self._engine.model.model
            assert draft.length <= len(committed) - 1
            self._draft_rows.append((draft.length, _next_row(draft, committed)))

    def check(self, fresh_target: LanguageModel, fresh_draft: LanguageModel | None = None) -> None:
        assert self._target_rows
        for fresh, rows in ((fresh_target, self._target_rows), (fresh_draft, self._draft_rows)):
            if fresh is not None:
                expected = read(fresh, self._engine.committed)
                for position, row in rows:
                    np.testing.assert_allclose(row, expected[position], atol=LOGITS_AGREE)


def _next_row(model: LanguageModel, committed: list[int]) -> Rows:
    length = model.length
    row: npt.NDArray[np.float32] = model.forward(committed[length : length + 1], 1)[0].copy()
    model.rollback(length)
    return row


def read(model: LanguageModel, tokens: list[int]) -> Rows:
    """The logits of all positions, from an empty cache."""
    model.rollback(0)
    parts = [tokens[at : at + model.max_rows] for at in range(0, len(tokens), model.max_rows)]
    return np.concatenate([model.forward(part, len(part)).copy() for part in parts])


class Rig:
    """An engine's parts, driven by `decode` itself: prompts and answers are token ids, and any token can be the end."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.target = engine.target
        assert engine.model is not None
        self.draft = engine.model.model

    def decoder(self, prompt: Sequence[int], sources: str) -> Decoder:
        """Everything as it is when an answer begins: the target has read the prompt, the draft model has not."""
        engine = self.engine
        for model in (self.target, self.draft):
            model.rollback(0)
        engine.lookup.rollback(0)
        engine.committed[:] = prompt
        for at in range(0, len(prompt) - 1, self.target.n_batch):
            self.target.forward(prompt[at : min(len(prompt) - 1, at + self.target.n_batch)], 0)
        return Decoder(
            self.target,
            engine.gamma,
            engine.lookup if sources in ("lookup", "both") else None,
            engine.model if sources in ("draft", "both") else None,
            engine.committed,
        )


Ends = Callable[[int, int], Reason | None]
"""Given the index of an emitted token in the answer and its id: why the answer ends with it, if it does."""


@dataclass(frozen=True)
class Run:
    tokens: list[int]
    reason: Reason | None
    """None if the caller ended it."""
    rounds: list[Round]
    stats: Stats

    def rejected(self, source: str) -> int:
        """Rounds in which the target turned down a token of the source."""
        return sum(one.rejected for one in self.rounds if one.source == source)


def run(
    decoder: Decoder,
    sampling: Sampling,
    count: int,
    *,
    gamma: int | None = None,
    speculation: Speculation = "on",
    ends: Ends = lambda index, token: None,
    each_round: EachRound | None = None,
    close_after: int | None = None,
    controls: Controls | None = None,
) -> Run:
    """Decodes up to `count` tokens; `ends(index, token)` may end the answer, `close_after` rounds abandon it."""
    controls = controls or Controls()
    controls.speculation, controls.gamma = speculation, gamma
    stats, before = Stats(), Stats()
    tokens: list[int] = []
    rounds: list[Round] = []

    def take(token: int, source: str) -> Reason | None:
        tokens.append(token)
        return ends(len(tokens) - 1, token)

    reason: Reason | None = None
    generator = decode(decoder, sampling, Limit(len(decoder.committed) + count, "length"), take, controls, stats)
    for outcome in generator:
        reason = outcome
        if stats.target_passes > before.target_passes:
            rounds.append(_round(before, stats))
            before = replace(stats, sources={name: replace(of) for name, of in stats.sources.items()})
            if each_round is not None:
                each_round(len(rounds), controls)
        if len(rounds) == close_after:
            break
    generator.close()  # type: ignore[attr-defined]
    return Run(tokens, reason, rounds, stats)

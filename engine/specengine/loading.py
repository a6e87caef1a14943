"""From a Load request to a ready engine: models in their runtime, and what passes over them cost."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import msgspec
import numpy as np

from specengine import costs_file, llamacpp_models, torch_models
from specengine.backends.torch_nf4.found import look
from specengine.costs import CostTable
from specengine.drafters.lookup import PromptLookup
from specengine.drafters.model import DraftModel
from specengine.engine import Engine
from specengine.engine_choice import choose, torch_folder
from specengine.errors import EngineError
from specengine.gamma import Gamma
from specengine.language_model import LanguageModel
from specengine.layer_skipping import LayerChoice, LayerSkipping
from specengine.measuring import measuring, unmeasured
from specengine.opened import Opened, Progress
from specengine.protocol import Load, Loaded


def load(request: Load, progress: Progress, should_stop: Callable[[], bool]) -> Engine:
    """Loads the target, the draft model if it fits and matches, and the costs that an earlier start kept. Without
    those, the engine measures when it has nothing else to do (`Engine.measure_costs`).

    Raises:
        EngineError: the target can't be loaded; what concerns the draft model only is said in `Loaded` instead.
        Stopped: `should_stop` returned true.
    """
    opened = _opened(request, progress, should_stop)
    key = _costs_key(request, opened)
    file = Path(request.costs_file) if request.costs_file else None
    known = costs_file.read(file, key) if file else None
    vocabulary = opened.target.vocabulary
    layers = LayerChoice(opened.draft) if isinstance(opened.draft, LayerSkipping) else None
    if layers is not None and known is not None:
        layers.take(known.skipped)
    return Engine(
        _loaded(request, opened),
        opened.target,
        DraftModel(opened.draft, vocabulary.size) if opened.draft is not None else None,
        PromptLookup(vocabulary.end_of_generation, vocabulary.control),
        Gamma(known or unmeasured()),
        measuring=None if known else _measuring(opened),
        keep_costs=partial(costs_file.write, file, key) if file else None,
        layers=layers,
    )


def _opened(request: Load, progress: Progress, should_stop: Callable[[], bool]) -> Opened:
    """The models in the engine that suits them; where torch was to be preferred and can't, llama.cpp and the reason."""
    found = cache(look)
    choice = choose(request, found)
    if choice.engine == "torch":
        folder = torch_folder(request)
        assert folder is not None
        try:
            return torch_models.open_models(request, folder, choice.device, found(), progress, should_stop)
        except EngineError as error:
            if request.engine == "torch" or folder == Path(request.model):
                raise
            reason: str | None = f"llama.cpp runs {request.called}: {error}"
    else:
        reason = choice.reason
    opened = llamacpp_models.open_models(request, progress, should_stop)
    return replace(opened, notices=(reason, *opened.notices)) if reason else opened


def _loaded(request: Load, opened: Opened) -> Loaded:
    target = opened.target
    return Loaded(
        name=request.called,
        path=request.model,
        backend=opened.backend,
        device=opened.device,
        n_ctx=target.n_ctx,
        n_vocab=target.vocabulary.size,
        draft=request.draft_called if opened.draft is not None else None,
        draft_refused=opened.draft_refused,
        speculation_refused=target.refusal,
        infill=target.vocabulary.fill_in_middle is not None,
        template=target.chat_template is not None,
        notices=opened.notices,
        n_ctx_trained=opened.n_ctx_trained,
        versions=opened.versions,
    )


def _costs_key(request: Load, opened: Opened) -> str:
    used = request if opened.draft is not None else msgspec.structs.replace(request, draft=None, self_draft=False)
    return costs_file.key(used, f"{opened.versions} {opened.conditions}")


def _measuring(opened: Opened) -> Iterator[CostTable] | None:
    if opened.target.refusal:
        return None  # it decodes plainly, whatever passes cost
    target, draft, share = opened.target, opened.draft, opened.kv_share
    if draft is None:
        return measuring(_timed(target, share), None, None, share)
    return measuring(_timed(target, share), _timed(draft, 0.0), _timed(draft, 0.0, logits=False), share)


def _timed(model: LanguageModel, kv_share: float, logits: bool = True) -> Callable[[int], float]:
    """Runs one pass of a width over arbitrary tokens, leaves the cache as it was, and returns the pass's seconds, less
    what reading the context about takes."""
    tokens = np.random.default_rng(0).integers(0, model.vocabulary.size, model.max_rows).tolist()

    def run(width: int) -> float:
        context = model.length
        started = time.perf_counter()
        try:
            model.forward(tokens[:width], width if logits else 0)
            return (time.perf_counter() - started) / (1 + context * kv_share)
        finally:
            model.rollback(context)

    return run

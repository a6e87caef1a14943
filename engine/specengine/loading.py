"""From a Load request to a ready engine: what fits, whether the pair matches, what passes cost."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from specengine import costs_file, hardware
from specengine.backends.llamacpp import KvType, LlamaModel, LlamaOptions, gpu_offload_supported
from specengine.costs import CostTable, measured
from specengine.drafters.lookup import PromptLookup
from specengine.drafters.model import DraftModel
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.gamma import Gamma
from specengine.gguf_header import GgufHeader, read_header
from specengine.language_model import LanguageModel
from specengine.pair import mismatch
from specengine.protocol import Load, Loaded
from specengine.settings import SMALLEST_CONTEXT

DEFAULT_CONTEXT: Final = 8192
_WORKSPACE: Final = 400 * 10**6
"""Bytes for compute buffers, logits and the process itself."""
_ALL_LAYERS: Final = 999

Progress = Callable[[str, float], None]


def load(request: Load, progress: Progress, should_stop: Callable[[], bool]) -> Engine:
    """Loads the target, the draft model if it fits and matches, and the cost table.

    Raises:
        EngineError: the target can't be loaded; what concerns the draft model only is said in `Loaded` instead.
        Stopped: `should_stop` returned true.
    """
    path = Path(request.model)
    header = read_header(path)
    free = hardware.available_memory()
    options, notices = _options(request, header, path, free)
    name = request.name or path.stem
    target = LlamaModel(path, options, lambda done: progress(f"loading {name}", done), should_stop)
    draft: LlamaModel | None = None
    try:
        draft, refused = _draft(request, target, options, free, progress, should_stop)
        table = _costs(request, target, draft, options.threads, progress, should_stop)
    except BaseException:
        target.close()
        if draft is not None:
            draft.close()
        raise
    loaded = Loaded(
        name=name,
        path=str(path),
        backend="llama.cpp",
        device=_device(options),
        n_ctx=target.n_ctx,
        n_vocab=target.vocabulary.size,
        draft=_draft_name(request) if draft is not None else None,
        draft_refused=refused,
        speculation_refused=target.refusal,
        infill=target.vocabulary.fill_in_middle is not None,
        template=target.chat_template is not None,
        notices=tuple(notices),
    )
    model = DraftModel(draft, target.vocabulary.size) if draft is not None else None
    return Engine(
        loaded,
        target,
        model,
        PromptLookup(target.vocabulary.end_of_generation, target.vocabulary.control),
        Gamma(table),
    )


def _options(request: Load, header: GgufHeader, path: Path, free: int | None) -> tuple[LlamaOptions, list[str]]:
    notices = []
    kv_type: KvType = "bf16" if request.exact else "f16"
    trained = header.context_length or DEFAULT_CONTEXT
    n_ctx = request.n_ctx or min(trained, DEFAULT_CONTEXT)
    if n_ctx < SMALLEST_CONTEXT:
        raise EngineError(f"A context of {n_ctx} tokens is too small; --ctx must be {SMALLEST_CONTEXT} or more.")
    if n_ctx > trained:
        n_ctx = trained
        notices.append(f"{path.name} was trained for contexts of {trained:,} tokens; the context is limited to that.")
    per_token = header.kv_bytes_per_token or 0  # f16 and bf16 alike
    room = None if free is None else free - path.stat().st_size - _WORKSPACE
    if room is not None and per_token and n_ctx * per_token > room:
        if request.n_ctx or room < SMALLEST_CONTEXT * per_token:
            need = path.stat().st_size + _WORKSPACE + n_ctx * per_token
            raise EngineError(
                f"{path.name} with a context of {n_ctx:,} tokens needs {need / 1e9:.1f} GB of memory and "
                f"{(free or 0) / 1e9:.1f} GB are free; try a smaller --ctx or a smaller model."
            )
        n_ctx = int(room / per_token) // 256 * 256
        notices.append(f"Memory is short: the context is limited to {n_ctx:,} tokens.")
    gpu_layers = request.gpu_layers
    if gpu_layers is None:
        gpu_layers = _ALL_LAYERS if gpu_offload_supported() else 0
    threads = request.threads or hardware.physical_cores()
    if threads > (most := hardware.allowed_cpus()):
        threads = most
        notices.append(f"This machine has {most} processors: more threads would only wait for each other.")
    return LlamaOptions(n_ctx, threads, gpu_layers, kv_type), notices


def _draft(
    request: Load,
    target: LlamaModel,
    options: LlamaOptions,
    free: int | None,
    progress: Progress,
    should_stop: Callable[[], bool],
) -> tuple[LlamaModel | None, str | None]:
    """The draft model, or why it isn't used: it is given up before the target's context is."""
    if request.draft is None:
        return None, None
    if target.refusal:
        return None, target.refusal
    path, name = Path(request.draft), _draft_name(request)
    try:
        header = read_header(path)
        n_ctx = min(target.n_ctx, header.context_length or target.n_ctx)
        needed = path.stat().st_size + _WORKSPACE + n_ctx * (header.kv_bytes_per_token or 0)
        taken = Path(request.model).stat().st_size + _WORKSPACE
        if free is not None and needed > free - taken:
            return None, f"{name} does not fit into memory beside the target; prompt lookup drafts alone."
        own = LlamaOptions(n_ctx, options.threads, options.gpu_layers, options.kv_type)
        draft = LlamaModel(path, own, lambda done: progress(f"loading {name}", done), should_stop)
    except EngineError as error:
        return None, f"{error} Prompt lookup drafts alone."
    difference = draft.refusal or mismatch(target.vocabulary, draft.vocabulary)
    if difference:
        draft.close()
        return None, f"{name} can't draft for this model: {difference} Prompt lookup drafts alone."
    return draft, None


def _draft_name(request: Load) -> str:
    return request.draft_name or Path(request.draft or "").stem


def _costs(
    request: Load,
    target: LlamaModel,
    draft: LlamaModel | None,
    threads: int,
    progress: Progress,
    should_stop: Callable[[], bool],
) -> CostTable:
    """The table kept from an earlier start, else one measured now."""
    used = request if draft is not None else msgspec.structs.replace(request, draft=None)
    key = costs_file.key(used, threads)
    file = Path(request.costs_file) if request.costs_file else None
    known = costs_file.read(file, key) if file else None
    if known is not None:
        return known
    progress("measuring what passes cost", 0.0)
    table = measured(_timed(target, should_stop), _timed(draft, should_stop) if draft is not None else None)
    target.rollback(0)
    if draft is not None:
        draft.rollback(0)
    if file:
        costs_file.write(file, key, table)
    return table


def _timed(model: LanguageModel, should_stop: Callable[[], bool]) -> Callable[[int], float]:
    """Runs one pass of a width over arbitrary tokens, behind nothing, and returns its seconds."""
    tokens = np.random.default_rng(0).integers(0, model.vocabulary.size, model.max_rows).tolist()

    def run(width: int) -> float:
        if should_stop():
            raise Stopped
        model.rollback(0)
        started = time.perf_counter()
        model.forward(tokens[:width], width)
        return time.perf_counter() - started

    return run


def _device(options: LlamaOptions) -> str:
    if options.gpu_layers:
        return "GPU"
    return "CPU, 1 thread" if options.threads == 1 else f"CPU, {options.threads} threads"

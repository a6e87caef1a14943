"""From a Load request to models in llama.cpp: what fits, whether the pair matches."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from specengine import hardware
from specengine.backends.llamacpp import KvType, LlamaModel, LlamaOptions, gpu_offload_supported
from specengine.context_size import Needs, context_size
from specengine.errors import EngineError
from specengine.gguf_header import GgufHeader, read_header
from specengine.opened import Opened, Progress
from specengine.pair import mismatch
from specengine.protocol import Load

_WORKSPACE: Final = 400 * 10**6
"""Bytes for compute buffers, logits and the process itself."""
_ALL_LAYERS: Final = 999
_NO_SELF_DRAFT: Final = (
    "A model can draft for itself (--draft self) only in the torch engine, and llama.cpp runs this one: choose "
    "--engine torch, or name a draft model. Prompt lookup drafts alone."
)


def open_models(request: Load, progress: Progress, should_stop: Callable[[], bool]) -> Opened:
    """Loads the target, and the draft model if it fits and matches.

    Raises:
        EngineError: the target can't be loaded; what concerns the draft model only is said in the result.
        Stopped: `should_stop` returned true.
    """
    path = Path(request.model)
    header = read_header(path)
    free = hardware.available_memory()
    options, notices = _options(request, header, path, free)
    target = LlamaModel(path, options, lambda done: progress(f"loading {request.called}", done), should_stop)
    try:
        draft, refused = _draft(request, target, options, free, progress, should_stop)
    except BaseException:
        target.close()
        raise
    return Opened(
        target,
        draft,
        refused,
        "llama.cpp",
        _device(options),
        f"llama-cpp-python {version('llama-cpp-python')}",
        f"{options.threads} threads gpu {options.gpu_layers} {options.kv_type}",
        tuple(notices),
        header.context_length,
        (header.kv_bytes_per_token or 0) / path.stat().st_size,
    )


def _options(request: Load, header: GgufHeader, path: Path, free: int | None) -> tuple[LlamaOptions, list[str]]:
    # An F16 and a BF16 cache are of the same size.
    needs = Needs(path.name, header.context_length, path.stat().st_size + _WORKSPACE, header.kv_bytes_per_token or 0)
    n_ctx, notices = context_size(request.n_ctx, needs, free)
    kv_type: KvType = "bf16" if request.exact else "f16"
    threads, more = hardware.threads(request.threads)
    return LlamaOptions(n_ctx, threads, _gpu_layers(request), kv_type), [*notices, *more]


def _gpu_layers(request: Load) -> int:
    if request.device == "cpu":
        return 0
    if request.device == "cuda" and not gpu_offload_supported():
        raise EngineError(
            "This llama.cpp is a build for processors, so it can't use a graphics card: install llama-cpp-python with "
            "CUDA, or leave --device out."
        )
    if request.gpu_layers is not None:
        return request.gpu_layers
    return _ALL_LAYERS if gpu_offload_supported() else 0


def _draft(
    request: Load,
    target: LlamaModel,
    options: LlamaOptions,
    free: int | None,
    progress: Progress,
    should_stop: Callable[[], bool],
) -> tuple[LlamaModel | None, str | None]:
    """The draft model, or why it isn't used: it is given up before the target's context is."""
    if request.self_draft:
        return None, _NO_SELF_DRAFT
    if request.draft is None:
        return None, None
    if target.refusal:
        return None, target.refusal
    path, name = Path(request.draft), request.draft_called
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


def _device(options: LlamaOptions) -> str:
    if options.gpu_layers:
        return "GPU"
    return "CPU, 1 thread" if options.threads == 1 else f"CPU, {options.threads} threads"

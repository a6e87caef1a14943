"""The llama.cpp runtime: one GGUF model behind the LanguageModel contract, on llama-cpp-python's C API.

The `Llama` class of that package is not used: it scores every prompt token, allocates a row of logits for each position
of the context and can't tell a failed rollback from a good one.
"""

import ctypes
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal

import llama_cpp as c
import numpy as np

from specengine.backends.amx import amx_refused
from specengine.backends.llamacpp_vocabulary import LlamaVocabulary
from specengine.errors import EngineError, Stopped
from specengine.language_model import Rows, Vocabulary

KvType = Literal["f32", "f16", "bf16"]

_KV_TYPES: Final[dict[KvType, int]] = {
    "f32": c.GGML_TYPE_F32,
    "f16": c.GGML_TYPE_F16,
    "bf16": 30,  # GGML_TYPE_BF16 of ggml.h; the Python binding leaves it out
}
_PREFILL_CHUNK: Final = 512
_MAX_ROWS: Final = 128
"""Most positions scored in one pass. llama.cpp reserves a row of logits for each, so it bounds memory too."""

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class LlamaOptions:
    """How to load a GGUF file."""

    n_ctx: int
    threads: int
    gpu_layers: int = 0
    kv_type: KvType = "f16"
    flash_attention: bool = True


class LlamaModel:
    """Implements `language_model.LanguageModel`."""

    def __init__(
        self,
        path: Path,
        options: LlamaOptions,
        progress: Callable[[float], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """Loads the file.

        Raises:
            EngineError: llama.cpp refuses the file, or memory is short.
            Stopped: `should_stop` returned true while loading.
        """
        _start_backend()
        self._context: c.llama_context_p | None = None
        with amx_refused():
            self._model: c.llama_model_p | None = _load(path, options, progress, should_stop)
        try:
            self._context = _new_context(self._model, options, path)
            vocabulary = c.llama_model_get_vocab(self._model)
            if vocabulary is None:
                raise EngineError(f"{path.name} has no vocabulary; it is not a language model. Choose another file.")
            self.vocabulary: Vocabulary = LlamaVocabulary(vocabulary)
        except BaseException:
            self.close()
            raise
        # llama.cpp rounds the context up; what was asked for is what holds.
        self.n_ctx: int = min(options.n_ctx, c.llama_n_ctx(self._context))
        self.n_batch = min(_PREFILL_CHUNK, self.n_ctx)
        self.max_rows = min(_MAX_ROWS, self.n_batch)
        self.refusal = _rollback_refusal(self._model)
        self.chat_template = _chat_template(self._model)
        self._length = 0
        self._name = path.name
        self._memory = c.llama_get_memory(self._context)
        self._batch = c.llama_batch_init(self.n_batch, 0, 1)
        self._tokens = np.ctypeslib.as_array(self._batch.token, (self.n_batch,))
        self._positions = np.ctypeslib.as_array(self._batch.pos, (self.n_batch,))
        self._wanted = np.ctypeslib.as_array(self._batch.logits, (self.n_batch,))
        np.ctypeslib.as_array(self._batch.n_seq_id, (self.n_batch,))[:] = 1
        for i in range(self.n_batch):
            self._batch.seq_id[i][0] = 0

    @property
    def length(self) -> int:
        return self._length

    def forward(self, tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None = None) -> Rows:
        count = len(tokens)
        if not (0 < count <= self.n_batch and 0 <= rows <= min(count, self.max_rows)):
            raise ValueError(f"{count} tokens with {rows} rows don't fit a pass of {self.n_batch} and {self.max_rows}")
        if self._length + count > self.n_ctx:
            raise EngineError(
                f"The context of {self.n_ctx} tokens is full; start a new chat or load the model with a larger context."
            )
        self._fill_batch(tokens, rows)
        result = self._decode(should_stop)
        if result != 0:
            # The state of a recurrent model can't be cut: what it had read is lost with a pass that breaks off.
            self._cut(0 if self.refusal else self._length)
            if result == 2:
                raise Stopped
            raise EngineError(
                f"llama.cpp could not run {self._name} on {count} tokens (code {result}); memory may be short: "
                "try a smaller context or model."
            )
        self._length += count
        return self._read_rows(rows)

    def rollback(self, length: int) -> None:
        if not 0 <= length <= self._length:
            raise ValueError(f"rollback to {length} of {self._length} tokens")
        if length == self._length:
            return
        if self.refusal and length > 0:
            raise EngineError(self.refusal)
        self._cut(length)

    def close(self) -> None:
        if self._context is not None:
            if hasattr(self, "_batch"):
                c.llama_batch_free(self._batch)
            c.llama_free(self._context)
            self._context = None
        if self._model is not None:
            c.llama_model_free(self._model)
            self._model = None

    def _fill_batch(self, tokens: Sequence[int], rows: int) -> None:
        count = len(tokens)
        self._batch.n_tokens = count
        self._tokens[:count] = tokens
        self._positions[:count] = np.arange(self._length, self._length + count)
        self._wanted[: count - rows] = 0
        self._wanted[count - rows : count] = 1

    def _decode(self, should_stop: Callable[[], bool] | None) -> int:
        if should_stop is None:
            return int(c.llama_decode(self._context, self._batch))
        callback = c.ggml_abort_callback(lambda _: should_stop())
        c.llama_set_abort_callback(self._context, callback, None)
        try:
            return int(c.llama_decode(self._context, self._batch))
        finally:
            # Asked some 500 times a pass, the callback costs about 4 % of a small model's speed.
            c.llama_set_abort_callback(self._context, c.ggml_abort_callback(), None)

    def _read_rows(self, rows: int) -> Rows:
        width = self.vocabulary.size
        if rows == 0:
            return np.empty((0, width), np.float32)
        pointer = c.llama_get_logits(self._context)
        if not pointer:
            raise EngineError(f"llama.cpp returned no logits for {self._name}; load the model again.")
        return np.ctypeslib.as_array(pointer, (rows, width))

    def _cut(self, length: int) -> None:
        if not c.llama_memory_seq_rm(self._memory, 0, length, -1):
            raise EngineError(f"llama.cpp could not roll back the KV cache of {self._name}; turn speculation off.")
        last = c.llama_memory_seq_pos_max(self._memory, 0)
        if last != length - 1:
            raise EngineError(
                f"The KV cache of {self._name} holds {last + 1} tokens instead of {length}; load it again."
            )
        self._length = length


@cache
def _start_backend() -> None:
    c.llama_log_set(_log_line, ctypes.c_void_p(0))
    c.llama_backend_init()


@c.llama_log_callback  # type: ignore[untyped-decorator]
def _log_line(level: int, text: bytes, _: object) -> None:
    """Native lines go to the log, never to the terminal that the user is looking at."""
    severity = {3: logging.WARNING, 4: logging.ERROR}.get(level, logging.DEBUG)
    if line := text.decode("utf-8", errors="replace").strip():
        log.log(severity, "%s", line)


def _load(
    path: Path,
    options: LlamaOptions,
    progress: Callable[[float], None] | None,
    should_stop: Callable[[], bool] | None,
) -> c.llama_model_p:
    stopped = threading.Event()

    def on_progress(fraction: float, _: object) -> bool:
        if progress is not None:
            progress(fraction)
        if should_stop is not None and should_stop():
            stopped.set()
        return not stopped.is_set()

    params = c.llama_model_default_params()
    params.n_gpu_layers = options.gpu_layers
    params.progress_callback = callback = c.llama_progress_callback(on_progress)
    model: c.llama_model_p | None = c.llama_model_load_from_file(str(path).encode(), params)
    del callback  # it had to outlive the call
    if stopped.is_set():
        if model is not None:
            c.llama_model_free(model)
        raise Stopped
    if model is None:
        raise EngineError(
            f"llama.cpp could not load {path}: the file is damaged, of an unknown kind, or too large for the memory "
            "that is free. Pull it again, or choose a smaller model."
        )
    return model


def _new_context(model: c.llama_model_p, options: LlamaOptions, path: Path) -> c.llama_context_p:
    params = c.llama_context_default_params()
    params.n_ctx = options.n_ctx
    params.n_batch = params.n_ubatch = min(_PREFILL_CHUNK, options.n_ctx)
    params.n_outputs_max = min(_MAX_ROWS, options.n_ctx)
    params.n_seq_max = 1
    params.n_threads = params.n_threads_batch = options.threads
    params.type_k = params.type_v = _KV_TYPES[options.kv_type]
    params.flash_attn_type = (
        c.LLAMA_FLASH_ATTN_TYPE_ENABLED if options.flash_attention else c.LLAMA_FLASH_ATTN_TYPE_DISABLED
    )
    params.no_perf = True
    # A sliding-window cache of the window's size loses what a deep rollback needs and says nothing of it.
    params.swa_full = True
    context: c.llama_context_p | None = c.llama_init_from_model(model, params)
    if context is None:
        raise EngineError(
            f"There is not enough memory for {path.name} with a context of {options.n_ctx} tokens; "
            "try a smaller --ctx or a smaller model."
        )
    return context


def _rollback_refusal(model: c.llama_model_p) -> str | None:
    if c.llama_model_is_recurrent(model) or c.llama_model_is_hybrid(model):
        return "This model keeps recurrent state, which can't be rolled back, so speculation stays off."
    return None


def _chat_template(model: c.llama_model_p) -> str | None:
    template: bytes | None = c.llama_model_chat_template(model, None)
    return template.decode("utf-8", errors="replace") if template else None


def gpu_offload_supported() -> bool:
    """Whether this llama.cpp build can run layers on a GPU."""
    return bool(c.llama_supports_gpu_offload())

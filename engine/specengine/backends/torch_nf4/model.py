"""One Hugging Face model in torch behind the LanguageModel contract, batch of one."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from transformers import DynamicCache, PreTrainedModel

from specengine.backends.torch_nf4.few_tokens import WIDEST, FewTokens, fits
from specengine.backends.torch_nf4.graphs import Graphs
from specengine.backends.torch_nf4.heap import freed_at_once
from specengine.backends.torch_nf4.kv import KvCache
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.backends.torch_nf4.refusals import rollback_refusal
from specengine.backends.torch_nf4.vocabulary import HfVocabulary, chat_template
from specengine.backends.torch_nf4.weights import load_weights
from specengine.errors import EngineError, Stopped
from specengine.language_model import Rows, Vocabulary
from specengine.model_folder import ModelFolder

_PREFILL_CHUNK: Final = 512
_MAX_ROWS: Final = 128
_CPU_BLOCK: Final = 64
"""Positions that keys and values are padded to: with it, passes of all widths agree to the last bit; 32 does too."""


class TorchModel:
    """Implements `language_model.LanguageModel`."""

    def __init__(
        self,
        folder: ModelFolder,
        options: TorchOptions,
        progress: Callable[[float], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> None:
        """Loads the folder.

        Raises:
            EngineError: it can't be loaded, or memory is short.
            Stopped: `should_stop` returned true while loading.
        """
        torch.set_num_threads(options.threads)
        self._name = folder.path.name
        self._device = torch.device(options.device)
        self.chat_template = chat_template(folder.path)
        self.refusal = rollback_refusal(folder)
        with torch.inference_mode(), freed_at_once(), _memory_errors(f"There is not enough memory for {self._name}"):
            self._model: PreTrainedModel | None = load_weights(folder, options, progress, should_stop)
        self.vocabulary: Vocabulary = HfVocabulary(folder, self._model.get_output_embeddings().out_features)
        self.n_ctx = options.n_ctx
        self.n_batch = min(_PREFILL_CHUNK, self.n_ctx)
        self.max_rows = min(_MAX_ROWS, self.n_batch)
        self._cache_argument = cache_argument(self._model)
        on_card = self._device.type == "cuda"
        block = 1 if on_card else _CPU_BLOCK
        self._kv = KvCache(self._model.config.num_hidden_layers, self.n_ctx, block, whole=on_card)
        self._recurrent: DynamicCache | None = None
        self._few: Graphs | None = None
        if self.refusal is None and fits(self._model):
            with torch.inference_mode(), freed_at_once():  # some processors have matrices laid out anew
                self._few = Graphs(FewTokens(self._model, self._kv, static=on_card), capture=on_card)
            if on_card:
                self._run_usual_shapes()
        if self.refusal:
            # Recurrent layers need the library's own cache, which knows their state but no way back.
            self._begin_anew()
            for layer in self._model.get_decoder().layers:
                layer.register_forward_pre_hook(lambda *_: self._kv.ask())

    @property
    def length(self) -> int:
        return self._kv.length

    def forward(self, tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None = None) -> Rows:
        self._kv.ahead = 0
        result = self._run(tokens, rows, should_stop)
        self._kv.length += len(tokens)
        return result

    def _run(self, tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None) -> Rows:
        count = len(tokens)
        if not (0 < count <= self.n_batch and 0 <= rows <= min(count, self.max_rows)):
            raise ValueError(f"{count} tokens with {rows} rows don't fit a pass of {self.n_batch} and {self.max_rows}")
        if self._kv.end + count > self.n_ctx:
            raise EngineError(
                f"The context of {self.n_ctx} tokens is full; start a new chat or load the model with a larger context."
            )
        if not 0 <= min(tokens) <= max(tokens) < self.vocabulary.size:
            raise EngineError(f"{self._name} has no token {max(tokens)}; load it again.")
        self._kv.should_stop = should_stop
        try:
            with torch.inference_mode(), _memory_errors(f"Memory ran out while {self._name} read {count} tokens"):
                result = self._pass(tokens, rows)
        except BaseException:
            self._forget_failed_pass()
            raise
        finally:
            self._kv.should_stop = None
        return result

    def rollback(self, length: int) -> None:
        if not 0 <= length <= self.length:
            raise ValueError(f"rollback to {length} of {self.length} tokens")
        if length == self.length:
            return
        if self.refusal:
            if length > 0:
                raise EngineError(self.refusal)
            self._begin_anew()
        self._kv.length, self._kv.ahead = length, 0

    def close(self) -> None:
        self._model = self._recurrent = self._few = None
        self._kv.drop()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _pass(self, tokens: Sequence[int], rows: int) -> Rows:
        assert self._model is not None
        own = self._own_way(len(tokens), rows)
        if own is not None:
            self._kv.ask()
            return own.on_host(own.forward(tokens, rows))
        start = self._kv.end
        given: dict[str, Any] = {
            "input_ids": torch.tensor([tokens], device=self._device),
            "position_ids": torch.arange(start, start + len(tokens), device=self._device)[None],
            self._cache_argument: self._recurrent if self._recurrent is not None else self._kv.cache,
            "use_cache": True,
        }
        if rows == 0:
            # To the library no rows to keep means all of them.
            self._model.get_decoder()(**given)
            return torch.empty((0, self.vocabulary.size)).numpy()
        logits: torch.Tensor = self._model(**given, logits_to_keep=rows).logits[0]
        result: Rows = logits.float().cpu().numpy()
        return result

    def _own_way(self, count: int, rows: int) -> Graphs | None:
        """What runs a narrow pass through the model as it is now, without the library's modules."""
        own = self._few
        if own is None or own.model is not self._model or rows == 0 or count > WIDEST or not self._kv.ready:
            return None
        return own

    def _run_usual_shapes(self) -> None:
        """Has the graphs of short texts captured, so that no measured pass and no answer's first rounds wait for it."""
        self.forward([0], 0)  # the library's pass makes the buffers
        for width in range(1, min(WIDEST, self.n_ctx) + 1):
            for rows in {1, width}:
                self.rollback(0)
                self.forward([0] * width, rows)
        self.rollback(0)

    def _forget_failed_pass(self) -> None:
        """The cache is as before; recurrent state, which some layers have moved on already, is lost."""
        if self.refusal:
            self._begin_anew()
            self._kv.length = 0

    def _begin_anew(self) -> None:
        assert self._model is not None
        self._recurrent = DynamicCache(config=self._model.config)


def cache_argument(model: PreTrainedModel) -> str:
    """What this release of transformers calls the cache that a model is given: `cache` since 5.24."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


@contextlib.contextmanager
def _memory_errors(what: str) -> Iterator[None]:
    """Turns a failed allocation, on any device, into one sentence."""
    try:
        yield
    except Stopped:
        raise
    except (MemoryError, RuntimeError) as error:
        short = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "allocate" in str(error)
        if not short:
            raise
        raise EngineError(f"{what}; try a smaller --ctx or a smaller model.") from None

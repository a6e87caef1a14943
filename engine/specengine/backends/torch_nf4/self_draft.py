"""Self-speculation (Zhang 2023, "Draft & Verify"): a model drafts for itself with some of its layers left out.

No second set of weights and no second KV cache. Past tokens are those that the whole model has read, in its own cache;
the draft writes behind them, in its own layers only, and the verifying pass overwrites all of that before it reads.
"""

import copy
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from specengine.backends.torch_nf4.few_tokens import FewTokens
from specengine.backends.torch_nf4.graphs import Graphs
from specengine.backends.torch_nf4.model import TorchModel
from specengine.errors import EngineError
from specengine.language_model import Rows
from specengine.middle_layers import first_choice


class SelfDraft(TorchModel):
    """Implements `language_model.LanguageModel` over a loaded model, whose cache it shares.

    Its length is never less than the model's own: what that has read, this has.
    """

    def __init__(self, target: TorchModel) -> None:
        """Leaves out what `middle_layers.first_choice` says.

        Args:
            target: stays the owner of weights and cache.

        Raises:
            EngineError: no layer can be left out of a model of this make.
        """
        vars(self).update(vars(target))  # all is the target's, but what a pass runs through
        assert target._model is not None
        self._whole: PreTrainedModel = target._model
        _refuse_if_bound(self._whole, self._name)
        self.layers = len(self._whole.get_decoder().layers)
        self.skipped: tuple[int, ...] = ()
        self.skip(first_choice(self.layers))

    @property
    def length(self) -> int:
        return self._kv.end

    def skip(self, skipped: Collection[int]) -> None:
        """Leaves out these layers from now on, and only these."""
        self._model = without_layers(self._whole, skipped)
        if self._few is not None:
            on_card = self._device.type == "cuda"
            self._few = Graphs(FewTokens(self._model, self._kv, static=on_card), capture=on_card)
        self.skipped = tuple(sorted(skipped))
        self._kv.ahead = 0
        if self._few is not None and self._few.capture and self._kv.ready and self._kv.end < self.n_ctx:
            self.forward([0], 1)  # captured now, no round waits for it
            self._kv.ahead = 0

    def forward(self, tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None = None) -> Rows:
        result = self._run(tokens, rows, should_stop)
        self._kv.ahead += len(tokens)
        return result

    def rollback(self, length: int) -> None:
        if not self._kv.length <= length <= self.length:
            raise ValueError(f"rollback to {length} of {self.length} tokens, {self._kv.length} of them the target's")
        self._kv.ahead = length - self._kv.length

    def close(self) -> None:
        self._model = self._few = None

    def rows(self, tokens: Sequence[int], start: int) -> Rows:
        """What it would say behind each of `tokens`, which the target has read from position `start` on; nothing in the
        cache changes. Each position sees the target's keys and values of those before it, as in a draft's first step.
        """
        assert self._model is not None
        with torch.inference_mode():
            result: Rows = self._beside(self._model, tokens, start).float().cpu().numpy()
        return result

    def agreement(self, skipped: Collection[int], tokens: Sequence[int], start: int) -> float:
        """The share of `tokens[1:]` that the model without the layers `skipped` finds likeliest there; see `rows`."""
        with torch.inference_mode():
            found = self._beside(without_layers(self._whole, skipped), tokens[:-1], start).argmax(-1)
            right = found == torch.tensor(tokens[1:], device=self._device)
            return float(right.float().mean())

    def _beside(self, model: PreTrainedModel, tokens: Sequence[int], start: int) -> torch.Tensor:
        """Logits of all `tokens`, by a pass that leaves nothing in the cache."""
        held, count = self._kv.length, len(tokens)
        places = torch.arange(start, start + count, device=self._device)
        before = torch.arange(held, device=self._device)[None] < places[:, None]
        mask = torch.cat((before, torch.eye(count, dtype=torch.bool, device=self._device)), 1)
        self._kv.ahead = 0
        self._kv.beside = True
        try:
            given: dict[str, Any] = {self._cache_argument: self._kv.cache, "use_cache": True}
            logits: torch.Tensor = model(
                input_ids=torch.tensor([tokens], device=self._device),
                position_ids=places[None],
                attention_mask=mask[None, None],
                **given,
            ).logits[0]
            return logits
        finally:
            self._kv.beside = False


def _refuse_if_bound(model: PreTrainedModel, name: str) -> None:
    decoder = model.get_decoder()
    why = None
    if model.base_model is not decoder or not isinstance(decoder.layers, nn.ModuleList):
        why = "its layers are not where they usually are"
    elif getattr(decoder.config, "num_kv_shared_layers", 0):
        why = "its layers use each other's keys and values"
    elif model.dtype == torch.float16:
        why = "this card computes in fp16, which holds no numbers as large as a part of a model may come to"
    elif len(decoder.layers) < 2:
        why = "it has one layer only"
    if why:
        raise EngineError(f"{name} can't draft for itself: {why}.")


def without_layers(model: PreTrainedModel, skipped: Collection[int]) -> PreTrainedModel:
    """The same model, sharing all modules, whose passes leave out the layers of these indices."""
    decoder = model.get_decoder()
    kept = [index for index in range(len(decoder.layers)) if index not in skipped]
    thin = _another(decoder)
    thin.layers = nn.ModuleList(decoder.layers[index] for index in kept)
    thin.config = copy.copy(decoder.config)
    kinds = getattr(decoder.config, "layer_types", None)
    thin.config.num_hidden_layers = len(kept)
    if kinds is not None:
        thin.config.layer_types = [kinds[index] for index in kept]
    whole = _another(model)
    setattr(whole, model.base_model_prefix, thin)
    return whole


def _another(module: Any) -> Any:  # noqa: ANN401 - of the same class
    """A module with the same parts, any of which can be replaced in it alone."""
    made = copy.copy(module)
    made._modules = dict(module._modules)
    return made

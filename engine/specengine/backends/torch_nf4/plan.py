"""How much memory a model takes in the torch engine, from the tables of its files."""

from dataclasses import dataclass
from typing import Final

from specengine.backends.torch_nf4.options import Precision, TorchDevice
from specengine.backends.torch_nf4.refusals import HEAD, HEAD_BIAS, head_fits, quantisable
from specengine.model_folder import ModelFolder, Tensor

BYTES: Final[dict[Precision, int]] = {"bf16": 2, "fp16": 2, "fp32": 4}
_NF4: Final = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes a weight: four bits, and a scale for each 64 in eight bits, with a scale of fp32 for each 256 of those."""
_NF4_ON_CPU: Final = 0.5 + 2 / 64
"""The CPU kernels keep the scales in bf16."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Bytes of memory."""

    weights: int
    kv_per_token: int

    def needed(self, n_ctx: int) -> int:
        """Weights and KV cache."""
        return self.weights + self.kv_per_token * n_ctx


def plan(folder: ModelFolder, precision: Precision, device: TorchDevice, quantised_head: bool = False) -> Plan:
    """What the model takes once it is loaded.

    Args:
        quantised_head: as `TorchOptions.quantised_head`; a head that is the embedding, too, is there twice then.
    """
    four_bits = sum(tensor.count for _, tensor in quantisable(folder))
    others = sum(tensor.count for name, tensor in folder.tensors.items() if name != HEAD) - four_bits
    head = _head(folder)
    if quantised_head and head is not None and HEAD_BIAS not in folder.tensors and head_fits(*head.shape):
        four_bits += head.count
    elif not folder.tied and head is not None:
        others += head.count
    per_weight = _NF4_ON_CPU if device == "cpu" else _NF4
    weights = int(four_bits * per_weight) + others * BYTES[precision]
    return Plan(weights, folder.kv_bytes_per_token(BYTES[precision]) or 0)


def _head(folder: ModelFolder) -> Tensor | None:
    if not folder.tied:
        return folder.tensors.get(HEAD)
    return next((tensor for name, tensor in folder.tensors.items() if name.endswith("embed_tokens.weight")), None)

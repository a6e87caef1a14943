"""How much memory a model takes in the torch engine, from the tables of its files."""

from dataclasses import dataclass
from typing import Final

from specengine.backends.torch_nf4.options import Precision, TorchDevice
from specengine.backends.torch_nf4.refusals import quantisable
from specengine.model_folder import ModelFolder

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


def plan(folder: ModelFolder, precision: Precision, device: TorchDevice) -> Plan:
    """What the model takes once it is loaded."""
    inner = sum(tensor.count for _, tensor in quantisable(folder))
    doubled = "lm_head.weight" if folder.tied else None
    outer = sum(tensor.count for name, tensor in folder.tensors.items() if name != doubled) - inner
    per_weight = _NF4_ON_CPU if device == "cpu" else _NF4
    return Plan(int(inner * per_weight) + outer * BYTES[precision], folder.kv_bytes_per_token(BYTES[precision]) or 0)

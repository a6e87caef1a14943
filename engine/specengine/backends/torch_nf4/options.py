"""How a model is loaded into torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Precision = Literal["bf16", "fp16", "fp32"]
"""Of everything that is not in four bits: activations, KV cache, embeddings, head and norms."""
TorchDevice = Literal["cuda", "cpu"]


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How to load a folder."""

    n_ctx: int
    device: TorchDevice = "cpu"
    precision: Precision = "bf16"
    quantised: bool = True
    """Matrices of the layers in NF4 with double quantisation; embeddings, head and norms stay as they are."""
    quantised_head: bool = False
    """The head in four bits too, for models that draft: what they propose is verified anyway, and the head is half of
    what a small model reads for a token."""
    threads: int = 1
    kept: Path | None = None
    """File that keeps the quantised matrices between starts."""

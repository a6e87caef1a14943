"""What the torch engine can't do, and why, from what was found: no torch is needed to know it."""

import re
from collections.abc import Iterator
from typing import Final

from specengine.backends.torch_nf4.found import Card, Found
from specengine.backends.torch_nf4.options import Precision, TorchDevice
from specengine.model_folder import ModelFolder, Tensor

OLDEST_FAST_BITSANDBYTES: Final = "0.50.1"
_OLDEST_CARD: Final = (7, 5)
_FIRST_WITH_BF16: Final = (8, 0)
_FP16_SAFE: Final = frozenset({"llama", "mistral"})
"""Model types whose activations stay below 65,504, fp16's largest number, though their weights are published in bf16.
Qwen2 and Gemma are known not to."""
BLOCK: Final = 64
"""Weights that share a scale; a row must hold whole blocks."""
CPU_ROWS: Final = 32
"""What the CPU kernels want the number of rows to be a multiple of."""
HEAD: Final = "lm_head.weight"
HEAD_BIAS: Final = "lm_head.bias"
_RECURRENT: Final = frozenset({"linear_attention", "mamba", "mamba2", "conv", "recurrent", "hybrid", "rwkv"})
_ATTENTION: Final = frozenset({"full_attention", "sliding_attention"})


def not_installed(found: Found) -> str | None:
    """Why there is no torch engine at all."""
    if found.missing:
        return f"the torch engine needs {', '.join(found.missing)}: pip install 'specchat[gpu]'"
    if found.problem:
        return f"torch does not load ({found.problem}): install it again"
    return None


def device_refusal(found: Found, device: TorchDevice) -> str | None:
    """Why `device` can't be had from torch."""
    if device == "cpu":
        return None
    if found.card is not None:
        return _card_refusal(found.card)
    if found.cuda_build is None:
        return (
            f"this torch ({found.versions.get('torch', 'unknown')}) is a build without CUDA: install one with it, see "
            "pytorch.org/get-started"
        )
    return "torch sees no CUDA card: check the driver with nvidia-smi"


def _card_refusal(card: Card) -> str | None:
    if card.capability < _OLDEST_CARD:
        return (
            f"{card.name} is too old for 4-bit kernels (compute capability {_dotted(card.capability)}, 7.5 is needed)"
        )
    return None


def precision(found: Found, device: TorchDevice) -> Precision:
    """What to compute in; whether that goes well says `overflow`."""
    old = device == "cuda" and found.card is not None and found.card.capability < _FIRST_WITH_BF16
    return "fp16" if old else "bf16"


def overflow(found: Found, device: TorchDevice, folder: ModelFolder) -> str | None:
    """Why this model's numbers don't fit what this card computes in."""
    stored = str(folder.config.get("dtype") or folder.config.get("torch_dtype") or "")
    safe = stored == "float16" or folder.model_type in _FP16_SAFE
    if precision(found, device) == "bf16" or safe or found.card is None:
        return None
    return (
        f"{found.card.name} (compute capability {_dotted(found.card.capability)}) has no bf16, and "
        f"{folder.model_type or 'such'} models overflow in fp16"
    )


def model_refusal(folder: ModelFolder, device: TorchDevice) -> str | None:
    """Why this model can't be loaded by the torch engine."""
    if folder.quantisation not in (None, "bitsandbytes"):
        return f"its weights are quantised already ({folder.quantisation}), and only plain ones can be read"
    if folder.quantisation == "bitsandbytes":
        return "its weights are quantised already, and only plain ones can be read"
    unknown = folder.layer_types - _ATTENTION - _RECURRENT
    if unknown:
        return f"it has layers of a kind that is not known ({', '.join(sorted(unknown))})"
    if device == "cpu":
        for name, tensor in quantisable(folder):
            rows, columns = tensor.shape
            if columns % BLOCK or rows % CPU_ROWS:
                return (
                    f"{name} is {rows} × {columns}, and the 4-bit kernels for processors need multiples of "
                    f"{CPU_ROWS} × {BLOCK}"
                )
    return None


def rollback_refusal(folder: ModelFolder) -> str | None:
    """Why this model's cache can't be cut, so that speculation stays off."""
    if folder.layer_types & _RECURRENT:
        return "This model keeps recurrent state, which can't be rolled back, so speculation stays off."
    return None


def speculation_warning(found: Found) -> str | None:
    """Why drafts will cost more than they gain, whatever they hit."""
    known = found.versions.get("bitsandbytes", "")
    if _numbers(known) >= _numbers(OLDEST_FAST_BITSANDBYTES):
        return None
    return (
        f"bitsandbytes {known} unpacks all weights for every pass of two tokens and more, so speculation costs more "
        f"than it gains: install {OLDEST_FAST_BITSANDBYTES} or newer."
    )


def quantisable(folder: ModelFolder) -> Iterator[tuple[str, Tensor]]:
    """The matrices of the layers; embeddings and the head are left as they are."""
    for name, tensor in folder.tensors.items():
        inside = "layers." in name and name.endswith(".weight") and "norm" not in name
        if inside and len(tensor.shape) == 2:
            yield name, tensor


def head_fits(rows: int, columns: int) -> bool:
    """Whether a head of this shape can be in four bits."""
    return columns % BLOCK == 0 and rows % CPU_ROWS == 0


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])

"""Matrices in NF4 with double quantisation (Dettmers 2023, QLoRA, section 3), kept on the disk between starts.

Quantising takes a processor half a minute for a model of 1.5 billion weights, reading them back a second.

A draft's head keeps its whole vocabulary. In four bits, 152k words of a 0.5B model are 70 MB: by bandwidth 0.19 ms on
an RTX 3060 and 0.07 ms on a 4090, of steps that some 600 kernels keep above a millisecond. The first 32k ids alone are
reckoned to save 8 % and 4 % of a step. Of the tokens of Python's own source 4.6 % have later ids, of English prose 5 to
7 %, and each of them would end a draft.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import bitsandbytes as bnb
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from specengine.backends.torch_nf4.refusals import BLOCK, HEAD, head_fits
from specengine.model_folder import ModelFolder

Linear = Callable[[torch.Tensor], torch.Tensor]
_AT_ONCE: Final = 1 << 24
"""Weights. A processor has several fp32 numbers for each while it quantises."""
_FORM: Final = "1"
"""Of what is kept; another one makes kept files useless."""


def expect_four_bits(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Puts four-bit layers in the place of all linear ones but the head."""
    head = model.get_output_embeddings()
    linear = [(name, one) for name, one in model.named_modules() if type(one) is nn.Linear and one is not head]
    for name, one in linear:
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, _in_place_of(one, dtype))


def quantise_head(model: PreTrainedModel, kept: "Kept", device: str, dtype: torch.dtype) -> None:
    """Puts a head in four bits in the place of the model's, where its size allows; a tied embedding stays as it is."""
    head = model.get_output_embeddings()
    if head.bias is not None or not head_fits(head.out_features, head.in_features):
        return
    four_bits = _in_place_of(head, dtype)
    known = kept.matrix(HEAD, device)
    four_bits.weight = quantised(head.weight.data, device) if known is None else known
    model.set_output_embeddings(four_bits)


def _in_place_of(linear: nn.Linear, dtype: torch.dtype) -> nn.Linear:
    four_bits: nn.Linear = bnb.nn.Linear4bit(
        linear.in_features,
        linear.out_features,
        bias=linear.bias is not None,
        compute_dtype=dtype,
        compress_statistics=True,
        quant_type="nf4",
        device="meta",
    )
    return four_bits


def is_four_bits(module: nn.Module) -> bool:
    """Whether this layer's matrix is to be in four bits."""
    return isinstance(module, bnb.nn.Linear4bit)


def quantised(matrix: torch.Tensor, device: str, at_once: int = _AT_ONCE) -> nn.Parameter:
    """The matrix as a parameter in four bits.

    Args:
        at_once: weights, in whole blocks, that a processor takes at a time.
    """
    if device == "cpu" and matrix.numel() > at_once:
        return _in_parts(matrix, at_once)
    made: nn.Parameter = bnb.nn.Params4bit(matrix, requires_grad=False, compress_statistics=True, quant_type="nf4").to(
        device
    )
    return made


def _in_parts(matrix: torch.Tensor, at_once: int) -> nn.Parameter:
    """The same without its numbers all at once in fp32, several times over."""
    parts = [
        torch.ops.bitsandbytes.quantize_4bit.default(part, BLOCK, "nf4", torch.uint8)
        for part in torch.split(matrix.flatten(), at_once)
    ]
    scales = torch.cat([one for _, one in parts])
    offset = scales.mean()
    small, state = bnb.functional.quantize_blockwise(scales - offset, blocksize=256)
    state = bnb.functional.QuantState(
        absmax=small,
        shape=matrix.shape,
        dtype=matrix.dtype,
        blocksize=BLOCK,
        code=bnb.functional.get_4bit_type("nf4", device=matrix.device),
        quant_type="nf4",
        offset=offset,
        state2=state,
    )
    made: nn.Parameter = bnb.nn.Params4bit(
        torch.cat([packed for packed, _ in parts]),
        requires_grad=False,
        quant_state=state,
        blocksize=BLOCK,
        compress_statistics=True,
        quant_type="nf4",
        bnb_quantized=True,
    )
    return made


def linear(module: Any) -> Linear:  # noqa: ANN401 - bitsandbytes is untyped
    """What the layer computes, by the shortest way to its kernel. A matrix in four bits must be quantised already; on a
    processor that has kernels for it, it is laid out for them now."""
    if not is_four_bits(module):
        weight, bias = module.weight, module.bias
        return lambda states: nn.functional.linear(states, weight, bias)
    matrix = module.weight
    if matrix.device.type != "cpu":
        return module  # type: ignore[no-any-return]
    module(torch.zeros((1, module.in_features), dtype=module.compute_dtype))
    state = matrix.quant_state
    if not getattr(state, "packing_format_for_cpu", False):
        return module  # type: ignore[no-any-return]
    multiply, bias = torch.ops.bitsandbytes.gemv_4bit.default, module.bias
    packed, shape, scales, code, block = matrix.data, state.shape, state.absmax, state.code, state.blocksize
    if bias is None:
        return lambda states: multiply(states, packed, shape, scales, code, block)
    return lambda states: multiply(states, packed, shape, scales, code, block).add_(bias)


class Kept:
    """The quantised matrices of one model folder, in one safetensors file."""

    def __init__(self, file: Path | None, folder: ModelFolder, dtype: torch.dtype) -> None:
        """Opens the file if there is one that was made of these weights.

        Args:
            file: None keeps nothing.
        """
        self._file = file
        self._made_of = {
            "form": _FORM,
            "bitsandbytes": bnb.__version__,
            "weights": f"{folder.path.name} {folder.size} {folder.mtime_ns} {dtype}",
        }
        self._names: set[str] = set()
        if file is not None and file.is_file():
            # A damaged file only costs the time to make it again.
            with contextlib.suppress(Exception), safe_open(file, framework="pt") as opened:
                if opened.metadata() == self._made_of:
                    self._names = set(opened.keys())

    def matrix(self, name: str, device: str) -> nn.Parameter | None:
        """The quantised parameter of this name, where it was kept."""
        if name not in self._names:
            return None
        start = f"{name}."
        # Copies, and no mapping of the whole file that stays with them (see `weights`).
        with safe_open(self._file, framework="pt") as opened:
            stats = {
                key.removeprefix(start): opened.get_tensor(key).clone() for key in self._names if key.startswith(start)
            }
            matrix = opened.get_tensor(name).clone()
        revived: nn.Parameter = bnb.nn.Params4bit.from_prequantized(matrix, stats, device=device)
        return revived

    @property
    def complete(self) -> bool:
        """Whether all matrices were kept."""
        return bool(self._names)

    def keep(self, model: PreTrainedModel) -> None:
        """Writes the model's quantised matrices in place of what was kept. Must happen before their first use, which
        lays them out anew on some processors. A full disk is no reason to fail."""
        if self._file is None:
            return
        parameters = {name: one for name, one in model.named_parameters() if hasattr(one, "quant_state")}
        head = model.get_output_embeddings()
        if is_four_bits(head):
            parameters[HEAD] = head.weight
        tensors = {}
        for name, parameter in parameters.items():
            tensors[name] = parameter.data.cpu()
            for key, value in parameter.quant_state.as_dict(packed=True).items():
                tensors[f"{name}.{key}"] = value.cpu().clone()  # some are shared, which the format doesn't know
        unfinished = self._file.with_suffix(".unfinished")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            save_file(tensors, unfinished, self._made_of)
            unfinished.replace(self._file)
        except Exception:  # the library raises its own kind for a full disk
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)

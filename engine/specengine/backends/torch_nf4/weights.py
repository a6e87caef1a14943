"""Weights from safetensors files into a transformers model, quantised one by one as they are read.

The library's own loader is not used: it puts several tensors at full precision on the device at once, tells no
progress and can't be stopped. Here there is one at a time, and nothing of the folder is executed.
"""

from collections.abc import Callable
from typing import Final

import torch
import transformers
from accelerate import init_empty_weights
from safetensors import safe_open
from torch import nn
from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM, PreTrainedModel

from specengine.backends.torch_nf4 import attention
from specengine.backends.torch_nf4.four_bits import Kept, expect_four_bits, is_four_bits, quantise_head, quantised
from specengine.backends.torch_nf4.options import Precision, TorchOptions
from specengine.errors import EngineError, Stopped
from specengine.model_folder import ModelFolder, Tensor

DTYPES: Final[dict[Precision, torch.dtype]] = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_RECOMPUTED: Final = ("rotary_emb.inv_freq", "masked_bias", "attn.bias")
"""Ends of the names of tensors that old files carry and models make themselves."""


def load_weights(
    folder: ModelFolder,
    options: TorchOptions,
    progress: Callable[[float], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> PreTrainedModel:
    """The model in eval mode. Matrices of its layers are in four bits if the options say so; embeddings, head and
    norms are at the options' precision.

    Raises:
        EngineError: transformers doesn't know this architecture, or the files don't hold exactly its weights.
        Stopped: `should_stop` returned true.
    """
    dtype = DTYPES[options.precision]
    model = _empty_model(folder, dtype)
    if options.quantised:
        expect_four_bits(model, dtype)
    kept = Kept(options.kept if options.quantised else None, folder, dtype)
    wanted = {*dict(model.named_parameters(remove_duplicate=False)), *dict(model.named_buffers())}
    total, done = sum(tensor.count for tensor in folder.tensors.values()), 0
    for name, tensor in folder.tensors.items():
        if should_stop is not None and should_stop():
            raise Stopped
        if name in wanted:
            wanted.remove(name)
            _put(model, name, tensor, kept, options)
        elif not name.endswith(_RECOMPUTED):
            raise _strange(folder, f"{name} in its files is no part of the model")
        done += tensor.count
        if progress is not None:
            progress(done / total)
    model.tie_weights()
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            raise _strange(folder, f"{name} is missing from its files")
    if options.quantised and options.quantised_head:
        quantise_head(model, kept, options.device, dtype)
    if not kept.complete:
        kept.keep(model)
    model.to(options.device)
    return model.eval()


def _empty_model(folder: ModelFolder, dtype: torch.dtype) -> PreTrainedModel:
    """The model without its weights; what it computes for itself (rotations) is there."""
    if folder.model_type not in CONFIG_MAPPING:
        raise _strange(folder, f"transformers {transformers.__version__} knows no models of type {folder.model_type!r}")
    try:
        config = AutoConfig.from_pretrained(folder.path, local_files_only=True, trust_remote_code=False)
        with init_empty_weights(include_buffers=False):
            model: PreTrainedModel = AutoModelForCausalLM.from_config(
                config, dtype=dtype, attn_implementation=attention.NAME, trust_remote_code=False
            )
    except (ValueError, KeyError, OSError, ImportError) as error:
        raise _strange(folder, str(error).strip().splitlines()[0]) from None
    return model


def _put(model: PreTrainedModel, name: str, stored: Tensor, kept: Kept, options: TorchOptions) -> None:
    """Reads one tensor and puts it into its place in the model."""
    module_name, _, leaf = name.rpartition(".")
    module = model.get_submodule(module_name)
    place = getattr(module, leaf)
    if stored.shape != tuple(place.shape):
        raise EngineError(
            f"{name} has the shape {stored.shape} in the files and {tuple(place.shape)} in the model; "
            "download the model again."
        )
    four_bits = is_four_bits(module) and leaf == "weight"
    known = kept.matrix(name, options.device) if four_bits else None
    if known is not None:
        module.weight = known
        return
    # A file is a mapping, which counts as the process's memory as far as it was read while any tensor of it is left.
    with safe_open(stored.file, framework="pt") as opened:
        tensor = opened.get_tensor(name).to(options.device, DTYPES[options.precision], copy=True)
    if leaf in module._buffers:
        module._buffers[leaf] = tensor.to(place.dtype)
    elif four_bits:
        module.weight = quantised(tensor, options.device)
    else:
        setattr(module, leaf, nn.Parameter(tensor, requires_grad=False))


def _strange(folder: ModelFolder, what: str) -> EngineError:
    return EngineError(f"The torch engine can't load {folder.path.name}: {what}. Run it with llama.cpp instead.")

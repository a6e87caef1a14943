"""What a loaded model's tensors take is what the tables of its files were read to say."""

from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_folder
from hollow_folder import CONFIG, write_weights
from specengine.backends.torch_nf4.four_bits import quantised
from specengine.backends.torch_nf4.model import TorchModel
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.backends.torch_nf4.plan import plan
from specengine.model_folder import read_folder
from tiny import Architecture
from tiny_tokenizer import byte_level


def held(model: TorchModel) -> int:
    """Bytes of all weights, each counted once, with the scales of those in four bits."""
    assert model._model is not None
    tensors: dict[int, torch.Tensor] = {}
    for parameter in model._model.parameters():
        state: Any = getattr(parameter, "quant_state", None)
        nested = getattr(state, "state2", None)
        scales = [one.absmax for one in (state, nested) if one is not None]
        tensors |= {one.data_ptr(): one for one in (parameter.data, *scales)}
    return sum(one.numel() * one.element_size() for one in tensors.values())


@pytest.mark.parametrize("quantised_head", [False, True])
@pytest.mark.parametrize("arch", ["llama", "smollm"])
def test_a_models_tensors_take_what_was_planned(tmp_path: Path, arch: Architecture, quantised_head: bool) -> None:
    """SmolLM's head is its embedding: in four bits it comes on top."""
    whole = -len(byte_level().tokens) % 32  # as many words as the kernels for processors want
    folder = read_folder(tiny_folder.make(tmp_path / "model", arch=arch, vocab_extra=whole))
    options = TorchOptions(256, quantised_head=quantised_head)
    model = TorchModel(folder, options)
    planned = plan(folder, options.precision, options.device, quantised_head)
    assert held(model) == pytest.approx(planned.weights, rel=0.05)
    model.close()


@pytest.mark.parametrize(
    ("tied", "rows", "with_head"),
    [
        (True, 320, 320 * 64 * (0.5 + 2 / 64)),
        (False, 320, 320 * 64 * (0.5 + 2 / 64 - 2)),
        (True, 321, 0),
        (None, 320, 320 * 64 * (0.5 + 2 / 64 - 2)),
    ],
)
def test_a_head_in_four_bits_is_planned_where_its_size_allows(
    tmp_path: Path, tied: bool | None, rows: int, with_head: float
) -> None:
    shapes = {"model.embed_tokens.weight": [rows, 64], "model.layers.0.mlp.up_proj.weight": [64, 64]}
    if not tied:
        shapes["lm_head.weight"] = [rows, 64]
    said = {} if tied is None else {"tie_word_embeddings": tied}
    tiny_folder.write_json(tmp_path / "config.json", CONFIG | said)
    write_weights(tmp_path / "model.safetensors", shapes)
    folder = read_folder(tmp_path)
    plain, small = (plan(folder, "bf16", "cpu", quantised_head=one).weights for one in (False, True))
    assert plain == 2 * 64 * rows * (1 if tied else 2) + int(64 * 64 * (0.5 + 2 / 64))
    assert small - plain == pytest.approx(with_head, abs=1)


def test_a_matrix_quantised_in_parts_is_the_one_quantised_at_once() -> None:
    matrix = torch.randn((320, 192), generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    whole: Any
    parts: Any
    whole, parts = (quantised(matrix.clone(), "cpu", at_once) for at_once in (matrix.numel(), 64 * 100))
    assert torch.equal(whole.data, parts.data)
    expected, found = (one.quant_state.as_dict(packed=True) for one in (whole, parts))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)

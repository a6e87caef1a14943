"""Passes of few tokens without the library's layers: the library's logits, whatever the width, place and buffers.

What a card captures as a graph is run here on the processor, uncaptured: the same function over the same buffers.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from bitsandbytes.functional import has_avx512bf16

import tiny
import tiny_folder
from decoding import LOGITS_AGREE
from specengine.backends.torch_nf4.few_tokens import WIDEST, FewTokens
from specengine.backends.torch_nf4.graphs import Graphs, agree
from specengine.backends.torch_nf4.kv import KvCache
from specengine.backends.torch_nf4.model import TorchModel
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.language_model import Rows
from specengine.model_folder import read_folder

FP32 = TorchOptions(1024, precision="fp32", quantised=False)
NF4 = TorchOptions(1024, quantised_head=True)
STARTS = (1, 60, 64, 127, 505, 512, 1016)
"""Lengths of the cache around the ends of blocks and buckets, and the last that a pass of eight fits behind."""


@pytest.fixture(scope="module", params=get_args(tiny.Architecture))
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder.make(tmp_path_factory.mktemp("folders") / "tiny", arch=request.param, vocab_extra=18)


TOKENS = [int(token) for token in np.random.default_rng(0).integers(300, size=1024)]


Made = tuple[TorchModel, bool]


@pytest.fixture(scope="module", params=[False, True], ids=["fp32", "nf4"])
def made(folder: Path, request: pytest.FixtureRequest) -> Iterator[Made]:
    """A model, and whether it is in four bits."""
    model = TorchModel(read_folder(folder), NF4 if request.param else FP32)
    yield model, request.param
    model.close()


def rows_behind(model: TorchModel, few: Graphs | None, width: int, rows: int | None = None) -> list[Rows]:
    """Rows of a pass of this width behind each of the starts, the longest first, all of a cache that the library
    filled."""
    usual, model._few = model._few, None
    model.rollback(0)
    for start in range(0, 1016, 127):
        model.forward(TOKENS[start : start + 127], 0)
    model._few = few
    found = []
    try:
        for start in sorted(STARTS, reverse=True):
            model.rollback(start)
            found.append(model.forward(TOKENS[start : start + width], width if rows is None else rows).copy())
            assert model.length == start + width
    finally:
        model._few = usual
    return found


def as_on_a_card(model: TorchModel, capture: bool = False) -> Graphs:
    """Over buffers that never move, and in buckets of powers of two."""
    assert model._model is not None
    model._kv = KvCache(model._model.config.num_hidden_layers, model.n_ctx, whole=True)
    with torch.inference_mode():
        return Graphs(FewTokens(model._model, model._kv, static=True), capture)


@pytest.mark.parametrize("width", [1, 2, 5, WIDEST])
def test_logits_are_those_of_the_librarys_layers(made: Made, width: int) -> None:
    model, in_four_bits = made
    assert model._few is not None
    expected, found = (rows_behind(model, few, width) for few in (None, model._few))
    for theirs, ours in zip(expected, found, strict=True):
        if not in_four_bits:
            np.testing.assert_allclose(ours, theirs, atol=LOGITS_AGREE)
        elif has_avx512bf16():
            np.testing.assert_array_equal(ours, theirs)
        else:  # every matrix is unpacked for each pass, and multiplied as its shape suggests
            assert np.abs(ours - theirs).mean() < 0.02 * theirs.std()


@pytest.mark.parametrize("width", [1, 3, WIDEST])
def test_over_the_buffers_of_a_card_they_are_the_same(folder: Path, width: int) -> None:
    model = TorchModel(read_folder(folder), FP32)
    expected = rows_behind(model, None, width)
    found = rows_behind(model, as_on_a_card(model), width)
    np.testing.assert_allclose(found, expected, atol=LOGITS_AGREE)
    last_only = rows_behind(model, as_on_a_card(model), width, rows=1)
    np.testing.assert_allclose(last_only, [rows[-1:] for rows in expected], atol=LOGITS_AGREE)


def test_a_pass_that_is_repeated_changes_nothing(folder: Path) -> None:
    """Graphs are warmed up by passes over the same buffers before they are captured."""
    model = TorchModel(read_folder(folder), FP32)
    few = as_on_a_card(model)
    model._few = None
    model.forward(TOKENS[:50], 0)
    with torch.inference_mode():
        shape = few._few.place(TOKENS[50:53], 3)
        first, again = few._few.run(shape), few._few.run(shape)
    torch.testing.assert_close(again, first, atol=0, rtol=0)
    assert model.length == 50


def test_a_pass_waits_for_no_number_and_mixes_no_devices(folder: Path) -> None:
    """What a graph can't hold, a device that keeps no numbers can't do."""
    inner = TorchModel(read_folder(folder), FP32)._model
    assert inner is not None
    kv = KvCache(inner.config.num_hidden_layers, 1024, whole=True)
    with torch.inference_mode():
        few = FewTokens(inner.to("meta"), kv, static=True)
        states = torch.zeros((1, inner.config.num_key_value_heads, 1, inner.config.head_dim), device="meta")
        for layer in kv.cache.layers:
            layer.update(states, states)
        kv.length = 600
        rows = few.run(few.place([1, 2, 3], 2))
    assert (rows.device.type, rows.shape) == ("meta", (2, inner.config.vocab_size))


def test_shapes_are_few_on_a_card_and_cover_the_context(folder: Path) -> None:
    model = TorchModel(read_folder(folder), replace(FP32, n_ctx=3000))
    few = as_on_a_card(model)._few
    assert {few.bucket(length) for length in range(1, 3001)} == {512, 1024, 2048, 3000}
    assert all(few.bucket(length) >= length for length in range(1, 3001))


def test_running_the_usual_shapes_leaves_the_model_as_it_was(folder: Path) -> None:
    model = TorchModel(read_folder(folder), FP32)
    expected = rows_behind(model, None, 2)
    model.rollback(0)
    model._run_usual_shapes()
    assert model.length == 0
    np.testing.assert_allclose(rows_behind(model, model._few, 2), expected, atol=LOGITS_AGREE)


def test_where_nothing_can_be_captured_passes_run_all_the_same(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine can capture")
    model = TorchModel(read_folder(folder), FP32)
    expected = rows_behind(model, None, 2)
    graphs = as_on_a_card(model, capture=True)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_allclose(rows_behind(model, graphs, 2), expected, atol=LOGITS_AGREE)
    assert (graphs.capture, graphs.count) == (False, 0)
    assert len(caplog.records) == 1
    assert "without CUDA graphs" in caplog.text


def test_a_graph_is_used_only_if_its_logits_are_numbers_and_those_of_the_pass() -> None:
    usual, nothing = torch.randn((2, 500), generator=torch.Generator().manual_seed(0)), torch.zeros((1, 500))
    assert agree(usual + 0.01, usual)
    assert agree(nothing, nothing)
    assert not agree(usual + 0.1, usual)
    for broken in (float("nan"), float("inf")):
        assert not agree(torch.where(usual > 2, broken, usual), usual)


def test_models_of_other_kinds_are_left_to_the_library(tmp_path: Path) -> None:
    window = tiny_folder.make(tmp_path / "window", arch="qwen2", window=8)
    recurrent = tiny_folder.make_recurrent(tmp_path / "recurrent")
    for folder in (window, recurrent):
        model = TorchModel(read_folder(folder), FP32)
        assert model._few is None
        model.forward(TOKENS[:20], 0)
        assert model.forward(TOKENS[20:21], 1).shape == (1, model.vocabulary.size)

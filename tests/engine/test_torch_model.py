"""Models in torch: loaded as their files say, computed as the library computes them, refused with a reason."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from bitsandbytes.functional import has_avx512bf16
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen2ForCausalLM

import tiny
import tiny_folder
from decoding import LOGITS_AGREE, asking, loaded, read
from specengine.backends.torch_nf4.model import TorchModel, cache_argument
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.errors import EngineError, Stopped
from specengine.language_model import Rows
from specengine.model_folder import read_folder

FP32 = TorchOptions(1024, precision="fp32", quantised=False)
NF4 = TorchOptions(1024)
TEXT = "def hello(self):\n    return 'the world 你好 世 🙂'\n\nclass import <tool_call> <|im_end|> "
ARCHITECTURES = get_args(tiny.Architecture)


def opened(folder: Path, options: TorchOptions = FP32) -> TorchModel:
    return TorchModel(read_folder(folder), options)


def eager(folder: Path, tokens: list[int]) -> Rows:
    """All logits, by the library's own loader, cache and attention."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        logits: Rows = model(torch.tensor([tokens])).logits[0].numpy()
    return logits


@pytest.fixture(scope="module", params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> tiny.Architecture:
    name: tiny.Architecture = request.param
    return name


@pytest.fixture(scope="module")
def folder(arch: tiny.Architecture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder.make(tmp_path_factory.mktemp("folders") / arch, arch=arch, vocab_extra=3)


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[TorchModel]:
    made = opened(folder)
    yield made
    made.close()


@pytest.fixture
def tokens(model: TorchModel) -> list[int]:
    return (model.vocabulary.tokenize(TEXT.replace("<tool_call>", "")) * 5)[:150]


def test_logits_are_those_of_the_library_and_of_llama_cpp(
    model: TorchModel, arch: tiny.Architecture, folder: Path, tokens: list[int], tmp_path: Path
) -> None:
    rows = read(model, tokens)
    np.testing.assert_allclose(rows, eager(folder, tokens), atol=LOGITS_AGREE)
    with loaded(tiny.make(tmp_path / "same.gguf", arch=arch, vocab_extra=3)) as other:
        np.testing.assert_allclose(rows, read(other, tokens), atol=LOGITS_AGREE)


def test_words_are_those_of_llama_cpp(model: TorchModel, arch: tiny.Architecture, tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "same.gguf", arch=arch, vocab_extra=3)) as other:
        ours, theirs = model.vocabulary, other.vocabulary
        assert ours.tokenize(TEXT) == theirs.tokenize(TEXT)
        assert ours.tokenize("e\u0301 \ud800") == theirs.tokenize("e\u0301 \ud800")
        for what in ("size", "bos", "eos_text", "end_of_generation", "special", "control", "fill_in_middle"):
            assert getattr(ours, what) == getattr(theirs, what), what
        for token in range(ours.size):
            assert (ours.piece(token), ours.name(token)) == (theirs.piece(token), theirs.name(token))
        assert model.chat_template == other.chat_template


def test_a_cache_that_grew_holds_what_was_read_before(model: TorchModel, tokens: list[int]) -> None:
    """Its buffers double at 512 positions, here in the middle of a pass."""
    long = (tokens * 6)[:700]
    expected = read(model, long)
    model.rollback(0)
    for at in range(0, 700, 37):
        model.forward(long[at : at + 37], 0)
    model.rollback(600)
    np.testing.assert_allclose(model.forward(long[600:], 100), expected[600:], atol=LOGITS_AGREE)


@pytest.mark.parametrize("width", [1, 2, 7, 40])
def test_a_sliding_window_is_kept_whole_and_can_be_rolled_back(tmp_path: Path, width: int) -> None:
    folder = tiny_folder.make(tmp_path / "window", arch="qwen2", window=8)
    model = opened(folder)
    assert model.refusal is None
    tokens = (model.vocabulary.tokenize(TEXT) * 5)[:90]
    expected = eager(folder, tokens)
    model.forward(tokens[:60], 0)
    model.forward(tokens[20:60], 0)
    model.rollback(50)
    rows = [model.forward(tokens[at : at + width], min(width, 90 - at)).copy() for at in range(50, 90, width)]
    np.testing.assert_allclose(np.concatenate(rows), expected[50:], atol=LOGITS_AGREE)


def test_four_bits_are_close_to_the_weights_they_stand_for(folder: Path, tokens: list[int]) -> None:
    """Small random weights lose more than large trained ones: the order of likely tokens is what remains."""
    exact, four_bits = read(opened(folder), tokens), read(opened(folder, NF4), tokens)
    assert four_bits.dtype == np.float32
    spread = exact.std()
    assert 0.005 * spread < np.abs(four_bits - exact).mean() < 0.5 * spread
    assert np.corrcoef(exact.ravel(), four_bits.ravel())[0, 1] > 0.9


def test_in_four_bits_narrow_and_wide_passes_agree(folder: Path, tokens: list[int]) -> None:
    model = opened(folder, NF4)
    wide = read(model, tokens[:48])
    for width in (1, 3, 8):
        model.rollback(0)
        rows = [model.forward(tokens[at : at + width], width).copy() for at in range(0, 48, width)]
        difference = np.abs(np.concatenate(rows) - wide)
        assert difference.mean() < 0.02 * wide.std()
        # Elsewhere every matrix is unpacked for each pass, and multiplied as its width suggests.
        assert difference.max() == 0 or not has_avx512bf16()


def test_quantised_matrices_are_kept_and_come_back_as_they_were(
    folder: Path, tokens: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept" / "tiny.safetensors"
    keeping = replace(NF4, kept=file)
    first = read(opened(folder, keeping), tokens)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with monkeypatch.context() as later:
        later.setattr("specengine.backends.torch_nf4.weights.quantised", None)
        np.testing.assert_array_equal(read(opened(folder, keeping), tokens), first)
    assert file.stat().st_size < sum(one.size for one in read_folder(folder).tensors.values())


@pytest.mark.parametrize("how", ["damaged", "other weights", "another release", "no room"])
def test_what_was_kept_of_something_else_is_made_again(
    folder: Path, tokens: list[int], tmp_path: Path, how: str
) -> None:
    file = tmp_path / "kept" / "tiny.safetensors"
    keeping = replace(NF4, kept=file)
    if how == "no room":
        file.parent.write_bytes(b"")
    else:
        opened(tiny_folder.make(tmp_path / "tiny", seed=5) if how == "other weights" else folder, keeping)
    if how == "damaged":
        file.write_bytes(file.read_bytes()[:-100])
    elif how == "another release":
        with safe_open(file, "pt") as kept:
            tensors, made_of = {name: kept.get_tensor(name) for name in kept.keys()}, kept.metadata()  # noqa: SIM118
        save_file(tensors, file, made_of | {"bitsandbytes": "0.40"})
    expected = read(opened(folder, NF4), tokens)
    for _ in range(2):
        np.testing.assert_array_equal(read(opened(folder, keeping), tokens), expected)


def test_the_matrices_of_the_layers_and_no_others_are_in_four_bits(folder: Path) -> None:
    inner: Any = opened(folder, NF4)._model
    kinds = {name: parameter.dtype for name, parameter in inner.named_parameters()}
    small = {name for name, dtype in kinds.items() if dtype == torch.uint8}
    assert small == {f"model.layers.{layer}.{name}.weight" for layer in (0, 1) for name in MATRICES}
    assert {dtype for name, dtype in kinds.items() if name not in small} == {torch.bfloat16}


@pytest.mark.parametrize("arch_with_head", ["llama", "smollm"])
def test_a_head_in_four_bits_leaves_the_embedding_as_it_is(
    tmp_path: Path, arch_with_head: tiny.Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder.make(tmp_path / "tiny", arch=arch_with_head, vocab_extra=18)
    keeping = replace(NF4, quantised_head=True, kept=tmp_path / "kept.safetensors")
    model = opened(folder, keeping)
    assert model.vocabulary.size == 448
    inner: Any = model._model
    assert inner.get_output_embeddings().weight.dtype == torch.uint8
    assert inner.get_input_embeddings().weight.dtype == torch.bfloat16
    tokens = (model.vocabulary.tokenize(TEXT) * 3)[:80]
    rows, whole = read(model, tokens), read(opened(folder, NF4), tokens)
    assert 0 < np.abs(rows - whole).mean() < 0.3 * whole.std()
    with monkeypatch.context() as later:
        for place in ("weights", "four_bits"):
            later.setattr(f"specengine.backends.torch_nf4.{place}.quantised", None)
        np.testing.assert_array_equal(read(opened(folder, keeping), tokens), rows)


MATRICES = (
    *(f"self_attn.{part}_proj" for part in "qkvo"),
    *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
)


def test_the_cache_goes_by_the_name_that_this_release_of_transformers_has_for_it() -> None:
    class New(Qwen2ForCausalLM):  # type: ignore[misc]
        def forward(self, input_ids: object, cache: object = None) -> None: ...

    class Old(Qwen2ForCausalLM):  # type: ignore[misc]
        def forward(self, input_ids: object, past_key_values: object = None) -> None: ...

    assert cache_argument(New.__new__(New)) == "cache"
    assert cache_argument(Old.__new__(Old)) == "past_key_values"


def test_loading_can_be_stopped_and_tells_its_progress(folder: Path) -> None:
    described = read_folder(folder)
    for limit in (0, 3):
        with pytest.raises(Stopped):
            TorchModel(described, NF4, should_stop=asking(limit)[0])
    seen: list[float] = []
    TorchModel(described, NF4, progress=seen.append).close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_files_that_hold_other_weights_than_the_model_has_are_refused(tmp_path: Path) -> None:
    for change, complaint in (("missing", "is missing"), ("more", "is no part"), ("shape", "has the shape")):
        folder = tiny_folder.make(tmp_path / change)
        weights = load_file(folder / "model.safetensors")
        if change == "missing":
            del weights["model.norm.weight"]
        elif change == "more":
            weights["model.layers.0.mlp.experts.weight"] = torch.zeros(4, 4)
        else:
            weights["model.norm.weight"] = torch.zeros(32)
        save_file(weights, folder / "model.safetensors")
        with pytest.raises(EngineError, match=complaint) as refused:
            opened(folder)
        assert "\n" not in str(refused.value)


def test_an_architecture_that_transformers_does_not_know_is_refused(tmp_path: Path) -> None:
    folder = tiny_folder.make(tmp_path / "new")
    settings = json.loads((folder / "config.json").read_text())
    tiny_folder.write_json(
        folder / "config.json", settings | {"model_type": "unheard", "auto_map": {"AutoConfig": "run_me.Config"}}
    )
    (folder / "run_me.py").write_text("raise SystemExit('code of the model ran')")
    with pytest.raises(EngineError, match=r"can't load new: .*unheard"):
        opened(folder)


def test_a_recurrent_model_decodes_plainly_and_says_why(tmp_path: Path) -> None:
    folder = tiny_folder.make_recurrent(tmp_path / "lfm2")
    model = opened(folder)
    assert model.refusal is not None
    assert "recurrent" in model.refusal
    tokens = model.vocabulary.tokenize("def hello(self):\n" * 8)
    expected = eager(folder, tokens)
    model.forward(tokens[:20], 0)
    np.testing.assert_allclose(model.forward(tokens[20:21], 1), expected[20:21], atol=LOGITS_AGREE)
    with pytest.raises(EngineError, match="recurrent"):
        model.rollback(10)
    assert model.length == 21
    with pytest.raises(Stopped):
        model.forward(tokens[21:30], 0, lambda: True)
    assert model.length == 0
    rows = [model.forward([token], 1).copy() for token in tokens[:30]]
    np.testing.assert_allclose(np.concatenate(rows), expected[:30], atol=LOGITS_AGREE)
    model.rollback(0)
    np.testing.assert_allclose(model.forward(tokens[:5], 5), expected[:5], atol=LOGITS_AGREE)


def test_memory_that_runs_out_is_one_sentence_and_leaves_the_cache_as_it_was(
    model: TorchModel, tokens: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read(model, tokens[:30])
    model.rollback(20)

    def no_memory(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    with monkeypatch.context() as short, pytest.raises(EngineError, match="Memory ran out"):
        short.setattr(model, "_pass", no_memory)
        model.forward(tokens[20:30], 10)
    assert model.length == 20
    np.testing.assert_allclose(model.forward(tokens[20:30], 10), expected[20:], atol=LOGITS_AGREE)


def test_a_smaller_context_is_held_to(folder: Path) -> None:
    model = opened(folder, replace(FP32, n_ctx=100))
    assert (model.n_ctx, model.n_batch, model.max_rows) == (100, 100, 100)
    model.forward([65] * 100, 0)
    with pytest.raises(EngineError, match="context of 100 tokens is full"):
        model.forward([65], 1)

"""Which engine runs a model, and why not the other: decided from what was found, which is given here."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hollow_folder import CONFIG, write_weights
from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import PACKAGES, Card, Found
from specengine.backends.torch_nf4.plan import plan
from specengine.engine_choice import Choice, choose
from specengine.errors import EngineError
from specengine.model_folder import read_folder
from specengine.protocol import Load
from specengine.settings import Device, EngineChoice

VERSIONS = {"torch": "2.13.0", "bitsandbytes": "0.50.2"}
INSTALLED = dict.fromkeys(PACKAGES, "1.0") | VERSIONS
ADA = Card("RTX 4090", (8, 9), 24 << 30, 22 << 30)
TURING = Card("RTX 2080", (7, 5), 8 << 30, 7 << 30)
PASCAL = Card("GTX 1080", (6, 1), 8 << 30, 7 << 30)

NOTHING = Found()
CPU_BUILD = Found(INSTALLED)
NO_CARD = Found(INSTALLED, cuda_build="12.8")
BROKEN = Found(INSTALLED, problem="libcudart.so.12: cannot open shared object file")


def with_card(card: Card) -> Found:
    return Found(INSTALLED, cuda_build="12.8", card=card)


@pytest.fixture
def model(tmp_path: Path) -> Callable[..., Path]:
    def make(shape: tuple[int, int] = (64, 64), **settings: object) -> Path:
        folder = tmp_path / "model"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(CONFIG | settings))
        write_weights(
            folder / "model.safetensors",
            {
                "model.embed_tokens.weight": [10, 64],
                "model.layers.0.mlp.up_proj.weight": list(shape),
                "model.layers.0.input_layernorm.weight": [64],
            },
        )
        return folder

    return make


def both(folder: Path, engine: EngineChoice = "auto", device: Device = "auto") -> Load:
    """A model of the catalogue that is here for either engine."""
    return Load("/models/m.gguf", name="m", weights=str(folder), engine=engine, device=device)


def never() -> Found:
    raise AssertionError("torch was looked for")


def test_with_a_card_torch_runs_it(model: Callable[..., Path]) -> None:
    request = both(model())
    assert choose(request, lambda: with_card(ADA)) == Choice("torch", "cuda")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (NOTHING, "needs torch, transformers, bitsandbytes, accelerate, safetensors, tokenizers: pip install"),
        (BROKEN, "torch does not load (libcudart.so.12: cannot open shared object file)"),
        (CPU_BUILD, "this torch (2.13.0) is a build without CUDA"),
        (NO_CARD, "torch sees no CUDA card"),
        (with_card(PASCAL), "GTX 1080 is too old for 4-bit kernels (compute capability 6.1, 7.5 is needed)"),
    ],
)
def test_without_one_llama_cpp_does_and_says_why(model: Callable[..., Path], found: Found, reason: str) -> None:
    choice = choose(both(model()), lambda: found)
    assert choice.engine == "llamacpp"
    assert choice.reason is not None
    assert choice.reason.startswith("llama.cpp runs m: ")
    assert reason in choice.reason


def test_where_only_a_gguf_file_is_here_torch_is_not_even_looked_for() -> None:
    assert choose(Load("/models/m.gguf"), never) == Choice("llamacpp")
    assert choose(Load("/models/m.gguf", engine="llamacpp"), never) == Choice("llamacpp")


def test_who_asks_for_the_processor_gets_llama_cpp_without_a_word(model: Callable[..., Path]) -> None:
    assert choose(both(model(), device="cpu"), lambda: with_card(ADA)) == Choice("llamacpp")


def test_the_engine_that_was_asked_for_is_taken_also_on_the_processor(model: Callable[..., Path]) -> None:
    folder = model()
    assert choose(both(folder, engine="torch"), lambda: CPU_BUILD) == Choice("torch", "cpu")
    assert choose(both(folder, engine="torch", device="cpu"), lambda: with_card(ADA)) == Choice("torch", "cpu")
    assert choose(both(folder, engine="llamacpp"), never) == Choice("llamacpp")


def test_a_folder_can_only_be_run_by_torch(model: Callable[..., Path]) -> None:
    folder = model()
    assert choose(Load(str(folder)), lambda: CPU_BUILD) == Choice("torch", "cpu")
    with pytest.raises(EngineError, match=r"llama\.cpp can't read"):
        choose(Load(str(folder), engine="llamacpp"), never)
    with pytest.raises(EngineError, match=r"The torch engine can't run model: .*pip install 'specchat\[gpu\]'\.$"):
        choose(Load(str(folder)), lambda: NOTHING)


@pytest.mark.parametrize("found", [CPU_BUILD, NO_CARD])
def test_a_card_that_was_asked_for_and_is_not_there_is_an_error(model: Callable[..., Path], found: Found) -> None:
    with pytest.raises(EngineError, match="CUDA"):
        choose(both(model(), engine="torch", device="cuda"), lambda: found)


def test_a_gguf_file_is_not_for_torch() -> None:
    with pytest.raises(EngineError, match="is a GGUF file, which the torch engine can't read"):
        choose(Load("/models/m.gguf", engine="torch"), never)


@pytest.mark.parametrize(("kind", "runs"), [("llama", True), ("mistral", True), ("qwen2", False), ("gemma3", False)])
def test_families_that_overflow_in_fp16_are_refused_on_cards_without_bf16(
    model: Callable[..., Path], kind: str, runs: bool
) -> None:
    request = both(model(model_type=kind, dtype="bfloat16"))
    choice = choose(request, lambda: with_card(TURING))
    assert choice.engine == ("torch" if runs else "llamacpp")
    assert runs or "overflow in fp16" in (choice.reason or "")
    assert choose(request, lambda: with_card(ADA)).engine == "torch"


def test_what_was_made_in_fp16_stays_in_it(model: Callable[..., Path]) -> None:
    request = both(model(model_type="qwen2", torch_dtype="float16"))
    assert choose(request, lambda: with_card(TURING)).engine == "torch"
    assert refusals.precision(with_card(TURING), "cuda") == "fp16"
    assert refusals.precision(with_card(ADA), "cuda") == refusals.precision(CPU_BUILD, "cpu") == "bf16"


@pytest.mark.parametrize(("shape", "runs"), [((64, 64), True), ((32, 128), True), ((48, 64), False), ((64, 96), False)])
def test_matrices_that_the_processors_kernels_cannot_take_are_refused_there(
    model: Callable[..., Path], shape: tuple[int, int], runs: bool
) -> None:
    request = both(model(shape), engine="torch")
    if runs:
        assert choose(request, lambda: CPU_BUILD) == Choice("torch", "cpu")
    else:
        with pytest.raises(EngineError, match=rf"up_proj\.weight is {shape[0]} × {shape[1]}, .* multiples of 32 × 64"):
            choose(request, lambda: CPU_BUILD)
    assert choose(request, lambda: with_card(ADA)) == Choice("torch", "cuda")


def test_weights_that_are_quantised_already_are_refused(model: Callable[..., Path]) -> None:
    request = both(model(quantization_config={"quant_method": "gptq"}))
    assert "quantised already (gptq)" in (choose(request, lambda: with_card(ADA)).reason or "")


@pytest.mark.parametrize(
    ("layers", "refused"),
    [
        (["full_attention"] * 2, False),
        (["full_attention", "sliding_attention"], False),
        (["linear_attention", "full_attention"], True),
        (["conv", "full_attention"], True),
    ],
)
def test_layers_with_a_state_of_their_own_keep_speculation_off(
    model: Callable[..., Path], layers: list[str], refused: bool
) -> None:
    folder = model(layer_types=layers)
    assert (refusals.rollback_refusal(read_folder(folder)) is not None) == refused
    assert choose(both(folder), lambda: with_card(ADA)).engine == "torch"


def test_layers_of_an_unheard_kind_are_refused(model: Callable[..., Path]) -> None:
    choice = choose(both(model(layer_types=["full_attention", "chunked_attention"])), lambda: with_card(ADA))
    assert "layers of a kind that is not known (chunked_attention)" in (choice.reason or "")


@pytest.mark.parametrize(("version", "slow"), [("0.49.2", True), ("0.50.0", True), ("0.50.1", False), ("0.51", False)])
def test_speculation_is_warned_against_where_wide_passes_unpack_all_weights(version: str, slow: bool) -> None:
    warning = refusals.speculation_warning(Found(INSTALLED | {"bitsandbytes": version}))
    assert (warning is not None) == slow
    assert not slow or version in (warning or "")


def test_memory_is_planned_from_the_tables_alone(model: Callable[..., Path]) -> None:
    folder = read_folder(model((1024, 4096), model_type="llama"))
    on_card, on_processor = (plan(folder, "bf16", device) for device in ("cuda", "cpu"))
    plain = 2 * (640 + 64)
    assert on_card.weights == pytest.approx(plain + 1024 * 4096 * (0.5 + 1 / 64 + 1 / 4096), rel=1e-3)
    assert on_processor.weights == pytest.approx(plain + 1024 * 4096 * (0.5 + 2 / 64), rel=1e-3)
    assert on_card.kv_per_token == 2 * 2 * 3 * 2 * 16
    assert on_card.needed(1000) == on_card.weights + 1000 * on_card.kv_per_token

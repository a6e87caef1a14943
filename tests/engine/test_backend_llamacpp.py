"""What is llama.cpp's own: loading, kinds of KV cache, recurrent models, and silence on the terminal."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from decoding import EXACT, LOGITS_AGREE, asking, loaded, read
from specengine.backends.llamacpp import LlamaModel, LlamaOptions
from specengine.errors import EngineError, Stopped

TEXT = "def hello(self):\n    return 'the world' and class import"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def model(path: Path) -> Iterator[LlamaModel]:
    made = LlamaModel(path, EXACT)
    yield made
    made.close()


@pytest.fixture
def tokens(model: LlamaModel) -> list[int]:
    return (model.vocabulary.tokenize(TEXT) * 60)[:1000]


def test_loading_can_be_stopped_and_tells_its_progress(path: Path) -> None:
    with pytest.raises(Stopped):
        LlamaModel(path, EXACT, should_stop=lambda: True)
    seen: list[float] = []
    LlamaModel(path, EXACT, progress=seen.append).close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize("kv_type", ["f16", "bf16"])
def test_every_kind_of_kv_cache_loads_and_rolls_back(path: Path, tokens: list[int], kv_type: str) -> None:
    options = LlamaOptions(n_ctx=512, threads=1, kv_type=kv_type)  # type: ignore[arg-type]
    with loaded(path, options) as model:
        before = read(model, tokens[:60])[50:]
        model.rollback(50)
        np.testing.assert_allclose(model.forward(tokens[50:60], 10), before, atol=0.2)


@pytest.mark.parametrize("what", ["truncated", "not a model", "empty", "missing", "no vocabulary"])
def test_a_file_that_is_no_model_is_refused_in_one_sentence(tmp_path: Path, what: str) -> None:
    path = tmp_path / "broken.gguf"
    if what == "truncated":
        tiny.truncate(tiny.make(path))
    elif what == "not a model":
        path.write_bytes(b"\x00GGUF" * 1000)
    elif what in ("empty", "no vocabulary"):
        path.write_bytes(b"" if what == "empty" else b"GGUF\x03\x00\x00\x00" + bytes(16))
    with pytest.raises(EngineError, match=r"broken\.gguf") as refused:
        LlamaModel(path, EXACT)
    assert "\n" not in str(refused.value)


def test_a_recurrent_model_says_that_it_cannot_roll_back(tmp_path: Path) -> None:
    with loaded(tiny.make_recurrent(tmp_path / "mamba.gguf")) as model:
        context = model.vocabulary.tokenize(TEXT)
        assert model.refusal is not None
        row = model.forward(context, 1).copy()
        model.rollback(len(context))
        with pytest.raises(EngineError, match="recurrent"):
            model.rollback(len(context) - 1)
        model.rollback(0)
        np.testing.assert_allclose(model.forward(context, 1), row, atol=LOGITS_AGREE)


def test_a_recurrent_model_stopped_inside_a_pass_can_begin_anew(tmp_path: Path) -> None:
    with loaded(tiny.make_recurrent(tmp_path / "mamba.gguf")) as model:
        context = (model.vocabulary.tokenize(TEXT) * 30)[:500]
        row = model.forward(context[:100], 1).copy()
        for limit in (0, 5, 50):
            for read_before in (0, 40):
                model.rollback(0)
                if read_before:
                    model.forward(context[:read_before], 0)
                with pytest.raises(Stopped):
                    model.forward(context[read_before:], 0, asking(limit)[0])
                assert model.length in (0, read_before)
                np.testing.assert_allclose(model.forward(context[model.length : 100], 1), row, atol=LOGITS_AGREE)


def test_nothing_of_llama_cpps_own_words_reaches_the_terminal(path: Path, tmp_path: Path) -> None:
    broken = tiny.truncate(tiny.make(tmp_path / "broken.gguf"))
    script = f"""
from pathlib import Path
from specengine.backends.llamacpp import LlamaModel, LlamaOptions
from specengine.errors import EngineError
options = LlamaOptions(n_ctx=256, threads=1)
model = LlamaModel(Path({str(path)!r}), options)
model.forward([65] * 20, 1)
for refused in (lambda: model.forward([10**6], 1), lambda: LlamaModel(Path({str(broken)!r}), options)):
    try:
        refused()
    except EngineError:
        pass
model.close()
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == ""
    # ggml itself prints this where the processor has AMX, past every way to redirect its log.
    assert ran.stderr.removesuffix("AMX is not ready to be used!\n") == ""


def test_native_lines_go_to_the_log(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "specengine")
    with loaded(path, replace(EXACT, n_ctx=256)):
        pass
    assert any("llama" in record.message for record in caplog.records)
    assert {record.name for record in caplog.records} == {"specengine.backends.llamacpp"}

"""The llama.cpp runtime keeps its promises: passes, rollbacks, stops and limits, and silence on the terminal."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import tiny
from decoding import EXACT, LOGITS_AGREE, loaded, read
from specengine.backends.llamacpp import LlamaModel, LlamaOptions
from specengine.errors import EngineError, Stopped

TEXT = "def hello(self):\n    return 'the world' and class import"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture
def model(path: Path) -> Iterator[LlamaModel]:
    with loaded(path) as made:
        yield made


@pytest.fixture
def tokens(model: LlamaModel) -> list[int]:
    return (model.vocabulary.tokenize(TEXT) * 60)[:1000]


def test_a_pass_returns_the_rows_of_its_last_positions(model: LlamaModel, tokens: list[int]) -> None:
    every = read(model, tokens[:40])
    assert every.shape == (40, model.vocabulary.size)
    assert every.dtype == np.float32
    for rows in (0, 1, 7, 40):
        model.rollback(0)
        assert model.length == 0
        part = model.forward(tokens[:40], rows)
        assert part.shape == (rows, model.vocabulary.size)
        assert model.length == 40
        np.testing.assert_allclose(part, every[40 - rows :], atol=LOGITS_AGREE)


@pytest.mark.parametrize("kept", [0, 1, 5, 299, 599, 600])
def test_after_a_rollback_the_cache_holds_the_first_tokens_and_no_trace_of_others(
    model: LlamaModel, tokens: list[int], kept: int
) -> None:
    other = tokens[kept:600][::-1]
    continued = tokens[:kept] + tokens[900:920]
    expected = read(model, continued)[kept:]
    model.rollback(0)
    for part in (tokens[:kept], other):
        for at in range(0, len(part), model.n_batch):
            model.forward(part[at : at + model.n_batch], 0)
    model.rollback(kept)
    assert model.length == kept
    np.testing.assert_allclose(model.forward(tokens[900:920], 20), expected, atol=LOGITS_AGREE)


def test_a_rollback_to_where_it_is_not_is_refused(model: LlamaModel, tokens: list[int]) -> None:
    model.forward(tokens[:10], 0)
    for length in (-1, 11):
        with pytest.raises(ValueError, match="rollback"):
            model.rollback(length)
    assert model.length == 10


@pytest.mark.parametrize(("width", "rows"), [(0, 0), (10, 11), (10, -1), (513, 1), (200, 129)])
def test_a_pass_out_of_bounds_is_refused_and_changes_nothing(
    model: LlamaModel, tokens: list[int], width: int, rows: int
) -> None:
    assert (model.n_batch, model.max_rows) == (512, 128)
    with pytest.raises(ValueError, match="don't fit"):
        model.forward(tokens[:width], rows)
    assert model.length == 0


def test_the_widest_pass_and_the_most_rows_are_possible(model: LlamaModel, tokens: list[int]) -> None:
    assert model.forward(tokens[: model.n_batch], model.max_rows).shape[0] == model.max_rows


def test_a_full_context_takes_no_more_and_stays_usable(model: LlamaModel, tokens: list[int]) -> None:
    context = (tokens * 2)[: model.n_ctx]
    for at in range(0, model.n_ctx, model.n_batch):
        model.forward(context[at : at + model.n_batch], 0)
    with pytest.raises(EngineError, match="context of 1024 tokens is full"):
        model.forward(context[:1], 1)
    assert model.length == model.n_ctx
    model.rollback(10)
    rows = model.forward(context[10:20], 10).copy()
    np.testing.assert_allclose(rows, read(model, context[:20])[10:], atol=LOGITS_AGREE)


def test_a_token_that_does_not_exist_is_refused_and_changes_nothing(model: LlamaModel, tokens: list[int]) -> None:
    model.forward(tokens[:10], 0)
    with pytest.raises(EngineError):
        model.forward([model.vocabulary.size], 1)
    assert model.length == 10
    row = model.forward(tokens[10:11], 1).copy()
    np.testing.assert_allclose(row, read(model, tokens[:11])[10:], atol=LOGITS_AGREE)


def asking(limit: int) -> tuple[Callable[[], bool], Callable[[], int]]:
    asked = count()
    times = [0]

    def should_stop() -> bool:
        times[0] = next(asked) + 1
        return times[0] > limit

    return should_stop, lambda: times[0]


def test_a_pass_stopped_at_any_point_leaves_the_cache_as_it_was(model: LlamaModel, tokens: list[int]) -> None:
    expected = read(model, tokens[:520])[500:]
    should_stop, times = asking(10**9)
    model.rollback(0)
    model.forward(tokens[:500], 0, should_stop)
    assert times() > 20
    for limit in range(0, times(), max(1, times() // 12)):
        model.rollback(0)
        model.forward(tokens[:100], 0)
        with pytest.raises(Stopped):
            model.forward(tokens[100:500], 0, asking(limit)[0])
        assert model.length == 100
        model.forward(tokens[100:500], 0)
        np.testing.assert_allclose(model.forward(tokens[500:520], 20), expected, atol=LOGITS_AGREE)


def test_a_pass_without_should_stop_is_not_stopped_by_an_earlier_one(model: LlamaModel, tokens: list[int]) -> None:
    with pytest.raises(Stopped):
        model.forward(tokens[:500], 0, lambda: True)
    model.forward(tokens[:500], 0)
    assert model.length == 500


def test_loading_can_be_stopped_and_tells_its_progress(path: Path) -> None:
    with pytest.raises(Stopped):
        LlamaModel(path, EXACT, should_stop=lambda: True)
    seen: list[float] = []
    LlamaModel(path, EXACT, progress=seen.append).close()
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_two_models_of_one_file_have_caches_of_their_own(path: Path, tokens: list[int]) -> None:
    with loaded(path) as one, loaded(path) as other:
        one.forward(tokens[:30], 0)
        other.forward(tokens[100:150], 0)
        assert (one.length, other.length) == (30, 50)
        row = one.forward(tokens[30:31], 1).copy()
        np.testing.assert_allclose(row, read(other, tokens[:31])[30:], atol=LOGITS_AGREE)


@pytest.mark.parametrize("kv_type", ["f16", "bf16"])
def test_every_kind_of_kv_cache_loads_and_rolls_back(path: Path, tokens: list[int], kv_type: str) -> None:
    options = LlamaOptions(n_ctx=512, threads=1, kv_type=kv_type)  # type: ignore[arg-type]
    with loaded(path, options) as model:
        before = read(model, tokens[:60])[50:]
        model.rollback(50)
        np.testing.assert_allclose(model.forward(tokens[50:60], 10), before, atol=0.2)


def test_a_closed_model_can_be_closed_again(path: Path) -> None:
    model = LlamaModel(path, EXACT)
    model.close()
    model.close()


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

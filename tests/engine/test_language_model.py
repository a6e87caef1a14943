"""Every backend keeps the contract's promises: passes, rollbacks, stops and limits."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backends import BOTH, Backend, maker
from decoding import LOGITS_AGREE, asking, loaded, read
from specengine.errors import EngineError, Stopped
from specengine.language_model import LanguageModel

TEXT = "def hello(self):\n    return 'the world' and class import"


@pytest.fixture(scope="module", params=BOTH)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    backend: Backend = request.param
    return maker(backend)(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def model(path: Path) -> Iterator[LanguageModel]:
    with loaded(path) as made:
        yield made


@pytest.fixture
def tokens(model: LanguageModel) -> list[int]:
    return (model.vocabulary.tokenize(TEXT) * 60)[:1000]


def test_a_pass_returns_the_rows_of_its_last_positions(model: LanguageModel, tokens: list[int]) -> None:
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
    model: LanguageModel, tokens: list[int], kept: int
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


def test_a_rollback_to_where_it_is_not_is_refused(model: LanguageModel, tokens: list[int]) -> None:
    model.forward(tokens[:10], 0)
    for length in (-1, 11):
        with pytest.raises(ValueError, match="rollback"):
            model.rollback(length)
    assert model.length == 10


@pytest.mark.parametrize(("width", "rows"), [(0, 0), (10, 11), (10, -1), (513, 1), (200, 129)])
def test_a_pass_out_of_bounds_is_refused_and_changes_nothing(
    model: LanguageModel, tokens: list[int], width: int, rows: int
) -> None:
    assert (model.n_batch, model.max_rows) == (512, 128)
    with pytest.raises(ValueError, match="don't fit"):
        model.forward(tokens[:width], rows)
    assert model.length == 0


def test_the_widest_pass_and_the_most_rows_are_possible(model: LanguageModel, tokens: list[int]) -> None:
    assert model.forward(tokens[: model.n_batch], model.max_rows).shape[0] == model.max_rows


def test_a_full_context_takes_no_more_and_stays_usable(model: LanguageModel, tokens: list[int]) -> None:
    context = (tokens * 2)[: model.n_ctx]
    for at in range(0, model.n_ctx, model.n_batch):
        model.forward(context[at : at + model.n_batch], 0)
    with pytest.raises(EngineError, match="context of 1024 tokens is full"):
        model.forward(context[:1], 1)
    assert model.length == model.n_ctx
    model.rollback(10)
    rows = model.forward(context[10:20], 10).copy()
    np.testing.assert_allclose(rows, read(model, context[:20])[10:], atol=LOGITS_AGREE)


def test_a_token_that_does_not_exist_is_refused_and_changes_nothing(model: LanguageModel, tokens: list[int]) -> None:
    model.forward(tokens[:10], 0)
    with pytest.raises(EngineError):
        model.forward([model.vocabulary.size], 1)
    assert model.length == 10
    row = model.forward(tokens[10:11], 1).copy()
    np.testing.assert_allclose(row, read(model, tokens[:11])[10:], atol=LOGITS_AGREE)


def test_a_pass_stopped_at_any_point_leaves_the_cache_as_it_was(model: LanguageModel, tokens: list[int]) -> None:
    expected = read(model, tokens[:520])[500:]
    should_stop, times = asking(10**9)
    model.rollback(0)
    model.forward(tokens[:500], 0, should_stop)
    assert times() > 1
    for limit in range(0, times(), max(1, times() // 12)):
        model.rollback(0)
        model.forward(tokens[:100], 0)
        with pytest.raises(Stopped):
            model.forward(tokens[100:500], 0, asking(limit)[0])
        assert model.length == 100
        model.forward(tokens[100:500], 0)
        np.testing.assert_allclose(model.forward(tokens[500:520], 20), expected, atol=LOGITS_AGREE)


def test_a_pass_without_should_stop_is_not_stopped_by_an_earlier_one(model: LanguageModel, tokens: list[int]) -> None:
    with pytest.raises(Stopped):
        model.forward(tokens[:500], 0, lambda: True)
    model.forward(tokens[:500], 0)
    assert model.length == 500


def test_two_models_of_one_file_have_caches_of_their_own(path: Path, tokens: list[int]) -> None:
    with loaded(path) as one, loaded(path) as other:
        one.forward(tokens[:30], 0)
        other.forward(tokens[100:150], 0)
        assert (one.length, other.length) == (30, 50)
        row = one.forward(tokens[30:31], 1).copy()
        np.testing.assert_allclose(row, read(other, tokens[:31])[30:], atol=LOGITS_AGREE)


def test_a_closed_model_can_be_closed_again(path: Path) -> None:
    with loaded(path) as model:
        model.close()
        model.close()

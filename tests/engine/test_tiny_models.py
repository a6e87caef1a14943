"""The models that the other tests are made on: they load, decode, and are as likely and as random as promised."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tiny
from specengine.backends.llamacpp import LlamaModel, LlamaOptions
from specengine.errors import EngineError
from specengine.gguf_header import read_header

EXACT = LlamaOptions(n_ctx=1024, threads=1, kv_type="f32", flash_attention=False)
TEXT = "def hello(self):\n    return 'the world 你好 世 🙂'\n\nclass import"
Logits = npt.NDArray[np.float64]


@contextmanager
def loaded(path: Path) -> Iterator[LlamaModel]:
    model = LlamaModel(path, EXACT)
    try:
        yield model
    finally:
        model.close()


def logits(model: LlamaModel, tokens: list[int], width: int = 64) -> Logits:
    model.rollback(0)
    parts = [tokens[at : at + width] for at in range(0, len(tokens), width)]
    return np.concatenate([model.forward(part, len(part)).astype(np.float64) for part in parts])


def greedy(model: LlamaModel, count: int) -> list[int]:
    tokens = model.vocabulary.tokenize(TEXT)
    model.rollback(0)
    rows = model.forward(tokens, 1)
    for _ in range(count):
        tokens.append(int(rows[-1].argmax()))
        rows = model.forward(tokens[-1:], 1)
    return tokens


def softmax(rows: Logits) -> Logits:
    exponentials = np.exp(rows - rows.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def test_the_same_arguments_write_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    first, second, other = (tiny.make(tmp_path / f"{i}.gguf", seed=seed) for i, seed in enumerate((3, 3, 4)))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes() != other.read_bytes()
    assert first.stat().st_size < 1_000_000


@pytest.mark.parametrize("arch", ["llama", "qwen2"])
def test_logits_do_not_depend_on_the_width_of_the_pass(tmp_path: Path, arch: tiny.Architecture) -> None:
    with loaded(tiny.make(tmp_path / "t.gguf", arch=arch)) as model:
        tokens = (model.vocabulary.tokenize(TEXT) * 3)[:64]
        whole = logits(model, tokens)
        for width in range(1, 17):
            np.testing.assert_allclose(logits(model, tokens, width), whole, atol=1e-4)


def test_every_text_comes_back_from_its_tokens_and_merges_depend_on_the_surroundings(tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "t.gguf")) as model:
        vocabulary = model.vocabulary
        tokens = vocabulary.tokenize(TEXT)
        assert b"".join(map(vocabulary.piece, tokens)).decode() == TEXT
        assert len(tokens) < len(TEXT.encode()) * 0.6
        assert vocabulary.tokenize("\n\n    x") != vocabulary.tokenize("\n") + vocabulary.tokenize("\n    x")
        assert vocabulary.tokenize("):\n") != vocabulary.tokenize("):") + vocabulary.tokenize("\n")
        assert any(not vocabulary.piece(token).isascii() and len(vocabulary.piece(token)) == 2 for token in tokens)


def test_the_vocabulary_has_the_marks_of_a_chat_model(tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "t.gguf")) as model:
        vocabulary = model.vocabulary
        assert set(vocabulary.special) == {*tiny.CONTROL, *tiny.USER_DEFINED}
        assert vocabulary.control == {vocabulary.special[text] for text in tiny.CONTROL}
        assert vocabulary.special[tiny.END] in vocabulary.end_of_generation
        assert vocabulary.bos is None
        assert vocabulary.fill_in_middle is not None
        assert vocabulary.fill_in_middle.prefix == vocabulary.special["<|fim_prefix|>"]
        assert model.chat_template == tiny.CHATML


@pytest.mark.parametrize(("cycle", "nats"), [(0.0, (3.0, 4.0)), (1.0, (0.8, 2.0))])
def test_the_next_token_is_neither_certain_nor_arbitrary(
    tmp_path: Path, cycle: float, nats: tuple[float, float]
) -> None:
    with loaded(tiny.make(tmp_path / "t.gguf", cycle=cycle)) as model:
        probabilities = softmax(logits(model, greedy(model, 300)))
    entropy = -(probabilities * np.log(probabilities + 1e-300)).sum(axis=1).mean()
    assert nats[0] < entropy < nats[1]


@pytest.mark.parametrize(
    ("cycle", "noise", "low", "high"),
    [(0.0, 0.03, 0.75, 0.95), (0.0, 0.1, 0.4, 0.7), (1.0, 0.03, 0.88, 0.98), (1.0, 0.1, 0.7, 0.9)],
)
def test_drafts_made_by_noise_agree_with_their_target_often_but_not_always(
    tmp_path: Path, cycle: float, noise: float, low: float, high: float
) -> None:
    shares = []
    for seed in range(4):
        with loaded(tiny.make(tmp_path / "t.gguf", seed=seed, cycle=cycle)) as target:
            tokens = greedy(target, 300)
            chosen = logits(target, tokens).argmax(axis=1)
        with loaded(tiny.make(tmp_path / "d.gguf", seed=seed, cycle=cycle, noise=noise)) as draft:
            shares.append(np.mean(logits(draft, tokens).argmax(axis=1) == chosen))
    assert low < np.mean(shares) < high


def test_strong_cycles_make_greedy_text_repeat(tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "t.gguf", cycle=2.0)) as model:
        tokens = greedy(model, 300)
    last: dict[tuple[int, int], int] = {}
    hits = []
    for before, now, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (before, now) in last:
            hits.append(last[before, now] == after)
        last[before, now] = after
    assert len(hits) > 100
    assert np.mean(hits) > 0.9


def test_the_end_of_generation_is_as_likely_as_asked(tmp_path: Path) -> None:
    def share(end: float) -> float:
        with loaded(tiny.make(tmp_path / "t.gguf", end=end)) as model:
            rows = logits(model, model.vocabulary.tokenize(TEXT) * 4)
            return float(softmax(rows)[:, model.vocabulary.special[tiny.END]].mean())

    assert share(-30.0) < 1e-9 < share(0.0) < 0.02 < share(3.0) < 0.2 < share(8.0)


def test_padding_tokens_lie_behind_the_real_ones(tmp_path: Path) -> None:
    tiny.make(tmp_path / "t.gguf")
    tiny.make(tmp_path / "padded.gguf", vocab_extra=10)
    sizes = [read_header(tmp_path / name).vocabulary_size for name in ("t.gguf", "padded.gguf")]
    assert sizes[0] is not None
    assert sizes[1] == sizes[0] + 10


def test_the_sentencepiece_model_decodes_and_spells_text_with_a_space_before_it(tmp_path: Path) -> None:
    with loaded(tiny.make_sentencepiece(tmp_path / "s.gguf")) as model:
        tokens = model.vocabulary.tokenize("the world é")
        assert b"".join(map(model.vocabulary.piece, tokens)).decode() == " the world é"
        assert np.isfinite(model.forward(tokens, 1)).all()
        assert model.vocabulary.name(model.vocabulary.bos or 0) == "<s>"


def test_a_mismatched_vocabulary_differs_in_one_token(tmp_path: Path) -> None:
    def names(path: Path) -> list[str]:
        with loaded(path) as model:
            return [model.vocabulary.name(token) for token in range(model.vocabulary.size)]

    original = names(tiny.make(tmp_path / "t.gguf"))
    other = names(tiny.make_mismatched(tmp_path / "other.gguf"))
    larger = names(tiny.make_mismatched(tmp_path / "larger.gguf", larger=True))
    assert sum(a != b for a, b in zip(original, other, strict=True)) == 1
    assert larger[:-1] == original


def test_the_recurrent_model_decodes_and_is_known_as_recurrent(tmp_path: Path) -> None:
    with loaded(tiny.make_recurrent(tmp_path / "m.gguf")) as model:
        tokens = model.vocabulary.tokenize(TEXT)
        rows: Any = model.forward(tokens, len(tokens))
        assert np.isfinite(rows).all()
        assert len(set(rows.argmax(axis=1))) > 5
        assert model.refusal is not None


def test_a_truncated_model_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        LlamaModel(tiny.truncate(tiny.make(tmp_path / "t.gguf")), EXACT)

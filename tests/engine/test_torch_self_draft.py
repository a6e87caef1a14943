"""A model that drafts for itself: the same weights and the same KV cache, fewer layers, and no trace in the text."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny
import tiny_folder
from decoding import EXACT, ITSELF, LOGITS_AGREE, Rig, answer, engine, opened, read, run
from specengine.backends.torch_nf4.model import TorchModel
from specengine.backends.torch_nf4.self_draft import SelfDraft
from specengine.controls import Controls
from specengine.costs_file import kept_for
from specengine.draft_along import draft_along
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.language_model import Rows
from specengine.layer_skipping import LayerChoice
from specengine.loading import load
from specengine.protocol import Load
from specengine.settings import EngineChoice, Limits, Sampling

CODE = "def hello(self):\n    return 'the world'"
GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=1.0, top_k=40, top_p=0.95, frequency_penalty=0.4, seed=3)


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder.make(tmp_path_factory.mktemp("self") / "model", arch=request.param, cycle=1.5, end=-30)


@pytest.fixture
def target(folder: Path) -> Iterator[TorchModel]:
    model = opened(folder)
    assert isinstance(model, TorchModel)
    yield model
    model.close()


@pytest.fixture
def tokens(target: TorchModel) -> list[int]:
    return (target.vocabulary.tokenize(CODE) * 60)[:600]


def steps(draft: SelfDraft, tokens: list[int]) -> Rows:
    """Its rows behind each of `tokens`, one by one, as if drafted."""
    return np.concatenate([draft.forward([token], 1).copy() for token in tokens])


def test_it_reads_what_the_target_read_and_leaves_it_as_it_was(target: TorchModel, tokens: list[int]) -> None:
    expected = read(target, tokens[:80])
    draft = SelfDraft(target)
    target.rollback(60)
    assert draft.length == 60
    first = steps(draft, tokens[60:66])
    assert (draft.length, target.length) == (66, 60)
    np.testing.assert_allclose(target.forward(tokens[60:80], 20), expected[60:80], atol=LOGITS_AGREE)
    assert draft.length == target.length == 80
    target.rollback(60)
    draft.forward(tokens[60:63], 0)
    draft.rollback(61)
    np.testing.assert_allclose(steps(draft, tokens[61:66]), first[1:], atol=LOGITS_AGREE)
    draft.rollback(60)
    np.testing.assert_allclose(draft.forward(tokens[60:66], 6), first, atol=LOGITS_AGREE)
    assert np.abs(first - expected[60:66]).max() > 0.1


def test_what_it_wrote_is_no_part_of_the_cache_once_the_target_went_on_or_back(
    target: TorchModel, tokens: list[int]
) -> None:
    draft = SelfDraft(target)
    target.forward(tokens[:60], 0)
    first = steps(draft, tokens[60:64])
    with pytest.raises(ValueError, match="rollback to 59"):
        draft.rollback(59)
    with pytest.raises(Stopped):
        target.forward(tokens[60:64], 4, lambda: True)
    assert draft.length == target.length == 60
    np.testing.assert_allclose(steps(draft, tokens[60:64]), first, atol=LOGITS_AGREE)
    target.rollback(40)
    assert draft.length == target.length == 40
    with pytest.raises(Stopped):
        draft.forward(tokens[40:44], 1, lambda: True)
    assert draft.length == 40


def test_buffers_that_a_draft_made_grow_hold_what_the_target_read(
    folder: Path, target: TorchModel, tokens: list[int]
) -> None:
    """They double at 512 positions, here while a draft runs past them."""
    expected = read(target, tokens)
    fresh = opened(folder)
    assert isinstance(fresh, TorchModel)
    for at in range(0, 510, 100):
        fresh.forward(tokens[at : min(at + 100, 510)], 0)
    steps(SelfDraft(fresh), tokens[510:516])
    np.testing.assert_allclose(fresh.forward(tokens[510:600], 90), expected[510:], atol=LOGITS_AGREE)


def test_rows_beside_the_cache_are_those_of_first_steps_and_leave_it_alone(
    target: TorchModel, tokens: list[int]
) -> None:
    expected = read(target, tokens[:90])
    draft = SelfDraft(target)
    beside = draft.rows(tokens[30:80], 30)
    assert (target.length, draft.length) == (90, 90)
    for position in (30, 31, 50, 79):
        target.rollback(position)
        np.testing.assert_allclose(draft.forward([tokens[position]], 1)[0], beside[position - 30], atol=LOGITS_AGREE)
        target.forward(tokens[position:80], 0)
    target.forward(tokens[80:90], 0)
    target.rollback(89)
    np.testing.assert_allclose(target.forward([tokens[89]], 1)[0], expected[89], atol=LOGITS_AGREE)
    np.testing.assert_allclose(draft.rows(tokens[30:31], 30)[0], beside[0], atol=LOGITS_AGREE)


@pytest.fixture(scope="module")
def rig(folder: Path) -> Iterator[Rig]:
    with engine(folder, ITSELF) as made:
        yield Rig(made)


@pytest.mark.parametrize("gamma", [1, 3, 5, None])
def test_after_every_round_the_caches_hold_the_committed_tokens(folder: Path, rig: Rig, gamma: int | None) -> None:
    committed, rows, seen = rig.engine.committed, [], []

    def watch(rounds: int, controls: Controls) -> None:
        target, draft = rig.target, rig.draft
        assert draft.length == target.length == len(committed) - 1
        rows.append((target.length, draft.forward(committed[-1:], 1)[0].copy()))
        draft.rollback(target.length)
        seen.append((target.length, target.forward(committed[-1:], 1)[0].copy()))
        target.rollback(len(committed) - 1)

    prompt = rig.target.vocabulary.tokenize(CODE * 2)
    done = run(rig.decoder(prompt, "draft"), WARM, 40, gamma=gamma, each_round=watch)
    assert done.stats.accepted > 0
    assert done.rejected("draft") > 0
    assert {one.prefilled for one in done.rounds} == {0}
    assert {one.caught_up for one in done.rounds if one.draft_passes} == {1}
    fresh = opened(folder)
    assert isinstance(fresh, TorchModel)
    expected = read(fresh, committed)
    drafted = SelfDraft(fresh).rows(committed, 0)
    for position, row in seen:
        np.testing.assert_allclose(row, expected[position], atol=LOGITS_AGREE)
    for position, row in rows:
        np.testing.assert_allclose(row, drafted[position], atol=LOGITS_AGREE)


def test_an_answer_can_be_read_along_afterwards(folder: Path) -> None:
    """What it would have said at each position, against rounds of one drafted token each."""
    with engine(folder, ITSELF) as made:
        plain = answer(made, CODE, GREEDY, limits=Limits(max_tokens=40))
        assert made.model is not None
        committed = list(made.committed)
        along = draft_along(made.model, committed, len(committed) - len(plain.tokens), GREEDY)
        assert along is not None
        assert made.target.length == len(committed) - 1
        single = answer(made, CODE, GREEDY, limits=Limits(max_tokens=40), draft=True, gamma=1)
        at, agreed = 0, []
        for one in single.rounds:
            if one.drafted:
                agreed.append((at, one.accepted == 1))
            at += one.kept
        assert [along.agrees[position] for position, _ in agreed] == [was for _, was in agreed]
        assert {was for _, was in agreed} == {True, False}


def loaded(model: Path, engine: EngineChoice = "torch", costs: Path | None = None) -> Engine:
    kept = str(costs) if costs else None
    request = Load(str(model), self_draft=True, engine=engine, device="cpu", threads=1, costs_file=kept)
    return load(request, lambda *_: None, lambda: False)


def test_it_is_loaded_by_name_and_its_costs_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    made = loaded(folder, costs=tmp_path / "costs.json")
    assert (made.loaded.draft, made.loaded.draft_refused) == ("self", None)
    made.measure_costs(lambda: False)
    assert made.gamma.costs.draft_step_s is not None
    assert made.target.length == 0
    fast = answer(made, CODE, GREEDY, limits=Limits(max_tokens=30), draft=True, gamma=2)
    assert fast.stats.sources["draft"].drafted > 0
    made.close()
    itself = Load(str(folder), self_draft=True)
    assert kept_for(tmp_path / "costs.json", itself) is not None
    assert kept_for(tmp_path / "costs.json", msgspec.structs.replace(itself, self_draft=False)) is None


def test_llama_cpp_says_what_to_do_instead(tmp_path: Path) -> None:
    made = loaded(tiny.make(tmp_path / "tiny.gguf"), "llamacpp")
    assert made.loaded.draft is None
    assert made.loaded.draft_refused is not None
    assert "--engine torch" in made.loaded.draft_refused
    assert "\n" not in made.loaded.draft_refused
    made.close()


def test_a_recurrent_model_can_not_draft_for_itself(tmp_path: Path) -> None:
    made = loaded(tiny_folder.make_recurrent(tmp_path / "lfm2"))
    assert made.loaded.draft is None
    assert made.loaded.draft_refused == made.loaded.speculation_refused
    made.close()


def test_a_model_of_one_layer_has_none_to_leave_out(tmp_path: Path) -> None:
    folder = tiny_folder.make(tmp_path / "short")
    model = opened(folder, EXACT)
    assert isinstance(model, TorchModel)
    assert model._model is not None
    del model._model.get_decoder().layers[1]
    with pytest.raises(EngineError, match="one layer"):
        SelfDraft(model)


def test_a_layer_that_does_nothing_is_not_missed(tmp_path: Path) -> None:
    folder = tiny_folder.make(tmp_path / "idle", cycle=1.5, end=-30)
    weights = load_file(folder / "model.safetensors")
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        weights[f"model.layers.0.{name}.weight"][:] = 0
    save_file(weights, folder / "model.safetensors")
    with engine(folder, ITSELF) as made:
        said = answer(made, CODE, GREEDY, limits=Limits(max_tokens=80))
        draft, committed = made.model and made.model.model, list(made.committed)
        assert isinstance(draft, SelfDraft)
        start = len(committed) - len(said.tokens) - 1
        assert draft.agreement([0], committed[start:], start) == 1.0
        rows = draft.rows(committed[start:-1], start).argmax(-1)
        assert draft.skipped == (1,)
        agreement = draft.agreement([1], committed[start:], start)
        assert agreement == pytest.approx(np.mean(rows == said.tokens))
        assert agreement < 1
        made.layers = LayerChoice(draft)
        made.layers.see(len(said.tokens))
        made.measure_costs(lambda: False)
        assert draft.skipped == (0,)
        assert made.target.length == len(committed) - 1
        again = answer(made, CODE, GREEDY, limits=Limits(max_tokens=80), draft=True, gamma=4)
        assert again.tokens == said.tokens
        assert again.stats.accepted == again.stats.drafted > 0


def test_chosen_layers_are_kept_with_the_costs_of_their_step(folder: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.json"
    made = loaded(folder, costs=costs)
    made.measure_costs(lambda: False)
    assert made.keep_costs is not None
    made.gamma.costs.skipped = (0,)
    made.keep_costs(made.gamma.costs)
    made.close()
    again = loaded(folder, costs=costs)
    assert again.layers is not None
    assert again.layers.draft.skipped == (0,)
    again.close()

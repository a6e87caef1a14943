"""A bench of a model that drafts for itself says which layers were left out, and takes those that chats have chosen."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import tiny_folder
from specchat.bench import own_layers
from specengine import costs_file
from specengine.costs import GRID, CostTable
from specengine.engine import Engine
from specengine.loading import load
from specengine.protocol import Load


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Load:
    folder = tiny_folder.make(tmp_path_factory.mktemp("own") / "tiny", cycle=1.5, end=-30)
    return Load(str(folder), self_draft=True, engine="torch", device="cpu", threads=1, n_ctx=512)


@pytest.fixture
def engine(model: Load) -> Iterator[Engine]:
    made = load(model, lambda *_: None, lambda: False)
    yield made
    made.close()


def test_layers_that_chats_chose_are_taken(model: Load, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    assert engine.layers is not None
    assert not own_layers.take_kept(engine, model, file)
    for skipped in ((), (7,), (0,)):
        table = CostTable([0.01] * len(GRID), draft_step_s=0.001, skipped=skipped)
        costs_file.write(file, costs_file.key(model, "x"), table)
        assert own_layers.take_kept(engine, model, file) == (skipped == (0,))
    assert engine.layers.draft.skipped == (0,)
    assert engine.loaded.draft == "self without layer 1 of 2"
    assert (
        engine.loaded.notices[-1] == "tiny drafts for itself without layer 1 of 2: as chosen in chats on this machine."
    )


def test_else_they_are_chosen_on_a_text_of_its_own(engine: Engine) -> None:
    assert engine.layers is not None
    engine.measure_costs(lambda: False)
    # A step so short that drafts pay, whatever this machine measured.
    engine.gamma.costs = CostTable([0.01] * len(GRID), draft_step_s=0.004, draft_read_s=0.001)
    own_layers.choose(engine, lambda: False)
    assert engine.layers.wanted > 0  # judged
    (skipped,) = engine.layers.draft.skipped
    assert engine.loaded.draft == f"self without layer {skipped + 1} of 2"
    assert engine.target.length == len(engine.committed) - 1 > 100


def test_stopped_it_leaves_the_first_choice(engine: Engine) -> None:
    assert engine.layers is not None
    engine.measure_costs(lambda: False)
    own_layers.choose(engine, lambda: True)
    assert engine.layers.draft.skipped == (1,)

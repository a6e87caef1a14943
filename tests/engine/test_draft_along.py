"""Reading an answer through the draft model says what it would have drafted, and leaves no trace."""

from collections.abc import Iterator

import pytest

import tiny
from decoding import answer
from decoding import engine as engine_of
from specengine.draft import Plan
from specengine.draft_along import draft_along
from specengine.drafters.model import DraftModel
from specengine.engine import Engine
from specengine.errors import Stopped
from specengine.noise import Noise
from specengine.protocol import Raw
from specengine.sampling import top_probability
from specengine.settings import Limits, Sampling

PROMPT = "one two three four five six seven eight nine ten one two"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("models")
    target = tiny.make(folder / "target.gguf", cycle=1.0, end=-30)
    with engine_of(target, tiny.make(folder / "draft.gguf", cycle=1.0, end=-30, noise=0.1)) as made:
        yield made


def drafter_of(engine: Engine) -> DraftModel:
    assert engine.model is not None
    return engine.model


def answered(engine: Engine, sampling: Sampling, count: int = 200) -> int:
    """Leaves an answer in the engine, written plainly; returns the length of its prompt."""
    drafter_of(engine).rollback(0)
    given = answer(engine, Raw(PROMPT), sampling, limits=Limits(count))
    return len(engine.committed) - len(given.tokens)


@pytest.mark.parametrize(
    "sampling",
    [Sampling(temperature=0), Sampling(temperature=1.0, seed=5), Sampling(temperature=0, presence_penalty=1)],
)
def test_it_says_what_the_draft_model_proposes_at_each_position(engine: Engine, sampling: Sampling) -> None:
    drafter = drafter_of(engine)
    n_prompt = answered(engine, sampling)
    along = draft_along(drafter, engine.committed, n_prompt, sampling)
    assert along is not None
    assert len(along.confidence) == len(along.agrees) == len(engine.committed) - n_prompt == 200
    assert 20 < sum(along.agrees) < 200
    for i in range(0, 200, 7):
        drafter.rollback(0)
        proposal = drafter.propose(engine.committed[: n_prompt + i], Plan("draft", 1), sampling, Noise(sampling.seed))
        assert along.agrees[i] == (proposal.tokens[0] == engine.committed[n_prompt + i])
        assert along.confidence[i] == pytest.approx(proposal.evidence[0], abs=1e-3)


def test_it_wants_the_same_of_the_maximal_coupling_as_of_shared_noise(engine: Engine) -> None:
    n_prompt = answered(engine, Sampling(temperature=1.0, seed=5), 40)
    shared, maximal = (
        draft_along(
            drafter_of(engine), engine.committed, n_prompt, Sampling(temperature=1.0, seed=5, coupling=coupling)
        )
        for coupling in ("shared", "maximal")
    )
    assert shared == maximal


@pytest.mark.parametrize("length", [0, 5, 30, 150])
def test_the_draft_models_cache_ends_as_it_was(engine: Engine, length: int) -> None:
    drafter, model = drafter_of(engine), drafter_of(engine).model
    n_prompt = answered(engine, Sampling(temperature=0))
    if length:
        model.forward(engine.committed[:length], 0)
    before = top_probability(model.forward(engine.committed[length : length + 1], 1)[0])
    model.rollback(length)
    draft_along(drafter, engine.committed, n_prompt, Sampling(temperature=0))
    assert model.length == length
    after = top_probability(model.forward(engine.committed[length : length + 1], 1)[0])
    assert after == pytest.approx(before, abs=1e-5)


def test_stopping_leaves_the_cache_in_step(engine: Engine) -> None:
    drafter = drafter_of(engine)
    n_prompt = answered(engine, Sampling(temperature=0))
    drafter.model.forward(engine.committed[:10], 0)
    with pytest.raises(Stopped):
        draft_along(drafter, engine.committed, n_prompt, Sampling(temperature=0), lambda: True)
    assert drafter.model.length <= 10
    along = draft_along(drafter, engine.committed, n_prompt, Sampling(temperature=0))
    assert along is not None and len(along.agrees) == 200


def test_an_answer_that_the_draft_models_context_cannot_hold_is_not_read(engine: Engine) -> None:
    drafter = drafter_of(engine)
    assert draft_along(drafter, [1] * (drafter.model.n_ctx + 1), 10, Sampling(temperature=0)) is None

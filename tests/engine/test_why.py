"""Why γ was what it was: the reasons that an answer comes with agree with what was decided in its rounds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tiny
from decoding import FixedCosts, answer, engine
from specengine.controls import Controls
from specengine.costs import GRID
from specengine.draft import NOTHING, PLAIN, Draft, Plan
from specengine.engine import Engine
from specengine.gamma import LEAST_GAIN, Gamma, Situation
from specengine.settings import Limits, Sampling
from specengine.stats import Why
from specengine.why import conclude, see, see_copied, shortest_paying_match

GREEDY: Final = Sampling(temperature=0)
TWO_CORES: Final = {1: 1, 2: 1.8, 4: 3.1, 5: 3.8, 8: 7.0, 16: 8.4, 32: 14, 128: 44}
DEAR: Final = {1: 1, 2: 2, 128: 128}


def costs(passes: dict[int, float], step: float | None = None) -> FixedCosts:
    """In units of a pass over one token."""
    ratios = [float(ratio) for ratio in np.interp(GRID, list(passes), list(passes.values()))]
    return FixedCosts(ratios, draft_step_s=step, draft_read_s=step, host_s=0.0)


def proposal(match: int, tokens: int = 40) -> Draft:
    return Draft("lookup", tuple(range(tokens)), tuple(float(match + i) for i in range(tokens)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("why")
    return tiny.make(folder / "target.gguf", cycle=1.0), tiny.make(folder / "draft.gguf", cycle=1.0, noise=0.03)


@pytest.fixture
def chat(files: tuple[Path, Path]) -> Iterator[Engine]:
    with engine(*files) as made:
        yield made


def test_rounds_are_counted_by_who_decided() -> None:
    why, free = Why(), Controls()
    see(why, Controls(speculation="off"), proposal(9), PLAIN)
    see(why, Controls(gamma=3), proposal(9), Plan("lookup", 3))
    see(why, free, NOTHING, Plan("draft", 2, probe=True))
    see(why, free, proposal(9), Plan("lookup", 30))
    see(why, free, proposal(7), Plan("lookup", 30))
    see(why, free, proposal(3), PLAIN)
    see(why, free, proposal(5), Plan("draft", 4))
    assert (why.off, why.fixed, why.free, why.probes, why.offered) == (1, 1, 5, 1, 4)
    assert (why.shortest_taken, why.longest_left) == (7, 5)


def test_matches_that_are_doubted_are_told_no_shorter_than_any_that_is_looked_for() -> None:
    why = Why()
    see(why, Controls(), replace(proposal(2), evidence=(-0.6,) * 40), Plan("lookup", 4))
    assert why.shortest_taken == 2
    conclude(why, Gamma(costs({1: 1, 128: 1.0})), 0, draft_model=False)
    assert why.lookup_needs == 2


def test_copies_behind_a_draft_models_tokens_are_counted_by_themselves() -> None:
    """They take shorter matches than drafts of their own, whose least length is told."""
    why = Why()
    see(why, Controls(), NOTHING, Plan("draft", 4))
    see_copied(why, NOTHING, Draft("draft", (1, 2)).followed_by(proposal(2)))
    see(why, Controls(), proposal(3), Plan("draft", 4))
    see_copied(why, proposal(3), Draft("draft", (1, 2)).followed_by(proposal(2)))
    see(why, Controls(), proposal(8), Plan("lookup", 4))
    assert (why.free, why.offered, why.behind, why.shortest_taken) == (3, 3, 2, 8)


@pytest.mark.parametrize("passes", [TWO_CORES, {1: 1, 128: 1.0}, DEAR])
def test_the_match_that_pays_is_the_one_from_which_gamma_drafts(passes: dict[int, float]) -> None:
    gamma = Gamma(costs(passes))
    needs = shortest_paying_match(gamma, gamma.costs)
    for match in range(1, 64):
        situation = Situation(proposal(match, 64), False, 0, 64, "auto", None)
        drafts = Gamma(costs(passes)).plan(situation).source == "lookup"
        if needs is None or match < needs:
            assert not drafts, match
        elif match == needs:
            assert drafts
    assert (needs is None) == (passes is DEAR)


def test_a_draft_that_can_never_pay_is_said_to_need_more_than_everything() -> None:
    why = Why()
    conclude(why, Gamma(costs(TWO_CORES, step=0.69)), 0, draft_model=True)
    assert why.c == pytest.approx(0.69) and why.two_tokens == pytest.approx(1.8)
    assert (why.draft_needs, why.draft_needs_gamma) == (None, None)
    assert why.best is not None and why.best > LEAST_GAIN


def test_a_draft_that_may_pay_is_said_to_need_so_much_and_to_give_so_much() -> None:
    why, gamma = Why(), Gamma(costs({1: 1, 128: 1.0}, step=0.5))
    gamma.model.recent = 0.3
    conclude(why, gamma, 0, draft_model=True)
    assert why.draft_needs == pytest.approx(0.5, abs=1e-6) and why.draft_needs_gamma == 1
    assert why.draft_acceptance == 0.3


def test_without_a_draft_model_nothing_is_said_of_one() -> None:
    why = Why()
    conclude(why, Gamma(costs(TWO_CORES, step=0.1)), 0, draft_model=False)
    assert why.c is None and why.draft_needs is None and why.draft_acceptance is None


def test_costs_are_taken_behind_the_context_that_there_is() -> None:
    table = costs({1: 1, 128: 1.0}, step=0.5)
    table.context_s = 0.001
    near, far = Why(), Why()
    conclude(near, Gamma(table), 0, draft_model=True)
    conclude(far, Gamma(table), 4000, draft_model=True)
    assert near.c == pytest.approx(0.5) and far.c == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("speculation", "gamma", "counted"), [("off", None, "off"), ("on", 3, "fixed"), ("auto", None, "free")]
)
def test_an_answer_comes_with_its_reasons(chat: Engine, speculation: str, gamma: int | None, counted: str) -> None:
    answered = answer(
        chat, "one two one two one two", GREEDY, limits=Limits(20), lookup=True, draft=True,
        speculation=speculation, gamma=gamma,  # type: ignore[arg-type]
    )  # fmt: skip
    stats, why = answered.stats, answered.stats.why
    assert {name: getattr(why, name) for name in ("off", "fixed", "free")} == {
        "off": 0, "fixed": 0, "free": 0, counted: stats.target_passes,
    }  # fmt: skip
    assert why.c is not None and why.best is not None
    if counted == "free":
        lookup = stats.sources.get("lookup")
        assert why.offered >= (lookup.rounds if lookup else 0)
        assert (why.shortest_taken is None and not why.behind) == (lookup is None)


def test_both_ratios_that_people_call_acceptance_are_there(chat: Engine) -> None:
    stats = answer(chat, "one two one two", GREEDY, limits=Limits(20), lookup=True, gamma=3).stats
    assert stats.acceptance == stats.accepted / stats.drafted
    assert stats.drafted_share == stats.accepted / stats.emitted

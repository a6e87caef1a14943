"""The advice: what follows from a cost table, and nothing else."""

import numpy as np
import pytest

from specengine.advice import advise, expected_tokens, needed_acceptance
from specengine.costs import GRID, CostTable


def table(passes: dict[int, float], c: float | None = None) -> CostTable:
    """A table of v(k), in units of a pass over one token; the host costs nothing."""
    ratios = [float(ratio) for ratio in np.interp(GRID, list(passes), list(passes.values()))]
    return CostTable(ratios, draft_step_s=c, draft_read_s=c, host_s=0.0)


TWO_CORES = {1: 1, 2: 1.8, 4: 3.1, 5: 3.8, 8: 7.0, 16: 8.4, 32: 14, 128: 44}
FLAT = {1: 1, 128: 1.0}


@pytest.mark.parametrize("acceptance", [0.0, 0.3, 0.8, 0.99])
@pytest.mark.parametrize("gamma", [1, 4, 16])
def test_expected_tokens_are_the_closed_form(acceptance: float, gamma: int) -> None:
    closed = (1 - acceptance ** (gamma + 1)) / (1 - acceptance)
    assert expected_tokens(acceptance, gamma) == pytest.approx(closed)


@pytest.mark.parametrize(("round_s", "gamma"), [(1.5, 1), (2.0, 3), (4.9, 4), (0.5, 2)])
def test_the_needed_acceptance_is_where_a_round_just_pays(round_s: float, gamma: int) -> None:
    needed = needed_acceptance(round_s, 1.0, gamma)
    assert needed is not None
    assert expected_tokens(needed, gamma) == pytest.approx(max(round_s, 1.0))


def test_no_acceptance_makes_up_for_a_round_that_costs_more_than_all_its_tokens() -> None:
    assert needed_acceptance(3.01, 1.0, 2) is None


def test_a_draft_that_loses_even_at_full_acceptance_is_to_be_left_out() -> None:
    advice = advise(table(TWO_CORES, c=0.69), "small")
    assert advice.draft is not None
    assert (advice.draft.needed, advice.draft.needed_gamma) == (None, None)
    assert advice.draft.best < 1
    said = str(advice)
    assert said.startswith("Leave small out here (--draft none); prompt lookup pays up to 2.9× on copied text")
    assert "c = 0.69" in said and "costs 1.8 passes" in said and "even if every token is accepted" in said
    assert "as on most GPUs, this one would pay from an acceptance of 0.69 on" in said


def test_figures_are_those_of_brute_force() -> None:
    costs = table(TWO_CORES, c=0.05)
    advice = advise(costs, "small")
    assert advice.draft is not None and advice.draft.needed is not None
    speedups = {k: (k + 1) / (k * 0.05 + costs.target(k + 1)) for k in range(1, 17)}
    assert advice.draft.best == pytest.approx(max(speedups.values()))
    assert speedups[advice.draft.best_gamma] == pytest.approx(advice.draft.best)
    for alpha, pays in ((advice.draft.needed - 0.001, False), (advice.draft.needed + 0.001, True)):
        rates = [expected_tokens(alpha, k) / (k * 0.05 + costs.target(k + 1)) for k in range(1, 17)]
        assert (max(rates) > 1) is pays
    for c, pays in ((advice.paying_c - 0.001, True), (advice.paying_c + 0.001, False)):
        rates = [expected_tokens(0.8, k) / (k * c + costs.target(k + 1)) for k in range(1, 17)]
        assert (max(rates) > 1) is pays


def test_where_passes_cost_the_same_a_draft_pays_from_an_acceptance_of_c_on() -> None:
    advice = advise(table(FLAT, c=0.4), "small")
    assert advice.draft is not None and advice.draft.needed == pytest.approx(0.4, abs=1e-6)
    assert str(advice).startswith("Keep small as draft model, beside prompt lookup (up to 128.0× on copied text)")
    assert "GPU" not in str(advice)


def test_a_draft_that_needs_near_copies_is_to_be_left_out_too() -> None:
    said = str(advise(table(TWO_CORES, c=0.25), "small"))
    assert said.startswith("Leave small out here")
    assert "would pay only from an acceptance of 0.9" in said


def test_without_a_draft_model_it_is_said_what_one_may_cost() -> None:
    advice = advise(table({**TWO_CORES, 2: 1.7}, c=0.69), None)
    assert (advice.draft, advice.draft_name, advice.c) == (None, None, None)
    assert f"a draft model would pay if its step cost less than {advice.paying_c:.2f} of a pass" in str(advice)
    assert str(advice).startswith("Keep prompt lookup on")


def test_where_width_costs_as_much_as_writing_nothing_is_to_be_expected() -> None:
    steep = {1: 1, 2: 2.1, 128: 150}
    alone, beside = str(advise(table(steep))), str(advise(table(steep, c=0.5), "small"))
    assert alone.startswith("Expect nothing of speculation here: checking two tokens at once costs 2.1 passes.")
    assert "Leave small out here (--draft none), and expect nothing of prompt lookup either" in beside
    assert "Not even a draft model that costs nothing would pay" in alone


def test_a_draft_as_slow_as_its_target_pays_nowhere() -> None:
    assert "this one can't pay anywhere" in str(advise(table(TWO_CORES, c=1.2), "small"))

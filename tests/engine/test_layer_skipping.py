"""Which layers a model leaves out as its own draft: by given agreement and costs, the set of the best expected rate."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from specengine.costs import GRID, CostTable
from specengine.gamma import Gamma
from specengine.language_model import Rows
from specengine.layer_skipping import (
    LEAST_TEXT,
    MORE_TEXT,
    READ,
    LayerChoice,
    LayerSkipping,
    best_rate,
    candidates,
)
from specengine.middle_layers import first_choice

LAYERS = 20
WASTED = (8, 9, 10, 11, 12)
"""Layers that change nothing."""


@dataclass
class Toy:
    """Agrees less with every layer left out that matters."""

    each: float = 0.8
    wasted: tuple[int, ...] = WASTED
    layers: int = LAYERS
    skipped: tuple[int, ...] = first_choice(LAYERS)
    length: int = 500
    read: list[tuple[int, int]] = field(default_factory=list)
    """Position and count of the tokens of every pass."""

    def skip(self, skipped: Collection[int]) -> None:
        self.skipped = tuple(skipped)

    def rows(self, tokens: Sequence[int], start: int) -> Rows:
        return np.zeros((len(tokens), 1), np.float32)

    def agreement(self, skipped: Collection[int], tokens: Sequence[int], start: int) -> float:
        self.read.append((start, len(tokens) - 1))
        return self.each ** len(set(skipped) - set(self.wasted))


def costs(more_s: float = 0.0001) -> CostTable:
    """Each layer takes a millisecond, and each token more `more_s`."""
    step_s = 0.001 * (LAYERS - len(first_choice(LAYERS)))
    return CostTable([0.020 + more_s * (width - 1) for width in GRID], draft_step_s=step_s, host_s=0.0)


def choose(
    draft: Toy, table: CostTable, committed: int = 501, n_prompt: int = 300, stop: Callable[[], bool] = lambda: False
) -> tuple[bool, Gamma, LayerChoice]:
    gamma = Gamma(table)
    choice = LayerChoice(draft)
    choice.see(LEAST_TEXT)
    return choice.choose(list(range(committed)), n_prompt, gamma, stop), gamma, choice


def test_the_layers_in_use_at_first_lie_in_the_middle() -> None:
    assert first_choice(28) == tuple(range(10, 18))
    for layers in range(2, 100):
        chosen = first_choice(layers)
        assert 0 < len(chosen) < layers
        assert 0 <= chosen[0] <= chosen[-1] < layers
        assert len(set(chosen)) == len(chosen)


@pytest.mark.parametrize("each", [0.5, 0.8])
def test_what_makes_no_difference_is_left_out(each: float) -> None:
    draft, table = Toy(each), costs()
    changed, gamma, _ = choose(draft, table)
    assert changed
    assert draft.skipped == table.skipped == WASTED
    assert gamma.costs.draft_step_s == pytest.approx(0.015)
    assert isinstance(draft, LayerSkipping)


@pytest.mark.parametrize("by", [-2, -1, 1, 2])
def test_the_best_run_need_not_lie_in_the_middle(by: int) -> None:
    draft = Toy(wasted=tuple(layer + by for layer in WASTED))
    choose(draft, costs())
    assert draft.skipped == draft.wasted


def test_more_is_left_out_where_it_costs_little_agreement() -> None:
    draft = Toy(each=0.995)
    choose(draft, costs())
    assert set(WASTED) < set(draft.skipped)
    assert len(draft.skipped) > LAYERS // 2


def test_the_rate_is_that_of_gammas_arithmetic() -> None:
    table = costs()
    for one in candidates(Toy(), list(range(129)), 372, table):
        assert one.step_s == pytest.approx(0.001 * (LAYERS - len(one.skipped)))
        by_hand = max(
            sum(one.agreement**i for i in range(k + 1)) / (k * one.step_s + table.target(k + 1)) for k in range(1, 17)
        )
        assert one.rate == pytest.approx(by_hand)
        assert one.rate == best_rate(one.agreement, one.step_s, table)


def test_the_same_counts_choose_the_same_layers() -> None:
    assert len({choose(draft, costs())[0] and draft.skipped for draft in (Toy(0.9) for _ in range(3))}) == 1


def test_the_last_tokens_of_the_answer_alone_are_read() -> None:
    draft = Toy()
    choose(draft, costs())
    assert set(draft.read) == {(500 - READ, READ)}
    short = Toy()
    choose(short, costs(), n_prompt=450)
    assert set(short.read) == {(449, 51)}


def test_no_pass_is_made_where_no_set_can_pay() -> None:
    """Every token of a pass costs as much as the first: checking is no cheaper than writing."""
    draft = Toy()
    changed, _, choice = choose(draft, costs(more_s=0.020))
    assert (changed, draft.read, draft.skipped) == (False, [], first_choice(LAYERS))
    assert choice.wanted == MORE_TEXT


def test_it_waits_for_enough_text_and_for_the_target_to_have_read_it() -> None:
    draft, choice, gamma = Toy(), LayerChoice(Toy()), Gamma(costs())
    choice.draft = draft
    committed = list(range(501))
    choice.see(LEAST_TEXT - 1)
    assert not choice.choose(committed, 300, gamma, lambda: False)
    choice.see(1)
    assert not choice.choose([*committed, 1, 2], 300, gamma, lambda: False)
    assert not choice.choose(committed, 501, gamma, lambda: False)
    assert draft.read == []
    assert choice.choose(committed, 300, gamma, lambda: False)
    reads = len(draft.read)
    choice.see(MORE_TEXT - 1)
    assert not choice.choose(committed, 300, gamma, lambda: False)
    choice.see(1)
    assert not choice.choose(committed, 300, gamma, lambda: False)  # the same set again
    assert len(draft.read) > reads


def test_a_request_ends_it_and_it_begins_anew_later() -> None:
    draft = Toy()
    changed, gamma, choice = choose(draft, costs(), stop=lambda: True)
    assert (changed, draft.skipped, len(draft.read)) == (False, first_choice(LAYERS), 1)
    assert choice.choose(list(range(501)), 300, gamma, lambda: False)


def test_what_was_learned_of_the_old_set_is_forgotten_with_it() -> None:
    gamma, choice = Gamma(costs()), LayerChoice(Toy(), wanted=0)
    old = gamma.model
    choice.choose(list(range(501)), 300, gamma, lambda: False)
    assert gamma.model is not old
    kept = gamma.model
    choice.wanted = 0
    choice.choose(list(range(501)), 300, gamma, lambda: False)
    assert gamma.model is kept

"""Where a draft of the model ends, and whether prompt lookup goes on behind it."""

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from specengine.acceptance import AcceptanceEstimate
from specengine.costs import GRID
from specengine.growth import BestRateGrowth, SureGrowth

FLAT: Final = [0.01 * (1 + 0.01 * width) for width in GRID]
RISING: Final = [0.01 * (0.7 + 0.3 * width) for width in GRID]
STEEP: Final = [0.01 * width for width in GRID]


def growth(
    target_s: list[float] = FLAT, step: float = 0.3, plain: float = 1.0, recent: float = 0.8, most: int = 16
) -> BestRateGrowth:
    """`step` in passes of one token; `plain` is the rate to beat, in that of plain decoding."""
    widths_s, step_s = np.interp(np.arange(1, 129), GRID, target_s), step * target_s[0]
    model = AcceptanceEstimate((0.5,), (recent, recent), 1e9, recent)
    lookup = AcceptanceEstimate((2, 4, 8), (0.2, 0.5, 0.8, 0.95), 1e9, 0.5)
    rounds_s = [float(widths_s[k]) + k * step_s for k in range(most + 1)]
    return BestRateGrowth(model, [1.0] * most, plain / target_s[0], lookup, step_s, rounds_s, widths_s[1:])


def match(length: int, tokens: int) -> list[float]:
    return [float(length + i) for i in range(tokens)]


def test_a_long_match_behind_the_drawn_tokens_is_taken_whole_where_width_is_cheap() -> None:
    assert growth().copies([0.8, 0.8], match(10, 60)) == 60


def test_of_a_long_match_no_more_is_taken_than_its_width_is_worth() -> None:
    assert 5 < growth(RISING).copies([0.8, 0.8], match(10, 60)) < 20
    assert growth(STEEP).copies([0.8, 0.8], match(10, 60)) == 0


def test_no_more_is_taken_than_the_round_has_room_for() -> None:
    made = growth()
    short = replace(made, widths_s=made.widths_s[:10])
    assert [short.copies([0.8] * drawn, match(10, 60)) for drawn in (2, 9, 10)] == [8, 1, 0]


def test_without_a_match_nothing_is() -> None:
    assert growth().copies([0.8], []) == 0


def test_a_doubtful_match_waits_for_another_token_of_a_cheap_draft_model() -> None:
    """That token says whether the match is right, before a wide pass is spent on it; where a step of the draft model is
    dear, the pass is the cheaper way to find out."""
    assert growth(step=0.1).copies([0.8, 0.8], match(2, 60)) == 0
    assert growth(step=0.9).copies([0.8, 0.8], match(2, 60)) > 0


def test_a_draft_model_that_may_draw_no_more_leaves_the_rest_to_lookup() -> None:
    assert growth(step=0.1, most=2).copies([0.8, 0.8], match(2, 60)) > 0


@pytest.mark.parametrize("tokens", [1, 2, 60])
def test_what_is_taken_is_what_brings_most(tokens: int) -> None:
    made = growth(plain=2.0)
    chances = np.cumprod(made.lookup.probabilities(match(6, tokens)))
    reach = 0.8**2
    surplus = [
        1 + 0.8 + reach + reach * float(chances[:count].sum())
        - made.rate * (2 * made.step_s + float(made.widths_s[1 + count]))
        for count in range(1, tokens + 1)
    ]  # fmt: skip
    taken = made.copies([0.8, 0.8], match(6, tokens))
    assert taken in (0, 1 + int(np.argmax(surplus)))
    assert tokens < 60 or taken > 0


def test_a_probe_copies_nothing() -> None:
    assert SureGrowth(0.8).copies([0.9], match(10, 60)) == 0

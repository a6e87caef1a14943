"""Estimates of acceptance: what is learned, what was never seen, and how fast old text is forgotten."""

import numpy as np
import pytest

from specengine.acceptance import AcceptanceEstimate, lookup_estimate, model_estimate


def estimate() -> AcceptanceEstimate:
    """Three bins of evidence with first guesses 0.2, 0.5 and 0.8."""
    return AcceptanceEstimate(edges=(1, 2), prior=(0.2, 0.5, 0.8), strength=4.0, first_mean=0.5)


def test_before_anything_is_seen_the_first_guesses_hold() -> None:
    assert list(estimate().probabilities([0.5, 1, 1.5, 2, 9])) == [0.2, 0.5, 0.5, 0.8, 0.8]
    assert [estimate().probability(evidence) for evidence in (0.5, 1, 1.5, 2, 9)] == [0.2, 0.5, 0.5, 0.8, 0.8]


def test_an_accepted_token_raises_its_bin_and_a_rejected_one_lowers_it() -> None:
    up, down = estimate(), estimate()
    up.observe([1.5], [7], [7])
    down.observe([1.5], [7], [8])
    assert up.probability(1.5) > 0.5 > down.probability(1.5)
    assert (up.probability(0), up.probability(3)) == (0.2, 0.8)
    assert up.recent > 0.5 > down.recent


def test_tokens_behind_a_rejected_one_were_not_seen() -> None:
    seen, censored = estimate(), estimate()
    seen.observe([0.5, 1.5], [1, 2], [1, 9])
    censored.observe([0.5, 1.5, 3, 0.5], [1, 2, 3, 4], [1, 9, 3, 4])
    for evidence in (0.5, 1.5, 3):
        assert censored.probability(evidence) == seen.probability(evidence)
    assert censored.recent == seen.recent


def test_tokens_beyond_what_was_emitted_were_not_seen() -> None:
    one, many = estimate(), estimate()
    one.observe([0.5], [1], [1])
    many.observe([0.5, 3, 3, 3], [1, 2, 2, 2], [1])
    assert many.probability(3) == 0.8
    assert many.probability(0.5) == one.probability(0.5)


def test_a_proposal_that_was_not_verified_is_scored_like_one_that_was() -> None:
    silent = estimate()
    silent.observe([3, 3], [5, 6], [5])
    assert silent.probability(3) > 0.8


@pytest.mark.parametrize("rate", [0.1, 0.6, 0.95])
def test_a_steady_rate_is_found(rate: float) -> None:
    learned = estimate()
    for hit in np.random.default_rng(1).random(2000) < rate:
        learned.observe([1.5], [1], [1 if hit else 2])
    assert learned.probability(1.5) == pytest.approx(rate, abs=0.12)


def test_what_changed_is_believed_within_some_dozens_of_tokens() -> None:
    learned = estimate()
    for _ in range(1000):
        learned.observe([1.5], [1], [1])
    assert learned.probability(1.5) > 0.99
    for _ in range(70):
        learned.observe([1.5], [1], [2])
    assert learned.probability(1.5) < 0.4
    assert learned.recent < 0.05


@pytest.mark.parametrize("first", [lookup_estimate(), model_estimate()], ids=["lookup", "model"])
def test_first_guesses_rise_with_the_evidence(first: AcceptanceEstimate) -> None:
    guesses = first.probabilities(list(np.linspace(0, 1, 50)) + list(range(2, 200)))
    assert (np.diff(guesses) >= 0).all()
    assert 0 < guesses[0] < guesses[-1] < 1


def test_long_matches_are_trusted_from_the_start() -> None:
    assert lookup_estimate().probability(32) > 0.95
    assert lookup_estimate().probability(2) < 0.5
    assert lookup_estimate().probability(0) < 0.2

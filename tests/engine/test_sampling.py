"""Sampling against a reference by the book, its edges, and the race against the probabilities it should have."""

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from specengine.draft import Distribution
from specengine.errors import EngineError
from specengine.noise import Noise
from specengine.sampling import choose, distribution, race, top_probability
from specengine.settings import Sampling
from toy import Row, reference

PLAIN = Sampling(temperature=1, top_k=0, top_p=1)
INF = float("inf")

logits = st.one_of(
    st.floats(-30, 30, width=32),
    st.sampled_from([-INF, -2.0, 0.0, 0.5, 1.0, 1.0, 3.0]),
)
small_rows = st.lists(logits, min_size=1, max_size=40).map(lambda values: np.array(values, dtype=np.float32))


@st.composite
def wide_rows(draw: st.DrawFn) -> Row:
    """Thousands of logits, so that bounds and widening come into play; many equal ones where they are rounded."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    row = rng.normal(0, draw(st.sampled_from([0.01, 1.0, 3.0])), draw(st.sampled_from([2047, 2048, 5000])))
    if draw(st.booleans()):
        row = np.round(row * 2) / 2
    if draw(st.booleans()):
        row[rng.random(len(row)) < 0.97] = -INF
    if draw(st.booleans()):
        row.sort()
    return row.astype(np.float32)


samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([1e-6, 0.1, 0.7, 1.0, 1.0, 2.0, 100.0]),
    top_k=st.sampled_from([0, 1, 2, 3, 20, 700, 2**31]),
    top_p=st.sampled_from([1.0, 0.999, 0.9, 0.8, 0.5, 0.1, 1e-9]),
    min_p=st.sampled_from([0.0, 5e-324, 1e-9, 0.01, 0.1, 0.5, 1.0]),
    repetition_penalty=st.sampled_from([1.0, 1.1, 3.0, 0.7]),
    frequency_penalty=st.sampled_from([0.0, 0.4, -0.4]),
    presence_penalty=st.sampled_from([0.0, 0.6, -0.6]),
    penalty_window=st.sampled_from([0, 1, 4, 64, 2**31]),
)
histories = st.lists(st.integers(0, 50), max_size=80)


def row_of(*values: float) -> Row:
    return np.array(values, dtype=np.float32)


def dense(dist: Distribution, size: int) -> npt.NDArray[np.float64]:
    probabilities = np.zeros(size)
    probabilities[dist.ids] = dist.probs
    return probabilities


@settings(deadline=None, derandomize=True, max_examples=250)
@given(st.one_of(small_rows, wide_rows()), histories, samplings)
def test_a_distribution_is_what_the_reference_says(row: Row, history: list[int], sampling: Sampling) -> None:
    assume(np.isfinite(row).any())
    expected = reference(row, history, sampling)
    assume(expected.margin > 1e-9)
    before = row.copy()
    row.setflags(write=False)
    dist = distribution(row, history, sampling)
    assert np.array_equal(row, before)
    assert (np.diff(dist.ids) > 0).all()
    assert (dist.probs > 0).all()
    assert dist.probs.sum() == pytest.approx(1, abs=1e-12)
    assert dense(dist, len(row)) == pytest.approx(expected.probabilities, rel=1e-9, abs=1e-280)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.one_of(small_rows, wide_rows()), histories, samplings, st.integers(0, 1000))
def test_greedy_takes_the_largest_penalised_logit_and_the_lowest_id_of_equals(
    row: Row, history: list[int], sampling: Sampling, position: int
) -> None:
    assume(np.isfinite(row).any())
    greedy = replace(sampling, temperature=0)
    # At top-k 1 the reference keeps the largest logit and the lowest id.
    only = reference(row, history, replace(sampling, temperature=1, top_k=1, top_p=1, min_p=0))
    assert choose(row, history, greedy, Noise(1), position) == only.probabilities.argmax()


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.one_of(small_rows, wide_rows()), histories, samplings, st.integers(0, 1000))
def test_a_choice_is_the_race_over_the_distribution(
    row: Row, history: list[int], sampling: Sampling, position: int
) -> None:
    assume(np.isfinite(row).any())
    noise = Noise(8)
    dist = distribution(row, history, sampling)
    assert choose(row, history, sampling, noise, position) == race(dist, noise, position)


@pytest.mark.parametrize("probs", [(0.5, 0.3, 0.15, 0.05), (0.98, 0.01, 0.01)])
def test_a_race_is_won_with_the_probability_of_the_token(probs: tuple[float, ...]) -> None:
    ids = np.array([2, 30, 31, 150_000])[: len(probs)]
    dist = Distribution(ids, np.array(probs))
    wins = Counter(race(dist, Noise(1), position) for position in range(20_000))
    assert stats.chisquare([wins[int(token)] for token in ids], np.array(probs) * 20_000).pvalue > 1e-3


def test_a_race_over_a_whole_vocabulary_follows_it() -> None:
    row = np.random.default_rng(0).normal(0, 2, 3000).astype(np.float32)
    p = reference(row, (), PLAIN).probabilities
    tenths = np.minimum((np.cumsum(p) * 10).astype(int), 9)
    wins = Counter(tenths[choose(row, (), PLAIN, Noise(seed), 5)] for seed in range(5000))
    expected = np.bincount(tenths, weights=p) * 5000
    assert stats.chisquare([wins[tenth] for tenth in range(10)], expected).pvalue > 1e-3


def test_equal_logits_at_the_end_of_top_k_stay_by_lowest_id() -> None:
    row = row_of(1, 2, 1, 3, 1, 1)
    assert distribution(row, (), replace(PLAIN, top_k=4)).ids.tolist() == [0, 1, 2, 3]
    assert distribution(np.zeros(100_000, np.float32), (), replace(PLAIN, top_k=3)).ids.tolist() == [0, 1, 2]


def test_equal_logits_at_the_end_of_top_p_stay_by_lowest_id() -> None:
    assert distribution(row_of(0, 0, 0, 0), (), replace(PLAIN, top_p=0.5)).ids.tolist() == [0, 1]
    assert distribution(row_of(0, 0, 0, 0), (), replace(PLAIN, top_p=0.51)).ids.tolist() == [0, 1, 2]
    flat = distribution(np.zeros(100_000, np.float32), (), replace(PLAIN, top_p=0.25))
    assert flat.ids.tolist() == list(range(25_000))


def test_top_p_includes_the_token_that_crosses_it() -> None:
    row = np.log(row_of(0.5, 0.3, 0.2))
    assert distribution(row, (), replace(PLAIN, top_p=0.49)).ids.tolist() == [0]
    assert distribution(row, (), replace(PLAIN, top_p=0.51)).ids.tolist() == [0, 1]
    assert distribution(row, (), replace(PLAIN, top_p=0.81)).ids.tolist() == [0, 1, 2]


def test_top_p_counts_what_top_k_left_as_the_whole() -> None:
    row = np.log(row_of(0.4, 0.3, 0.3))
    assert distribution(row, (), replace(PLAIN, top_p=0.5)).ids.tolist() == [0, 1]
    assert distribution(row, (), replace(PLAIN, top_p=0.5, top_k=2)).ids.tolist() == [0]


def test_min_p_is_measured_after_temperature_and_against_the_most_likely_token() -> None:
    row = np.log(row_of(0.5, 0.3, 0.2))
    assert distribution(row, (), replace(PLAIN, min_p=0.5)).ids.tolist() == [0, 1]
    assert distribution(row, (), replace(PLAIN, min_p=0.5, temperature=0.5)).ids.tolist() == [0]


@pytest.mark.parametrize("temperature", [0.3, 1, 2.7])
@pytest.mark.parametrize("min_p", [0.05, 0.3, 0.999, 1])
def test_min_p_alone_cuts_a_fine_ladder_at_the_right_rung(temperature: float, min_p: float) -> None:
    row = np.linspace(-10, 12, 3000, dtype=np.float32)
    sampling = replace(PLAIN, temperature=temperature, min_p=min_p)
    kept = np.flatnonzero(reference(row, (), sampling).probabilities)
    assert distribution(row, (), sampling).ids.tolist() == kept.tolist()


def test_masked_tokens_never_come_up() -> None:
    row = row_of(-INF, 1, -INF, 1)
    assert distribution(row, (), PLAIN).ids.tolist() == [1, 3]
    assert distribution(row, (), replace(PLAIN, top_k=3)).ids.tolist() == [1, 3]
    wide = np.full(5000, -INF, dtype=np.float32)
    wide[4999] = -3
    assert distribution(wide, (), Sampling()).ids.tolist() == [4999]


@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 5e-324])
def test_the_lowest_temperatures_take_the_largest_logit_without_a_warning(temperature: float) -> None:
    with np.errstate(all="raise", under="ignore"):
        dist = distribution(row_of(-30, 29.5, 30, -INF), (), replace(PLAIN, temperature=temperature))
    assert dist.ids.tolist() == [2]
    assert dist.probs.tolist() == [1]


def test_penalties_count_occurrences_inside_the_window_alone() -> None:
    row = row_of(0, 0, 0, 0)
    sampling = replace(PLAIN, frequency_penalty=np.log(2), presence_penalty=np.log(3), penalty_window=3)
    dist = distribution(row, [0, 0, 1, 2, 1], sampling)
    weights = np.array([1, 1 / 12, 1 / 6, 1])
    assert dist.probs == pytest.approx(weights / weights.sum(), rel=1e-6)


def test_the_repetition_penalty_applies_once_and_lowers_negative_logits_too() -> None:
    sampling = replace(PLAIN, repetition_penalty=2)
    dist = distribution(row_of(2, -1, 0, 2), [0, 0, 0, 1, 2], sampling)
    weights = np.exp([1, -2, 0, 2])
    assert dist.probs == pytest.approx(weights / weights.sum(), rel=1e-6)


def test_a_history_may_hold_tokens_beyond_the_rows_vocabulary() -> None:
    sampling = replace(PLAIN, repetition_penalty=2)
    assert distribution(row_of(1, 1), [7, 0], sampling).probs[0] < 0.5
    assert distribution(row_of(1, 1), [7], sampling).probs.tolist() == [0.5, 0.5]


def test_greedy_without_penalties_reads_the_row_in_place() -> None:
    row = row_of(1, 3, 3)
    row.setflags(write=False)
    assert choose(row, [1, 1], replace(PLAIN, temperature=0), Noise(0), 0) == 1


@settings(deadline=None, derandomize=True)
@given(st.one_of(small_rows, wide_rows()))
def test_top_probability_is_the_largest_of_the_softmax(row: Row) -> None:
    assume(np.isfinite(row).any())
    assert top_probability(row) == pytest.approx(reference(row, (), PLAIN).probabilities.max(), rel=1e-4)


@pytest.mark.parametrize("temperature", [0, 0.7])
@pytest.mark.parametrize("top_k", [0, 2])
@pytest.mark.parametrize(
    ("row", "found"),
    [
        (row_of(1, float("nan"), 2), "contains values that are not numbers"),
        (row_of(1, INF, 2), "contains values that are not numbers"),
        (row_of(-INF, -INF, -INF), "rules out every token"),
    ],
)
def test_logits_that_say_nothing_are_an_error(row: Row, found: str, temperature: float, top_k: int) -> None:
    with pytest.raises(EngineError, match=found):
        choose(row, (), Sampling(temperature=temperature, top_k=top_k), Noise(0), 0)
    with pytest.raises(EngineError, match=found):
        top_probability(row)

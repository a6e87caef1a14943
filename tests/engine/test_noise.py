"""The noise: a good random number for each (seed, stream, position, id), and the same one every time."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specengine.noise import Noise

IDS = np.arange(50_000)
BITS = 52
"""Random bits in a variate."""


def _bits(variates: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """The random bits that variates were made of, to within rounding in the last few."""
    return (np.exp(-variates) * 2.0**BITS).astype(np.uint64)


def _flips(noise: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How often each of the upper 40 bits differs."""
    difference = _bits(noise) ^ _bits(other)
    return np.array([np.mean(difference >> np.uint64(bit) & np.uint64(1)) for bit in range(BITS - 40, BITS)])


def test_equal_keys_give_equal_variates_whatever_else_is_asked() -> None:
    whole = Noise(5).exponentials(9, IDS)
    some = np.array([40_000, 3, 17, 16_384])
    assert np.array_equal(Noise(5).exponentials(9, some), whole[some])
    assert Noise(5).uniform(9) == Noise(5).uniform(9)


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 2**32 - 2), max_size=3),
    st.integers(0, 2**63),
    st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50),
)
def test_every_variate_is_finite_and_positive(seed: int, forks: list[int], position: int, ids: list[int]) -> None:
    noise = Noise(seed)
    for fork in forks:
        noise = noise.fork(fork)
    variates = noise.exponentials(position, np.array(ids))
    assert np.isfinite(variates).all()
    assert (variates > 0).all()
    assert 0 < noise.uniform(position) < 1


def test_the_extreme_hashes_stay_inside_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    extremes = np.array([0, 2**64 - 1], dtype=np.uint64)
    monkeypatch.setattr("specengine.noise._hash", lambda ids, key: extremes[ids])
    largest, smallest = Noise(0).exponentials(0, np.array([0, 1]))
    assert 1e-16 < smallest < largest < 37


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("position", [0, 1, 4096])
def test_variates_over_ids_are_exponential(seed: int, position: int) -> None:
    assert stats.kstest(Noise(seed).exponentials(position, IDS), "expon").pvalue > 1e-3


def test_variates_of_one_id_over_positions_seeds_and_forks_are_exponential() -> None:
    one = np.array([42])
    over = {
        "positions": [Noise(7).exponentials(position, one)[0] for position in range(10_000)],
        "seeds": [Noise(seed).exponentials(7, one)[0] for seed in range(10_000)],
        "forks": [Noise(7).fork(stream).exponentials(7, one)[0] for stream in range(10_000)],
    }
    for values in over.values():
        assert stats.kstest(values, "expon").pvalue > 1e-3


def test_uniforms_are_uniform_and_independent_of_the_exponentials_beside_them() -> None:
    noise = Noise(3)
    uniforms = np.array([noise.uniform(position) for position in range(10_000)])
    beside = np.array([noise.exponentials(position, IDS[:1])[0] for position in range(10_000)])
    assert stats.kstest(uniforms, "uniform").pvalue > 1e-3
    assert stats.spearmanr(uniforms, beside).pvalue > 1e-3


@pytest.mark.parametrize("bit", range(64))
def test_one_changed_bit_of_a_key_flips_each_bit_of_the_variates_half_the_time(bit: int) -> None:
    ids, one = IDS[:4000], 1 << bit
    base = Noise(11).exponentials(13, ids)
    changed = [Noise(11 ^ one).exponentials(13, ids), Noise(11).exponentials(13 ^ one, ids)]
    if bit < 63:
        changed.append(Noise(11).exponentials(13, ids ^ np.int64(one)))
    if bit < 32:
        changed.append(Noise(11).fork(one).exponentials(13, ids))
    for other in changed:
        # 5 standard deviations of the mean of 4,000 coins
        assert np.abs(_flips(base, other) - 0.5).max() < 5 * 0.5 / np.sqrt(len(ids))


def test_neighbouring_seeds_positions_forks_and_ids_are_independent() -> None:
    keys = [Noise(seed) for seed in range(4)] + [Noise(0).fork(stream) for stream in range(4)]
    series = [noise.exponentials(position, IDS) for noise in keys for position in range(4)]
    series.append(np.roll(series[0], 1))
    correlation = np.corrcoef([np.log(values) for values in series])
    apart = correlation[~np.eye(len(series), dtype=bool)]
    assert np.abs(apart).max() < 5 / np.sqrt(len(IDS))


def test_pairs_of_neighbours_fill_the_square_evenly() -> None:
    noise = Noise(1)
    rows = [np.exp(-noise.exponentials(position, IDS)) for position in range(3)]
    pairs = [*pairwise(rows), (rows[0][:-1], rows[0][1:])]
    for x, y in pairs:
        counts = np.histogram2d(x, y, bins=16, range=[(0, 1), (0, 1)])[0]
        assert stats.chisquare(counts.ravel()).pvalue > 1e-3


def test_no_path_of_forks_meets_another() -> None:
    root = Noise(0)
    paths = [root]
    for _ in range(3):
        paths = [root] + [noise.fork(stream) for noise in paths for stream in (0, 1, 2, 2**32 - 2)]
    assert len({noise.stream for noise in paths}) == len(set(map(id, paths)))
    assert len({noise.uniform(0) for noise in paths}) == len(paths)


@pytest.mark.parametrize("stream", [-1, 2**32 - 1])
def test_a_fork_out_of_range_is_refused(stream: int) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 4294967294"):
        Noise(0).fork(stream)

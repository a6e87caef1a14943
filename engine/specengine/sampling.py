"""How a row of logits becomes a token: penalties, temperature, top-k, top-p, min-p, then a seeded race.

The race (the Gumbel-max trick in exponential form) takes argmax_x p(x) / e(x) with independent Exp(1) variates e, so
that x wins with probability p(x). As e depends on seed, position and token alone, so does the winner for a given p.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from specengine.draft import Distribution
from specengine.errors import EngineError
from specengine.noise import Noise
from specengine.settings import Sampling

Row = npt.NDArray[np.float32]
"""Logits of one position, shape (vocabulary size,). Never written to: it may be the backend's own memory."""
_Ids = npt.NDArray[np.int64]
_Weights = npt.NDArray[np.float64]

_LEAST = 1e-300
"""A token this much less likely than the most likely one is out: its probability would round to 0 on the way."""
_FIRST_NUCLEUS = 256
"""How many tokens a search for the top-p set looks at first; eight times as many at every further try."""


def choose(row: Row, history: Sequence[int], sampling: Sampling, noise: Noise, position: int) -> int:
    """The token that `row` yields at the absolute `position`, after all the tokens of `history`.

    Raises:
        EngineError: the logits are not numbers, or rule out every token.
    """
    if not sampling.greedy:
        return race(distribution(row, history, sampling), noise, position)
    logits = _penalised(row, history, sampling)
    best = int(logits.argmax())
    _check(float(logits[best]))
    return best


def distribution(row: Row, history: Sequence[int], sampling: Sampling) -> Distribution:
    """What is left of `row` after all processing, for a temperature above 0.

    `history` holds the tokens before this row; the last `penalty_window` of them count. Where equal logits meet the end
    of top-k or top-p, the lower ids stay.

    Raises:
        EngineError: the logits are not numbers, or rule out every token.
    """
    logits = _penalised(row, history, sampling)
    peak = float(logits.max())
    _check(peak)
    ids = _candidates(logits, peak, sampling)
    if len(ids) < len(logits):
        logits = logits[ids]
    weights = _weights(logits, peak, sampling.temperature)
    if sampling.top_p < 1:
        kept = _nucleus(logits, weights, sampling.top_p)
        ids, weights = ids[kept], weights[kept]
    floor = max(sampling.min_p, _LEAST)
    if weights.min() < floor:
        kept = np.flatnonzero(weights >= floor)
        ids, weights = ids[kept], weights[kept]
    weights /= weights.sum()
    return Distribution(ids, weights)


def race(dist: Distribution, noise: Noise, position: int) -> int:
    """argmax_x p(x) / e(seed, position, x): a token drawn from `dist`, the lowest id on ties."""
    times = noise.exponentials(position, dist.ids)
    np.divide(dist.probs, times, out=times)
    return int(dist.ids[times.argmax()])


def top_probability(row: Row) -> float:
    """The largest softmax probability at temperature 1, without penalties.

    Raises:
        EngineError: the logits are not numbers, or rule out every token.
    """
    peak = row.max()
    _check(float(peak))
    return 1 / float(np.exp(row - peak).sum())


def _penalised(row: Row, history: Sequence[int], sampling: Sampling) -> Row:
    """`row` itself where nothing is penalised, else a copy."""
    if not sampling.penalised:
        return row
    occurrences = Counter(history[-sampling.penalty_window :])
    # A target may have tokens that its draft model lacks.
    seen = [token for token in occurrences if token < len(row)]
    counts = np.array([occurrences[token] for token in seen])
    values = row[seen].astype(np.float64)
    values = np.where(values > 0, values / sampling.repetition_penalty, values * sampling.repetition_penalty)
    logits = row.copy()
    logits[seen] = values - counts * sampling.frequency_penalty - sampling.presence_penalty
    return logits


def _check(peak: float) -> None:
    if not np.isfinite(peak):
        found = "rules out every token" if peak == -np.inf else "contains values that are not numbers"
        raise EngineError(
            f"The model's output {found}; its file may be damaged. Pull it again or choose another model."
        )


def _candidates(logits: Row, peak: float, sampling: Sampling) -> _Ids:
    """Ids of the top-k tokens; else of all, less those sure to fail min-p if top-p doesn't need their weights."""
    if 0 < sampling.top_k < len(logits):
        return _largest(logits, sampling.top_k)
    if sampling.min_p > 0 and sampling.top_p == 1:
        # A little below the edge, for rounding; compared in float64, for temperatures near 0.
        return np.flatnonzero(logits >= np.float64(peak + sampling.temperature * (math.log(sampling.min_p) - 1)))
    return np.arange(len(logits))


def _weights(logits: Row, peak: float, temperature: float) -> _Weights:
    """exp((logit − peak) / T): 1 for the most likely token, 0 where that is too small to tell from 0."""
    weights = np.subtract(logits, peak, dtype=np.float64)
    if temperature != 1:
        with np.errstate(over="ignore"):  # to −inf, at the lowest temperatures
            weights /= temperature
    return np.exp(weights, out=weights)


def _nucleus(logits: Row, weights: _Weights, top_p: float) -> _Ids:
    """Indices of the fewest largest logits whose weights reach the share `top_p` of all weights (Holtzman 2020)."""
    needed = top_p * weights.sum()
    count = _FIRST_NUCLEUS
    while True:
        largest = _largest(logits, count)
        reached = np.cumsum(np.sort(weights[largest])[::-1])
        if reached[-1] >= needed or count >= len(logits):
            crossing = int(np.searchsorted(reached, needed))
            return largest[_largest(logits[largest], crossing + 1)]
        count *= 8


def _largest(logits: Row, count: int) -> _Ids:
    """Indices, increasing, of the `count` largest logits; of equal ones the first."""
    if count >= len(logits):
        return np.arange(len(logits))
    candidates = np.flatnonzero(logits >= _lower_bound(logits, count))
    values = logits[candidates]
    if len(candidates) > count:
        cutoff = np.partition(values, -count)[-count]
        above = values > cutoff
        ties = np.flatnonzero(values == cutoff)[: count - np.count_nonzero(above)]
        above[ties] = True
        candidates = candidates[above]
    return candidates


def _lower_bound(logits: Row, count: int) -> np.float32:
    """A value that at least `count` logits reach and few others do.

    Deals the logits out to groups; as `count` groups have their maximum at or above the `count`-th largest maximum, so
    many logits lie there.
    """
    groups = max(1024, 8 * count)
    if groups * 2 > len(logits):
        return np.float32(np.partition(logits, -count)[-count])
    rounds = len(logits) // groups
    maxima = logits[: rounds * groups].reshape(rounds, groups).max(axis=0)
    return np.float32(np.partition(maxima, -count)[-count])

"""The seeded noise: random numbers that are a function of (seed, stream, position, token id) and of nothing else.

No state means that speculation can look at a position twice, skip it or come back to it without moving any other draw.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# The finaliser of SplitMix64 (Steele, Lea, Flood 2014) with the constants of Stafford's variant 13.
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_MASK = 2**64 - 1

_FORK_BITS = 32
_UNUSED_BITS = 12
"""The other 52, and a half so that neither 0 nor 1 comes up, are what a float64 holds exactly."""
_UNIT = 2.0**-52
_BLOCK = 16384
"""Ids hashed at a time, so that the many steps of one block stay in the processor's nearest caches."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Independent random variates for every (seed, stream, position, id)."""

    seed: int
    """0 to 2**64 − 1."""
    stream: int = 0
    """The path of forks that led here, each 32 bits wide; 0 is the root."""

    def fork(self, stream: int) -> "Noise":
        """A child that shares no variate with this noise or with any other fork of any depth.

        Raises:
            ValueError: `stream` is not in 0 … 2**32 − 2.
        """
        if not 0 <= stream < 2**_FORK_BITS - 1:
            raise ValueError(f"Noise can't fork into stream {stream}; it must lie between 0 and {2**_FORK_BITS - 2}.")
        # No part of the path is zero, so paths of different lengths differ too.
        return Noise(self.seed, self.stream << _FORK_BITS | stream + 1)

    def exponentials(self, position: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Exp(1) variates, one per token id, between 1e-16 and 37."""
        key = self._key(position)
        variates = np.empty(len(ids))
        for start in range(0, len(ids), _BLOCK):
            block = slice(start, start + _BLOCK)
            np.add(_hash(ids[block], key) >> _UNUSED_BITS, 0.5, out=variates[block])
        variates *= _UNIT
        np.log(variates, out=variates)
        return np.negative(variates, out=variates)

    def uniform(self, position: int) -> float:
        """One variate between 0 and 1, both excluded, independent of the exponentials."""
        bits = _mix(self._key(position) - _GOLDEN & _MASK)  # the hash of −1, which is no token
        return ((bits >> _UNUSED_BITS) + 0.5) * _UNIT

    def _key(self, position: int) -> int:
        state = 0
        for word in (self.seed, *_words(self.stream), position):
            state = _mix((state ^ word & _MASK) + _GOLDEN & _MASK)
        return state


def _hash(ids: npt.NDArray[np.int64], key: int) -> npt.NDArray[np.uint64]:
    """`_mix(id · golden ratio + key)`, elementwise."""
    bits = ids.astype(np.uint64)
    bits *= _GOLDEN
    bits += key
    bits ^= bits >> 30
    bits *= _FIRST
    bits ^= bits >> 27
    bits *= _SECOND
    bits ^= bits >> 31
    return bits


def _mix(state: int) -> int:
    state = (state ^ state >> 30) * _FIRST & _MASK
    state = (state ^ state >> 27) * _SECOND & _MASK
    return state ^ state >> 31


def _words(stream: int) -> Iterator[int]:
    """The 64-bit words of a stream's number, at least one."""
    yield stream & _MASK
    while stream := stream >> 64:
        yield stream & _MASK

"""A KV cache that is cut by forgetting a length.

The library's own growing cache copies everything for every token (`torch.cat`), and what its static one returns is as
long as the buffer, so that attention reads all of it. Here each layer writes into a buffer that doubles when it is
full and hands out a view of what is filled. Positions behind the length are overwritten before anything reads them.
"""

from collections.abc import Callable
from typing import Final

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from specengine.errors import Stopped

_FIRST_CAPACITY: Final = 512


class KvCache:
    """Keys and values of all layers, batch of one; `length` counts the tokens that are in."""

    def __init__(self, layers: int, limit: int, block: int = 1, whole: bool = False) -> None:
        """Args:
        layers: of the model.
        limit: most tokens that will ever be in.
        block: views are padded to multiples of it. What lies behind the tokens is finite, and for masks to hide.
        whole: buffers have their last size from the start, so that they never move.
        """
        self.length = 0
        self.ahead = 0
        """Positions behind the length that hold what a draft made of some of the layers; the next whole pass overwrites
        them."""
        self.beside = False
        """Whether the running pass keeps nothing: what it makes is handed out behind all that is in."""
        self.limit = limit
        self._block = block
        self._first = self.padded(limit) if whole else _FIRST_CAPACITY
        self.should_stop: Callable[[], bool] | None = None
        """Of the running pass."""
        self._layers = [_Layer(self) for _ in range(layers)]
        self.cache = Cache(layers=self._layers)
        """What the library's models take."""

    @property
    def end(self) -> int:
        """Where the next pass writes."""
        return self.length + self.ahead

    def ask(self) -> None:
        """Called by each layer of a pass.

        Raises:
            Stopped: the pass is to end here.
        """
        if self.should_stop is not None and self.should_stop():
            raise Stopped

    def drop(self) -> None:
        """Frees the buffers."""
        self.length = self.ahead = 0
        self._layers = []
        self.cache = Cache(layers=[])

    @property
    def ready(self) -> bool:
        """Whether a pass of the library's has made the buffers."""
        return all(layer.is_initialized for layer in self._layers)

    def reserve(self, positions: int) -> None:
        """Makes room for so many positions in buffers that are `ready`."""
        for layer in self._layers:
            layer.reserve(positions)

    def buffers(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of a layer, shape (1, KV heads, capacity, head dimension) each."""
        return self._layers[index].keys, self._layers[index].values

    def padded(self, length: int) -> int:
        """The positions of a view that holds `length` tokens."""
        return -(-length // self._block) * self._block

    def capacity(self, needed: int, present: int) -> int:
        """The size that a buffer of `present` positions grows to in order to hold `needed`."""
        size = max(present, self._first)
        while size < needed:
            size *= 2
        return min(size, self.padded(self.limit))


class _Layer(CacheLayerMixin):
    """Keys and values of one layer, shape (1, KV heads, capacity, head dimension) each."""

    is_sliding = False
    is_compileable = False
    is_croppable = True

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, owner: KvCache) -> None:
        super().__init__()
        self._owner = owner

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = _buffer(key_states, 0)
        self.values = _buffer(value_states, 0)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Writes behind the committed tokens, which stay; returns views of both together, padded.

        Raises:
            Stopped: the pass is to end here.
        """
        owner = self._owner
        owner.ask()
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = owner.end
        if owner.beside:
            held = self.keys[:, :, :start], self.values[:, :, :start]
            return torch.cat((held[0], key_states), 2), torch.cat((held[1], value_states), 2)
        end = start + key_states.shape[2]
        padded = owner.padded(end)
        self.reserve(padded)
        self.keys[:, :, start:end] = key_states
        self.values[:, :, start:end] = value_states
        return self.keys[:, :, :padded], self.values[:, :, :padded]

    def reserve(self, positions: int) -> None:
        if positions <= self.keys.shape[2]:
            return
        size = self._owner.capacity(positions, self.keys.shape[2])
        self.keys = _grown(self.keys, self._owner.end, size)
        self.values = _grown(self.values, self._owner.end, size)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._owner.padded(self._owner.end + query_length), 0

    def get_seq_length(self) -> int:
        return self._owner.end

    def get_max_cache_shape(self) -> int:
        return self._owner.limit

    def get_max_length(self) -> int:
        return self._owner.limit


def _buffer(states: torch.Tensor, size: int) -> torch.Tensor:
    return states.new_zeros((1, states.shape[1], size, states.shape[3]))


def _grown(buffer: torch.Tensor, filled: int, size: int) -> torch.Tensor:
    grown = _buffer(buffer, size)
    grown[:, :, :filled] = buffer[:, :, :filled]
    return grown

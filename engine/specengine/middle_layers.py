"""Runs of layers in the middle of a model, which it misses least when they are left out (`layer_skipping`)."""

from typing import Final

_SHARE: Final = 0.3


def first_choice(layers: int) -> tuple[int, ...]:
    """Which of so many layers are left out before any text is known."""
    return middle(layers, _SHARE)


def middle(layers: int, share: float) -> tuple[int, ...]:
    """So many layers, at least one, a little behind the middle where they are odd."""
    count = min(max(1, round(share * layers)), layers - 1)
    first = (layers - count + 1) // 2
    return tuple(range(first, first + count))

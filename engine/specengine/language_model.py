"""The contract between the engine and a runtime: one model, batch of one, a KV cache that can be cut."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]
"""Logits on the host, shape (rows, vocabulary size)."""


@dataclass(frozen=True, slots=True)
class FillInMiddle:
    """Ids of the tokens that mark the parts of a fill-in-the-middle prompt."""

    prefix: int
    suffix: int
    middle: int


class Vocabulary(Protocol):
    """Tokens and their texts."""

    size: int
    """Tokens, the padding ones of the model file included: the width of a row of logits."""
    bos: int | None
    """The begin-of-sequence id where the model wants one at the start of a raw prompt."""
    bos_text: str
    """What chat templates know as `bos_token`; empty if the model has none."""
    eos_text: str
    """What chat templates know as `eos_token`; empty if the model has none."""
    end_of_generation: frozenset[int]
    special: Mapping[str, int]
    """Text → id of every control and user-defined token: what plain text must never turn into."""
    control: frozenset[int]
    """Ids of the control tokens among `special`; they have no text of their own in an answer."""
    fill_in_middle: FillInMiddle | None

    def tokenize(self, text: str) -> list[int]:
        """Ids of plain text. The text of a control token stays text; that of a user-defined one does not
        (llama.cpp offers no way to ask for it), so callers cut such text apart first."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for in running text; empty for control tokens."""
        ...

    def name(self, token: int) -> str:
        """The token as the model file spells it, for comparing vocabularies and for messages."""
        ...


class LanguageModel(Protocol):
    """A loaded model with its KV cache, holding one sequence.

    `length` counts the tokens in the cache. Not thread-safe: one thread drives it.
    """

    vocabulary: Vocabulary
    n_ctx: int
    n_batch: int
    """Most tokens of one pass."""
    max_rows: int
    """Most positions scored in one pass, so the longest draft plus one."""
    chat_template: str | None
    """The Jinja source that the model file carries, if any."""
    refusal: str | None
    """Why this model can't roll back (recurrent state, …), so that speculation must stay off; None if it can."""

    @property
    def length(self) -> int: ...

    def forward(self, tokens: Sequence[int], rows: int, should_stop: Callable[[], bool] | None = None) -> Rows:
        """Appends `tokens` (1 to `n_batch`) to the cache and returns fp32 logits of the last `rows` positions.

        The array may be a view of the backend's own memory: it is valid until the next `forward`.
        `should_stop` is asked while the pass runs (prefill only: asking costs time).

        Raises:
            Stopped: `should_stop` returned true; the cache is as before, or empty where there is a `refusal`.
            EngineError: the pass failed or does not fit into `n_ctx`; the same holds for the cache.
        """
        ...

    def rollback(self, length: int) -> None:
        """Keeps the first `length` tokens of the cache.

        Raises:
            EngineError: the model can't (recurrent state, a wrapped window); `refusal` says why.
        """
        ...

    def close(self) -> None:
        """Frees the model; nothing else may be called afterwards."""
        ...


def spelled(vocabulary: Vocabulary, tokens: Iterable[int]) -> bytes:
    """The bytes of a run of tokens."""
    return b"".join(vocabulary.piece(token) for token in tokens)

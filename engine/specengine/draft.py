"""A draft: tokens that a source proposes to come next, what the source knows about them, and the plan it follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A probability distribution over the tokens that processing left in play.

    `ids` are strictly increasing token ids, `probs` their float64 probabilities (positive, summing to 1).
    """

    ids: npt.NDArray[np.int64]
    probs: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens d_1..d_n proposed to follow the committed ones."""

    source: str
    """"lookup" or "draft" (the draft model); "none" for the empty draft."""
    tokens: tuple[int, ...] = ()
    evidence: tuple[float, ...] = ()
    """Per token, what was known of its quality before drawing it: match length, or the draft's top probability."""
    copied: tuple[float, ...] = ()
    """Match lengths of the last tokens, if prompt lookup went on behind those that a draft model drew; `evidence` is
    then of the drawn ones alone."""
    q: tuple[Distribution, ...] | None = None
    """The distribution that each token was drawn from, where verification needs it (maximal coupling);
    None for deterministic drafts (one-hot q) and under shared noise."""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def drawn(self) -> int:
        """Tokens of its source, those in front of what was copied."""
        return len(self.tokens) - len(self.copied)

    def first(self, count: int) -> "Draft":
        """The draft cut to its first `count` tokens. Only for deterministic drafts: dropping drawn tokens is biased."""
        return Draft(self.source, self.tokens[:count], self.evidence[:count])

    def followed_by(self, copy: "Draft") -> "Draft":
        """The draft with a deterministic one behind it, which may depend on the tokens drawn: where it is verified they
        were accepted, so that its q is one-hot whatever the text was."""
        q = None if self.q is None else (*self.q, *(_certain(token) for token in copy.tokens))
        return Draft(self.source, (*self.tokens, *copy.tokens), self.evidence, copy.evidence, q)


def _certain(token: int) -> Distribution:
    return Distribution(np.array([token], np.int64), np.ones(1))


NOTHING = Draft("none")


class Growth(Protocol):
    """Decides, token by token, how far a draft model goes, and whether prompt lookup takes over. Asked before each
    draw, never about a drawn token, so that it biases no coupling (`verify`)."""

    def runs_on(self, evidence: Sequence[float]) -> bool:
        """Whether another draft pass is worth its time, given the evidence of the tokens drawn so far."""
        ...

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        """Whether a next token of this confidence is worth verifying behind those drawn so far."""
        ...

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:
        """How many of the tokens that prompt lookup would go on with, after matches of these lengths, are worth
        verifying behind those drawn so far; the draft ends with them. 0 leaves it to the draft model."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What gamma wants drafted in this round."""

    source: str = "none"
    limit: int = 0
    """Most tokens; 0 means a plain round."""
    growth: Growth | None = None
    """For a draft model: when to stop before the limit; None goes to the limit."""
    probe: bool = False
    """The draft is not expected to pay; it is drafted to learn whether it would."""


PLAIN = Plan()

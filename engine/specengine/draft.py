"""A draft: tokens that a source proposes to come next, with what the source knows about them."""

from dataclasses import dataclass

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
    q: tuple[Distribution, ...] | None = None
    """The distribution that each token was drawn from, where verification needs it (maximal coupling);
    None for deterministic drafts (one-hot q) and under shared noise."""

    def __len__(self) -> int:
        return len(self.tokens)


NOTHING = Draft("none")

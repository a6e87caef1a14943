"""Which tokens of a draft stand: the one place where acceptance is decided, and its counterpart, drawing a draft.

Two couplings of draft and target make every emitted token follow the target's distribution exactly:

*Shared noise*: draft and target race against the same noise; the target's winner is emitted whatever the draft was,
and the draft is right when both agree (Gumbel coupling, arXiv 2408.07978). Deterministic drafts are verified so too.

*Maximal coupling*: rejection sampling with residual and bonus token (Leviathan 2023, algorithm 1; Chen 2023). It
accepts with probability 1 − TV(p, q), the most that any coupling can. Its draws depend on the draft, and a position is
drafted anew after a rejection before it; so that no variate is used twice, every round needs noise of its own: callers
pass `noise.fork(round)`, the same to `draw` and `verify`, with a number that no other round of the answer has. The
target's draws race on that fork itself; drawing the draft and accepting it have a further fork each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specengine.draft import Distribution, Draft
from specengine.language_model import Rows
from specengine.noise import Noise
from specengine.sampling import Row, choose, distribution, race
from specengine.settings import Sampling

_DRAFT = 0
_ACCEPT = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """A round emits the first `accepted` tokens of its draft, then `next_token`: the correction, or the bonus token."""

    accepted: int
    next_token: int


def verify(
    rows: Rows, draft: Draft, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> Verdict:
    """Compares a draft with the target's logits; rows after the first rejection are not looked at.

    Args:
        rows: shape (len(draft) + 1, vocabulary size); row i follows `history` and the first i tokens of the draft.
        history: the tokens before the draft; the last `penalty_window` of them suffice.
        position: the absolute position of the draft's first token, counted in tokens from the context's start.
        noise: the answer's noise under the shared coupling, a fork of this round's own under the maximal one.

    Raises:
        EngineError: the logits are not numbers, or rule out every token.
        ValueError: there is not one row for each token of the draft and one more.
    """
    if len(rows) != len(draft) + 1:
        raise ValueError(f"A draft of {len(draft)} tokens needs {len(draft) + 1} rows of logits, not {len(rows)}.")
    maximal = draft.q if sampling.coupling == "maximal" and not sampling.greedy else None
    seen = list(history[-sampling.penalty_window :]) if sampling.penalised else []
    for i, token in enumerate(draft.tokens):
        if maximal is None:
            standing = choose(rows[i], seen, sampling, noise, position + i)
        else:
            standing = _accept_or_correct(distribution(rows[i], seen, sampling), maximal[i], token, noise, position + i)
        if standing != token:
            return Verdict(i, standing)
        seen.append(token)
    return Verdict(len(draft), choose(rows[-1], seen, sampling, noise, position + len(draft)))


def draw(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    """A draft token for the absolute `position` from the draft model's logits, and the q that `verify` needs with it.

    Under shared noise the draft takes part in the target's own race, so equal distributions give equal tokens.
    `noise` is what `verify` gets in the same round.

    Raises:
        EngineError: the logits are not numbers, or rule out every token.
    """
    if sampling.greedy or sampling.coupling == "shared":
        return choose(row, history, sampling, noise, position), None
    q = distribution(row, history, sampling)
    return race(q, noise.fork(_DRAFT), position), q


def _accept_or_correct(p: Distribution, q: Distribution, token: int, noise: Noise, position: int) -> int:
    """`token`, drawn from q, with probability min(1, p/q), else a draw from the residual."""
    # u < 1, so p ≥ q always accepts and p = 0 never does.
    if noise.fork(_ACCEPT).uniform(position) * _probability(q, token) < _probability(p, token):
        return token
    return race(_residual(p, q), noise, position)


def _residual(p: Distribution, q: Distribution) -> Distribution:
    """max(p − q, 0), normalised: what p has and accepted drafts did not give."""
    dense = np.zeros(max(p.ids[-1], q.ids[-1]) + 1)
    dense[q.ids] = q.probs
    excess = p.probs - dense[p.ids]
    kept = np.flatnonzero(excess > 0)
    if len(kept) == 0:
        return p  # p and q differ by rounding alone
    return Distribution(p.ids[kept], excess[kept] / excess[kept].sum())


def _probability(distribution: Distribution, token: int) -> float:
    index = int(np.searchsorted(distribution.ids, token))
    if index == len(distribution.ids) or distribution.ids[index] != token:
        return 0.0
    return float(distribution.probs[index])

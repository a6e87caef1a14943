"""Where two answers to one prompt and seed part: was it a near-tie, decided by how passes of different widths round?

Both tokens are scored at that place in passes of several widths. If rounding moves the lead of one over the other by
about as much as the lead is, passes of other widths may well choose the other one.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from specengine.language_model import LanguageModel
from specengine.noise import Noise
from specengine.protocol import NearTie
from specengine.sampling import Row, distribution
from specengine.settings import Sampling

_WIDTHS: Final = (2, 3, 4, 8, 16, 32)


def measure_near_tie(
    model: LanguageModel, context: Sequence[int], tokens: tuple[int, int], sampling: Sampling
) -> NearTie:
    """How far the first of `tokens` leads the second behind `context`, and how far the width of the pass moves that.

    The model's cache must hold the context but for its last token, and does so again afterwards.
    """
    narrow = _lead(model, context, 1, tokens, sampling)
    widths = [width for width in _WIDTHS if width <= min(len(context), model.n_batch)]
    wide = [_lead(model, context, width, tokens, sampling) for width in widths]
    kept = [math.isfinite(lead) for lead in (narrow, *wide)]
    shifts = [abs(lead - narrow) for lead in wide if math.isfinite(lead) and kept[0]]
    turns = len(set(kept)) > 1 or len({lead > 0 for lead in (narrow, *wide)}) > 1
    return NearTie(narrow if kept[0] else None, max(shifts, default=0.0), turns)


def _lead(
    model: LanguageModel, context: Sequence[int], width: int, tokens: tuple[int, int], sampling: Sampling
) -> float:
    """In logits; infinite where processing leaves only one of the tokens in play."""
    model.rollback(len(context) - width)
    row = model.forward(context[len(context) - width :], 1)[0]
    ours, theirs = scores(row, context, tokens, sampling)
    model.rollback(len(context) - 1)
    return ours - theirs if math.isfinite(ours) or math.isfinite(theirs) else math.nan


def scores(row: Row, context: Sequence[int], tokens: tuple[int, int], sampling: Sampling) -> tuple[float, float]:
    """What each token takes part in the choice with, in logits: the greater one wins. −inf where it is cut off."""
    history = context[-sampling.penalty_window :] if sampling.penalised else ()
    if sampling.greedy:
        sampling = replace(sampling, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
        handicaps = np.zeros(2)
    else:
        handicaps = np.log(Noise(sampling.seed).exponentials(len(context), np.asarray(tokens, dtype=np.int64)))
    left = distribution(row, history, sampling)
    found = []
    for token, handicap in zip(tokens, handicaps, strict=True):
        index = int(np.searchsorted(left.ids, token))
        known = index < len(left.ids) and left.ids[index] == token
        found.append(float(sampling.temperature * (math.log(left.probs[index]) - handicap)) if known else -math.inf)
    return found[0], found[1]

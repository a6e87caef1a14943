"""Do passes of all widths give the same logits here? Where they do, speculation leaves every character as it is.

The distribution is the target's in any case. But kernels switch with the width of a pass, and integer quantisation of
activations turns rounding differences into visible ones; at near-ties text then forks. So it is measured, per model
file and machine.
"""

from typing import Final

import numpy as np

from specengine.language_model import LanguageModel, Rows
from specengine.protocol import WidthNoise

_POSITIONS: Final = 32
_WIDTHS: Final = (2, 4, 8, 32)
_CONTEXTS: Final = (64, 700)
"""Cached tokens before the scored ones: attention takes other paths beyond 512."""
_SAME: Final = 1e-3
"""Logits this close are taken as equal: no near-tie of real text is that near."""
_SAMPLE: Final = (
    "def median(values):\n"
    '    """The middle value; the mean of the two middle ones where there is an even number."""\n'
    "    ordered = sorted(values)\n"
    "    half = len(ordered) // 2\n"
    "    if len(ordered) % 2:\n"
    "        return ordered[half]\n"
    "    return (ordered[half - 1] + ordered[half]) / 2\n\n"
    "The lighthouse keeper climbed the stairs each evening, counted the ships, and wrote their names in a book.\n"
)


def measure_width_noise(model: LanguageModel) -> WidthNoise:
    """Scores the same positions in passes of one token and of more, in a short and a longer context.

    Leaves the KV cache empty.
    """
    differences = [
        _differences(model, context) for context in _CONTEXTS if context + _POSITIONS <= min(model.n_ctx, 2048)
    ]
    model.rollback(0)
    every = np.concatenate(differences)
    largest = float(np.abs(every).max())
    return WidthNoise(largest, float(np.sqrt(np.mean(np.square(every)))), largest < _SAME)


def _differences(model: LanguageModel, context: int) -> Rows:
    tokens: list[int] = []
    while len(tokens) < context + _POSITIONS:
        tokens += model.vocabulary.tokenize(_SAMPLE)
    model.rollback(0)
    for start in range(0, context, model.n_batch):
        model.forward(tokens[start : min(context, start + model.n_batch)], 0)
    scored = tokens[context : context + _POSITIONS]
    reference = _score(model, scored, 1)
    # Only the worst of each width is kept: a 152k vocabulary times all positions would fill memory.
    return np.stack([np.abs(_score(model, scored, width) - reference).max(axis=1) for width in _WIDTHS]).ravel()


def _score(model: LanguageModel, tokens: list[int], width: int) -> Rows:
    start = model.length
    rows = [model.forward(tokens[i : i + width], width).copy() for i in range(0, len(tokens), width)]
    model.rollback(start)
    return np.concatenate(rows)

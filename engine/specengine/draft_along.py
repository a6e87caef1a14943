"""Reads an answer through the draft model: what would it have said at each position, had it been asked there?"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from specengine.drafters.model import DraftModel
from specengine.language_model import Rows
from specengine.layer_skipping import LayerSkipping
from specengine.noise import Noise
from specengine.sampling import top_probability
from specengine.settings import Sampling
from specengine.trace import DraftAlong
from specengine.verify import draw


def draft_along(
    drafter: DraftModel,
    committed: Sequence[int],
    n_prompt: int,
    sampling: Sampling,
    should_stop: Callable[[], bool] | None = None,
) -> DraftAlong | None:
    """The draft model's confidence at every position from `n_prompt` on, and whether its token stands there.

    Each token is drawn as in a round, under greedy decoding and under shared noise; the maximal coupling's draws depend
    on the rounds, so there it is the shared noise's. The draft model's cache ends as it was. None where its context is
    too small for the answer.

    Raises:
        Stopped: `should_stop` returned true; the cache may then be shorter than it was, and is in step.
    """
    model = drafter.model
    if n_prompt < 1 or len(committed) > model.n_ctx:
        return None
    if isinstance(model, LayerSkipping):
        if model.length < len(committed) - 1:
            return None
        return _read(drafter, committed, n_prompt, sampling, model.rows)
    before = model.length
    try:
        model.rollback(min(before, n_prompt - 1))
        for start in range(model.length, n_prompt - 1, model.n_batch):
            model.forward(drafter.known(committed[start : min(n_prompt - 1, start + model.n_batch)]), 0, should_stop)
        return _read(
            drafter, committed, n_prompt, sampling, lambda chunk, _: model.forward(chunk, len(chunk), should_stop)
        )
    finally:
        model.rollback(min(before, model.length))


def _read(
    drafter: DraftModel,
    committed: Sequence[int],
    n_prompt: int,
    sampling: Sampling,
    rows_of: Callable[[Sequence[int], int], Rows],
) -> DraftAlong:
    """The answer itself; `rows_of` gives the draft's logits behind each of some tokens, the first of which is at the
    position named."""
    sampling, noise = replace(sampling, coupling="shared"), Noise(sampling.seed)
    end = len(committed) - 1
    confidence: list[float] = []
    agrees: list[bool] = []
    for start in range(n_prompt - 1, end, drafter.model.max_rows):
        chunk = committed[start : min(end, start + drafter.model.max_rows)]
        rows = rows_of(drafter.known(chunk), start)
        for position, row in enumerate(rows[:, : drafter.width], start + 1):
            history = committed[max(0, position - sampling.penalty_window) : position] if sampling.penalised else ()
            token, _ = draw(row, history, position, sampling, noise)
            confidence.append(top_probability(row))
            agrees.append(token == committed[position])
    return DraftAlong(tuple(confidence), tuple(agrees))

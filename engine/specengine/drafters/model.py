"""A draft model: a small model of the target's family, with a KV cache of its own, proposes token by token."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from specengine.draft import NOTHING, Distribution, Draft, Plan
from specengine.language_model import LanguageModel
from specengine.noise import Noise
from specengine.sampling import top_probability
from specengine.settings import Sampling
from specengine.verify import draw

SOURCE: Final = "draft"


@dataclass(frozen=True, slots=True)
class DraftWork:
    """What a proposal took, for the statistics and the cost table."""

    passes: int = 0
    prefilled: int = 0
    """Tokens read in passes of their own before the first step."""
    caught_up: int = 0
    """Committed tokens fed in the first step: one, or two after a full accept."""
    prefill_s: float = 0.0
    steps_s: float = 0.0


NO_WORK: Final = DraftWork()


class DraftModel:
    """Keeps a draft model in step with the committed tokens."""

    def __init__(self, model: LanguageModel, target_vocabulary_size: int) -> None:
        self.model = model
        self.width = min(model.vocabulary.size, target_vocabulary_size)
        """Ids that both models know: the part of a row that counts."""
        self.work = NO_WORK
        """Of the last proposal."""

    def fits(self, committed: Sequence[int]) -> bool:
        """Whether the draft's own context, which may be smaller than the target's, has room for a proposal."""
        return len(committed) < self.model.n_ctx

    def missing(self, committed: Sequence[int]) -> int:
        """Committed tokens that the draft's cache lacks beyond the one or two of a normal round."""
        return max(0, len(committed) - 2 - self.model.length)

    def known(self, tokens: Sequence[int]) -> list[int]:
        """The draft's last token stands in for those that only the target's larger vocabulary has (padding)."""
        last = self.model.vocabulary.size - 1
        return [min(token, last) for token in tokens]

    def rollback(self, length: int) -> None:
        """Forgets what lies behind the first `length` committed tokens."""
        self.model.rollback(min(length, self.model.length))

    def propose(
        self,
        committed: Sequence[int],
        plan: Plan,
        sampling: Sampling,
        noise: Noise,
        should_stop: Callable[[], bool] | None = None,
        go_on: Callable[[Sequence[int]], Draft] | None = None,
    ) -> Draft:
        """Draws up to `plan.limit` tokens after `committed`. `go_on` gives what prompt lookup would put behind those
        drawn so far; where the plan's growth takes some of that, the draft ends with it.

        The cache ends one short of the drawn tokens: the last one was never read. If all are accepted, the next
        round reads it together with the bonus token.

        Raises:
            Stopped: `should_stop` returned true while the cache was catching up.
        """
        limit = min(plan.limit, self.model.n_ctx - len(committed))
        self.work = NO_WORK
        if limit < 1:
            return NOTHING
        started = time.perf_counter()
        prefilled = self._catch_up(committed, should_stop)
        ready = time.perf_counter()
        feed = list(committed[self.model.length :])
        caught_up = len(feed)
        tokens: list[int] = []
        evidence: list[float] = []
        q: list[Distribution] = []
        copied = NOTHING
        passes = 0
        while True:
            row = self.model.forward(self.known(feed), 1)[0, : self.width]
            passes += 1
            confidence = top_probability(row)
            if plan.growth is not None and not plan.growth.takes(evidence, confidence):
                break
            history = [*committed[-sampling.penalty_window :], *tokens] if sampling.penalised else ()
            token, proposal = draw(row, history, len(committed) + len(tokens), sampling, noise)
            tokens.append(token)
            evidence.append(confidence)
            if proposal is not None:
                q.append(proposal)
            if len(tokens) >= limit or token in self.model.vocabulary.end_of_generation:
                break
            if plan.growth is not None and go_on is not None:
                copy = go_on(tokens)
                if count := plan.growth.copies(evidence, copy.evidence):
                    copied = copy.first(count)
                    break
            if plan.growth is not None and not plan.growth.runs_on(evidence):
                break
            feed = [token]
        self.work = DraftWork(passes, prefilled, caught_up, ready - started, time.perf_counter() - ready)
        drawn = Draft(SOURCE, tuple(tokens), tuple(evidence), q=tuple(q) if q else None)
        return drawn.followed_by(copied) if tokens else NOTHING

    def _catch_up(self, committed: Sequence[int], should_stop: Callable[[], bool] | None) -> int:
        behind = self.missing(committed)
        if behind == 0:
            return 0
        start = self.model.length
        end = len(committed) - 1
        for position in range(start, end, self.model.n_batch):
            chunk = committed[position : min(end, position + self.model.n_batch)]
            self.model.forward(self.known(chunk), 0, should_stop)
        return end - start

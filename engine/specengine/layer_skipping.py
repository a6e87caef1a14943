"""Which layers a model leaves out when it drafts for itself: the run of middle layers whose absence the user's own text
notices least, as far as their time is worth it.

Runs of layers in the middle are what a model misses least (Gromov 2024, "The Unreasonable Ineffectiveness of the
Deeper Layers"). Over 63 tokens of Qwen2.5-Coder 1.5B's own code, with the target's keys and values behind, it would
have written the same at 0.98, 0.98, 0.94 and 0.77 of the positions without 4, 8, 10 and 14 of its 28 layers; without
every other layer of the middle at 1.00, 0.91, 0.89 and 0.06, and without those that turn what passes through them
least at 1.00, 0.78, 0.70 and 0.64.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from specengine.acceptance import model_estimate
from specengine.advice import expected_tokens
from specengine.costs import CostTable
from specengine.gamma import MAX_MODEL_GAMMA, Gamma
from specengine.language_model import Rows
from specengine.middle_layers import middle

SHARES: Final = (0.15, 0.25, 0.35, 0.45, 0.55)
"""Parts of the layers that are tried in the middle; then the ends of the best run are moved."""
MOST_PASSES: Final = 24
"""Sets that are tried, at most."""
READ: Final = 128
"""Tokens that a set of layers is judged by: the last ones of an answer."""
LEAST_TEXT: Final = 64
"""Tokens of answers after which layers are chosen for the first time,"""
MORE_TEXT: Final = 1024
"""and how many more of them have to come before they are chosen again."""


@runtime_checkable
class LayerSkipping(Protocol):
    """A draft made of some layers of the target, with whose KV cache it works: a LanguageModel that can say what it
    would do with other layers. Positions are those of tokens that the target has read."""

    layers: int
    """Of the target."""
    skipped: tuple[int, ...]
    """Indices of the layers that are left out."""

    @property
    def length(self) -> int: ...

    def skip(self, skipped: Collection[int]) -> None:
        """Leaves out these layers from now on."""
        ...

    def rows(self, tokens: Sequence[int], start: int) -> Rows:
        """Logits behind each of `tokens`, the first of which is at position `start`."""
        ...

    def agreement(self, skipped: Collection[int], tokens: Sequence[int], start: int) -> float:
        """The share of `tokens[1:]` that would have been the likeliest without the layers `skipped`."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A set of layers to leave out, and what it is expected to be worth."""

    skipped: tuple[int, ...]
    step_s: float
    """Of one step without them."""
    agreement: float
    rate: float
    """Tokens per second."""


@dataclass(slots=True)
class LayerChoice:
    """Chooses layers between answers, when there is enough new text."""

    draft: LayerSkipping
    wanted: int = LEAST_TEXT
    """Tokens of answers that have still to come before the next choice."""

    def take(self, skipped: Sequence[int]) -> bool:
        """Leaves out what an earlier choice did; false where that is no part of this model."""
        if not 0 < len(skipped) < self.draft.layers or not 0 <= min(skipped) <= max(skipped) < self.draft.layers:
            return False
        self.draft.skip(skipped)
        return True

    def see(self, emitted: int) -> None:
        """An answer of so many tokens could have been drafted."""
        self.wanted -= emitted

    def choose(self, committed: Sequence[int], n_prompt: int, gamma: Gamma, should_stop: Callable[[], bool]) -> bool:
        """Takes the set with the best expected rate on the last answer, which begins at `n_prompt`, if it is time to;
        whether there is another one in use now. Stopped, it begins anew the next time.

        The estimates of what the draft is worth begin anew with another set.
        """
        start = max(n_prompt - 1, len(committed) - READ - 1, 0)
        if self.wanted > 0 or len(committed) - start < 2 or self.draft.length < len(committed) - 1:
            return False
        best: Candidate | None = None
        for one in candidates(self.draft, committed[start:], start, gamma.costs):
            if should_stop():
                return False
            if best is None or one.rate > best.rate:
                best = one
        self.wanted = MORE_TEXT
        if best is None or best.skipped == self.draft.skipped:
            return False
        self.draft.skip(best.skipped)
        gamma.costs.draft_step_s, gamma.costs.skipped = best.step_s, best.skipped
        gamma.model = model_estimate()
        return True


def candidates(draft: LayerSkipping, tokens: Sequence[int], start: int, costs: CostTable) -> Iterator[Candidate]:
    """Judges sets of layers, the one in use first, with one pass each. Nothing where no set can pay, even if all its
    tokens were accepted.

    Args:
        tokens: the end of what the target has read, from position `start` on, and one token more.
        costs: measured, with the set in use.
    """
    layers, step_s = draft.layers, costs.draft_step_s
    if step_s is None or not draft.skipped:
        return
    layer_s = (costs.target(1) - step_s) / len(draft.skipped)

    def judge(skipped: tuple[int, ...]) -> Candidate:
        without_s = costs.target(1) - len(skipped) * layer_s
        agreement = draft.agreement(skipped, tokens, start)
        return Candidate(skipped, without_s, agreement, best_rate(agreement, without_s, costs))

    shortest_s = costs.target(1) - len(middle(layers, SHARES[-1])) * layer_s
    if best_rate(1.0, shortest_s, costs) <= 1 / costs.plain_s:
        return
    judged: dict[tuple[int, ...], Candidate] = {}
    ahead = [draft.skipped, *(middle(layers, share) for share in SHARES)]
    while ahead and len(judged) < MOST_PASSES:
        for skipped in ahead[: MOST_PASSES - len(judged)]:
            if skipped not in judged:
                judged[skipped] = judge(skipped)
                yield judged[skipped]
        best = max(judged.values(), key=lambda one: one.rate).skipped
        ahead = [skipped for skipped in _moved(best, layers) if skipped not in judged]


def best_rate(acceptance: float, step_s: float, costs: CostTable) -> float:
    """Expected tokens per second at the best draft length (`gamma`)."""
    return max(
        expected_tokens(acceptance, k) / (k * step_s + costs.target(k + 1) + costs.host_s)
        for k in range(1, MAX_MODEL_GAMMA + 1)
    )


def _moved(run: tuple[int, ...], layers: int) -> list[tuple[int, ...]]:
    """The run with one end moved, or both in the same direction, as far as a longer run leaves a layer."""
    by, first, last = max(1, round(layers / 28)), run[0], run[-1]
    ends = [(first + left * by, last + right * by) for left in (-1, 0, 1) for right in (-1, 0, 1) if left != -right]
    runs = (tuple(range(left, right + 1)) for left, right in ends if left >= 0 and right < layers)
    return [run for run in runs if 0 < len(run) < layers]

"""The statistics that verification passes must be able to fail: mistakes known from other implementations, each caught.

Every mutant here is a plausible way to get speculative sampling wrong. The same check on as many answers rejects the
mutant and accepts the real code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from specengine.draft import Distribution, Draft
from specengine.language_model import Rows
from specengine.noise import Noise
from specengine.sampling import choose, distribution, race
from specengine.settings import Sampling
from specengine.verify import Verdict, draw, verify
from toy import (
    Drafter,
    Drawer,
    Row,
    Tokens,
    Verifier,
    continued,
    drawn,
    emit,
    fit,
    law,
    lookup,
    relative,
    remember_distributions,
)

SHARED = Sampling(temperature=1, top_k=0, top_p=1, penalty_window=3)
MAXIMAL = replace(SHARED, coupling="maximal")
PENALISED = replace(SHARED, frequency_penalty=1.5)
MIN_P = replace(SHARED, min_p=0.3)
Corrector = Callable[[Distribution, Distribution, Noise, int], int]


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_distributions(monkeypatch)


def _dense(source: Distribution) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    probabilities = np.zeros(5)
    probabilities[source.ids] = source.probs
    return probabilities


def _over(weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Distribution:
    ids = np.flatnonzero(weights > 0)
    return Distribution(ids, weights[ids] / weights[ids].sum())


def _rejecting(correct: Corrector, ratio_noise: Callable[[Noise], Noise] = lambda noise: noise.fork(1)) -> Verifier:
    """Rejection sampling with a replaceable correction: right if that draws from the normalised residual."""

    def verify_(
        rows: Rows, draft: Draft, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
    ) -> Verdict:
        if draft.q is None:
            return verify(rows, draft, history, position, sampling, noise)
        for i, token in enumerate(draft.tokens):
            p = distribution(rows[i], (*history, *draft.tokens[:i]), sampling)
            q = draft.q[i]
            u = ratio_noise(noise).uniform(position + i)
            if u * _dense(q)[token] >= _dense(p)[token]:
                return Verdict(i, correct(p, q, noise, position + i))
        last = (*history, *draft.tokens)
        return Verdict(len(draft), choose(rows[-1], last, sampling, noise, position + len(draft)))

    return verify_


def residual(p: Distribution, q: Distribution, noise: Noise, position: int) -> int:
    return race(_over(np.maximum(_dense(p) - _dense(q), 0)), noise, position)


def target_itself(p: Distribution, _q: Distribution, noise: Noise, position: int) -> int:
    return race(p, noise, position)


def softmax_of_the_residual(p: Distribution, q: Distribution, noise: Noise, position: int) -> int:
    return race(_over(np.exp(np.maximum(_dense(p) - _dense(q), 0))), noise, position)


def argmax_with_a_softmax_q(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    return int(row.argmax()), distribution(row, history, sampling)


def top_k_with_a_raw_q(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    token, _ = draw(row, history, position, sampling, noise)
    return token, distribution(row, history, replace(sampling, top_k=0))


def draft_on_the_targets_stream(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    q = distribution(row, history, sampling)
    return race(q, noise, position), q


def draft_by_the_uniform_that_accepts_it(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    q = distribution(row, history, sampling)
    index = np.searchsorted(np.cumsum(q.probs), noise.fork(1).uniform(position))
    return int(q.ids[min(int(index), len(q.ids) - 1)]), q


def stream_reset_each_round(
    rows: Rows, draft: Draft, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> Verdict:
    return verify(rows, draft, history, 0, sampling, Noise(noise.seed))


def draft_stream_reset_each_round(
    row: Row, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> tuple[int, Distribution | None]:
    return draw(row, history, 0, sampling, Noise(noise.seed))


def copied_tokens_with_a_softmax_q(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
    draft = continued(1, 2)(committed, sampling, noise)
    assert draft.q is not None
    prefixes = [committed + draft.tokens[:i] for i in range(len(draft))]
    behind = (distribution(relative(prefix), prefix, sampling) for prefix in prefixes[draft.drawn :])
    return replace(draft, q=(*draft.q[: draft.drawn], *behind))


def a_drawn_token_dropped_for_a_copied_one(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
    draft = unlikely_tokens_dropped(committed, sampling, noise)
    back = lookup(2, relative)(committed + draft.tokens, sampling, noise)
    return draft if len(draft) == 3 else draft.followed_by(replace(back, evidence=(1.0, 1.0)))


def unlikely_tokens_dropped(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
    draft = drawn(3)(committed, sampling, noise)
    assert draft.q is not None
    for i, (token, q) in enumerate(zip(draft.tokens, draft.q, strict=True)):
        if _dense(q)[token] < 0.35:
            return replace(draft, tokens=draft.tokens[:i], q=draft.q[:i] or None)
    return draft


def source_switched_after_drawing(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
    draft = unlikely_tokens_dropped(committed, sampling, noise)
    return draft if len(draft) == 3 else lookup(2, relative)(committed, sampling, noise)


def _drafted_rows_under(loosened: dict[str, float]) -> Verifier:
    """Processing that is switched on for the bonus row only."""

    def verify_(
        rows: Rows, draft: Draft, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
    ) -> Verdict:
        raw = replace(sampling, **loosened)  # type: ignore[arg-type]
        verdict = verify(rows, draft, history, position, raw, noise)
        if verdict.accepted < len(draft):
            return verdict
        last = (*history, *draft.tokens)
        return Verdict(len(draft), choose(rows[-1], last, sampling, noise, position + len(draft)))

    return verify_


def stale_history(
    rows: Rows, draft: Draft, history: Sequence[int], position: int, sampling: Sampling, noise: Noise
) -> Verdict:
    for i, token in enumerate(draft.tokens):
        verdict = verify(rows[i : i + 2], Draft("lookup", (token,)), history, position + i, sampling, noise)
        if verdict.accepted == 0:
            return Verdict(i, verdict.next_token)
    return Verdict(len(draft), choose(rows[-1], history, sampling, noise, position + len(draft)))


@dataclass(frozen=True)
class Setup:
    """What yields answers: the real code where nothing is replaced."""

    sampling: Sampling
    drafter: Drafter
    verify: Verifier = verify
    answers: int = 2500

    def p_value(self) -> float:
        samples = [emit(self.drafter, self.sampling, 3, seed, verify=self.verify) for seed in range(self.answers)]
        return fit(samples, law(self.sampling, 3))


def _drawing(draw: Drawer) -> Drafter:
    return drawn(2, draw=draw)


TOP_K = replace(MAXIMAL, top_k=2)
REAL = {
    "maximal coupling": Setup(MAXIMAL, drawn(2)),
    "maximal coupling, our own spelling of it": Setup(MAXIMAL, drawn(2), _rejecting(residual)),
    "maximal coupling, drafts of three": Setup(MAXIMAL, drawn(3)),
    "maximal coupling, top-k": Setup(TOP_K, drawn(2), answers=5000),
    "maximal coupling, lookup": Setup(MAXIMAL, lookup(2)),
    "maximal coupling, lookup behind a draft model": Setup(MAXIMAL, continued(1, 2)),
    "shared noise": Setup(SHARED, drawn(2)),
    "penalties, shared noise": Setup(PENALISED, lookup(2)),
    "penalties, maximal coupling": Setup(replace(PENALISED, coupling="maximal"), drawn(2)),
    "min-p, shared noise": Setup(MIN_P, lookup(2)),
    "min-p, maximal coupling": Setup(replace(MIN_P, coupling="maximal"), drawn(2)),
}
NO_PENALTY = {"frequency_penalty": 0.0}
MUTANTS = {
    "a rejection corrected by the target itself": Setup(MAXIMAL, drawn(2), _rejecting(target_itself)),
    "a rejection corrected by softmax(residual)": Setup(MAXIMAL, drawn(2), _rejecting(softmax_of_the_residual)),
    "softmax q for an argmax token": Setup(MAXIMAL, _drawing(argmax_with_a_softmax_q)),
    "raw q for a token drawn after top-k": Setup(TOP_K, _drawing(top_k_with_a_raw_q)),
    "draft and correction on one stream": Setup(TOP_K, _drawing(draft_on_the_targets_stream), answers=5000),
    "draft and acceptance on one stream": Setup(MAXIMAL, _drawing(draft_by_the_uniform_that_accepts_it)),
    "stream reset each round, maximal coupling": Setup(
        MAXIMAL, _drawing(draft_stream_reset_each_round), stream_reset_each_round
    ),
    "stream reset each round, lookup": Setup(MAXIMAL, lookup(2), stream_reset_each_round),
    "stream reset each round, shared noise": Setup(SHARED, drawn(2), stream_reset_each_round),
    "drawn tokens dropped for their low q": Setup(MAXIMAL, unlikely_tokens_dropped),
    "source switched after drawing": Setup(MAXIMAL, source_switched_after_drawing),
    "softmax q for a copied token": Setup(MAXIMAL, copied_tokens_with_a_softmax_q),
    "drawn tokens dropped for copied ones": Setup(MAXIMAL, a_drawn_token_dropped_for_a_copied_one),
    "penalties on the bonus row only, shared noise": Setup(PENALISED, lookup(2), _drafted_rows_under(NO_PENALTY)),
    "penalties on the bonus row only, maximal coupling": Setup(
        replace(PENALISED, coupling="maximal"), drawn(2), _drafted_rows_under(NO_PENALTY)
    ),
    "penalties with stale history": Setup(PENALISED, lookup(2), stale_history),
    "min-p on the bonus row only, shared noise": Setup(MIN_P, lookup(2), _drafted_rows_under({"min_p": 0.0})),
    "min-p on the bonus row only, maximal coupling": Setup(
        replace(MIN_P, coupling="maximal"), drawn(2), _drafted_rows_under({"min_p": 0.0})
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_check_rejects(mutant: str) -> None:
    assert MUTANTS[mutant].p_value() < 1e-6


@pytest.mark.parametrize("real", REAL)
def test_the_check_accepts_the_real_code_in_the_same_setting(real: str) -> None:
    assert REAL[real].p_value() > 1e-3

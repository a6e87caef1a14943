"""Verification: what a round emits follows the target's distribution exactly, for both couplings and any draft."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from specengine.draft import NOTHING, Draft
from specengine.errors import EngineError
from specengine.noise import Noise
from specengine.sampling import distribution
from specengine.settings import Coupling, Sampling
from specengine.verify import Verdict, draw, verify
from toy import (
    PROMPT,
    Drafter,
    Tokens,
    continued,
    drawn,
    emit,
    fit,
    law,
    lookup,
    nothing,
    reference,
    relative,
    remember_distributions,
    target,
)

PLAIN = Sampling(temperature=1, top_k=0, top_p=1, penalty_window=3)
PROCESSORS = {
    "no processing": PLAIN,
    "temperature": replace(PLAIN, temperature=0.6),
    "top-k": replace(PLAIN, top_k=3),
    "top-p": replace(PLAIN, top_p=0.8),
    "min-p": replace(PLAIN, min_p=0.2),
    "repetition penalty": replace(PLAIN, repetition_penalty=2.5),
    "frequency penalty": replace(PLAIN, frequency_penalty=0.8),
    "presence penalty": replace(PLAIN, presence_penalty=1.2),
    "everything": Sampling(1.3, 4, 0.95, 0.1, 1.2, 0.3, 0.2, penalty_window=4),
}
DRAFTERS = {"lookup": lookup(2), "a draft model": drawn(2), "lookup behind a draft model": continued(1, 2)}


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_distributions(monkeypatch)


@pytest.mark.parametrize("coupling", ["shared", "maximal"])
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_pairs_of_tokens_follow_the_target(coupling: Coupling, processor: str, drafter: str) -> None:
    sampling = replace(PROCESSORS[processor], coupling=coupling)
    samples = [emit(DRAFTERS[drafter], sampling, 2, seed) for seed in range(2000)]
    assert fit(samples, law(sampling, 2)) > 1e-3


@pytest.mark.parametrize("coupling", ["shared", "maximal"])
@pytest.mark.parametrize(
    "drafter", [drawn(3), lookup(3), continued(2, 1)], ids=["a draft model", "lookup", "lookup behind a draft model"]
)
def test_triples_of_tokens_follow_the_target(coupling: Coupling, drafter: Drafter) -> None:
    """Long enough that answers end inside a block, on its bonus token and in a second round."""
    sampling = replace(PLAIN, top_k=4, frequency_penalty=0.4, coupling=coupling)
    samples = [emit(drafter, sampling, 3, seed) for seed in range(4000)]
    assert fit(samples, law(sampling, 3)) > 1e-3


def _accepted(sampling: Sampling, rounds: int) -> int:
    row, draft_row = target(PROMPT), relative(PROMPT)
    accepted = 0
    for seed in range(rounds):
        noise = Noise(seed)
        token, q = draw(draft_row, PROMPT, len(PROMPT), sampling, noise)
        draft = Draft("draft", (token,), q=None if q is None else (q,))
        accepted += verify(np.stack([row, row]), draft, PROMPT, len(PROMPT), sampling, noise).accepted
    return accepted


@pytest.mark.parametrize("processor", ["no processing", "top-k", "everything"])
def test_maximal_coupling_accepts_as_often_as_any_coupling_can(processor: str) -> None:
    sampling = replace(PROCESSORS[processor], coupling="maximal")
    p = reference(target(PROMPT), PROMPT, sampling).probabilities
    q = reference(relative(PROMPT), PROMPT, sampling).probabilities
    overlap = 1 - np.abs(p - q).sum() / 2
    assert 0.1 < overlap < 0.9
    assert stats.binomtest(_accepted(sampling, 6000), 6000, overlap).pvalue > 1e-3


def test_shared_noise_accepts_as_often_as_the_same_race_run_twice_agrees() -> None:
    """P(both races are won by x) = 1 / Σ_y max(p(y)/p(x), q(y)/q(x))."""
    p = reference(target(PROMPT), PROMPT, PLAIN).probabilities
    q = reference(relative(PROMPT), PROMPT, PLAIN).probabilities
    agreement = sum(1 / np.maximum(p / p[x], q / q[x]).sum() for x in range(len(p)))
    assert stats.binomtest(_accepted(PLAIN, 6000), 6000, agreement).pvalue > 1e-3


@pytest.mark.parametrize("processor", PROCESSORS)
def test_under_shared_noise_the_answer_is_the_seeds_whatever_drafts(processor: str) -> None:
    sampling = PROCESSORS[processor]

    def toggled(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
        return (nothing, lookup(3), drawn(2))[len(committed) % 3](committed, sampling, noise)

    drafters = [make(gamma) for make in (lookup, drawn) for gamma in (1, 2, 5)] + [continued(2, 3)]
    for seed in range(12):
        plain = emit(nothing, sampling, 12, seed)
        for drafter in (*drafters, toggled):
            assert emit(drafter, sampling, 12, seed) == plain


def test_under_shared_noise_a_draft_with_the_targets_own_logits_is_always_right() -> None:
    for seed in range(50):
        draft = drawn(4, target)(PROMPT, PLAIN, Noise(seed))
        assert draft.q is None
        assert _verify(draft, PLAIN, Noise(seed)).accepted == 4


def _verify(draft: Draft, sampling: Sampling, noise: Noise) -> Verdict:
    rows = np.stack([target(PROMPT + draft.tokens[:i]) for i in range(len(draft) + 1)])
    return verify(rows, draft, PROMPT, len(PROMPT), sampling, noise)


def test_under_maximal_coupling_a_draft_with_the_targets_own_logits_is_always_right() -> None:
    sampling = replace(PROCESSORS["everything"], coupling="maximal")
    for seed in range(50):
        draft = drawn(4, target)(PROMPT, sampling, Noise(seed))
        assert draft.q is not None
        assert _verify(draft, sampling, Noise(seed)).accepted == 4


@pytest.mark.parametrize("coupling", ["shared", "maximal"])
def test_greedy_accepts_what_the_target_would_say(coupling: Coupling) -> None:
    sampling = replace(PLAIN, temperature=0, repetition_penalty=3, coupling=coupling)
    plain = emit(nothing, sampling, 12, 0)
    assert len(set(plain)) > 1
    for drafter in (lookup(3), drawn(3)):
        assert emit(drafter, sampling, 12, 1) == plain
    right = Draft("lookup", plain[:3])
    assert _verify(right, sampling, Noise(0)) == Verdict(3, plain[3])
    wrong = Draft("lookup", (plain[0], (plain[1] + 1) % 5, plain[2]))
    assert _verify(wrong, sampling, Noise(0)) == Verdict(1, plain[1])
    assert draw(target(PROMPT), PROMPT, 3, sampling, Noise(0)) == (plain[0], None)


def test_greedy_ignores_the_q_of_a_draft() -> None:
    sampling = replace(PLAIN, temperature=0, coupling="maximal")
    q = distribution(relative(PROMPT), PROMPT, replace(sampling, temperature=1))
    for token in range(5):
        accepted = token == target(PROMPT).argmax()
        assert _verify(Draft("draft", (token,), q=(q,)), sampling, Noise(0)).accepted == accepted


def test_the_empty_draft_yields_one_token_of_the_target() -> None:
    assert _verify(NOTHING, PLAIN, Noise(4)).accepted == 0


def test_a_tail_of_the_history_is_enough() -> None:
    sampling = PROCESSORS["everything"]
    draft, rows = Draft("lookup", (1, 1)), np.stack([target(PROMPT + (1,) * i) for i in range(3)])
    for seed in range(50):
        whole = verify(rows, draft, (0, 0, 2, 2, 3, 3, *PROMPT), 9, sampling, Noise(seed))
        assert verify(rows, draft, (3, *PROMPT), 9, sampling, Noise(seed)) == whole


def test_rows_behind_a_rejection_are_not_looked_at() -> None:
    sampling = replace(PLAIN, temperature=0)
    row = target(PROMPT)
    rows = np.stack([row, np.full_like(row, np.nan)])
    best = int(row.argmax())
    assert verify(rows, Draft("lookup", ((best + 1) % 5,)), PROMPT, 3, sampling, Noise(0)) == Verdict(0, best)
    with pytest.raises(EngineError):
        verify(rows, Draft("lookup", (best,)), PROMPT, 3, sampling, Noise(0))


def test_a_token_that_the_target_lacks_is_rejected() -> None:
    sampling = replace(PLAIN, coupling="maximal")
    wide = np.append(target(PROMPT), np.float32(3))
    for seed in range(50):
        token, q = draw(wide, PROMPT, 3, sampling, Noise(seed))
        assert q is not None
        verdict = _verify(Draft("draft", (token,), q=(q,)), sampling, Noise(seed)) if token == 5 else None
        assert verdict is None or verdict.accepted == 0


@pytest.mark.parametrize("rows", [1, 3])
def test_a_missing_or_spare_row_is_refused(rows: int) -> None:
    with pytest.raises(ValueError, match=f"needs 2 rows of logits, not {rows}"):
        verify(np.zeros((rows, 5), np.float32), Draft("lookup", (1,)), PROMPT, 3, PLAIN, Noise(0))

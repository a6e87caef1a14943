"""Language models of a few tokens, small enough to enumerate what they may say, and the statistics to hold us to it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from specengine.draft import Distribution, Draft
from specengine.language_model import Rows
from specengine.noise import Noise
from specengine.sampling import distribution
from specengine.settings import Sampling
from specengine.verify import Verdict, draw, verify

VOCABULARY = 5
PROMPT = (3, 1, 1)

Tokens = tuple[int, ...]
Row = npt.NDArray[np.float32]
Probabilities = npt.NDArray[np.float64]
Model = Callable[[Tokens], Row]
"""From the tokens so far to the logits of the next one."""
Drafter = Callable[[Tokens, Sampling, Noise], Draft]
Verifier = Callable[[Rows, Draft, Sequence[int], int, Sampling, Noise], Verdict]
Drawer = Callable[[Row, Sequence[int], int, Sampling, Noise], tuple[int, Distribution | None]]


@cache
def target(prefix: Tokens) -> Row:
    """Logits that depend on every token of the prefix, neither certain nor flat."""
    return np.random.default_rng([1, *prefix]).normal(0, 1.3, VOCABULARY).astype(np.float32)


@cache
def relative(prefix: Tokens) -> Row:
    """The target's draft model: often right, sometimes very wrong."""
    return target(prefix) + np.random.default_rng([2, *prefix]).normal(0, 1.2, VOCABULARY).astype(np.float32)


def nothing(_committed: Tokens, _sampling: Sampling, _noise: Noise) -> Draft:
    """No drafts: plain decoding."""
    return Draft("none")


def lookup(gamma: int, model: Model = target) -> Drafter:
    """One-hot drafts: likely tokens after an even number of tokens, the least likely first token after an odd one."""

    def propose(committed: Tokens, _sampling: Sampling, _noise: Noise) -> Draft:
        tokens: Tokens = ()
        for i in range(gamma):
            row = model(committed + tokens)
            bad = i == 0 and len(committed) % 2 == 1
            tokens += (int(row.argmin() if bad else row.argmax()),)
        return Draft("lookup", tokens)

    return propose


def drawn(gamma: int, model: Model = relative, draw: Drawer = draw) -> Drafter:
    """Drafts drawn from a draft model, each with the drafted tokens before it as its history."""

    def propose(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
        tokens: Tokens = ()
        q: list[Distribution] = []
        for _ in range(gamma):
            prefix = committed + tokens
            token, source = draw(model(prefix), prefix, len(prefix), sampling, noise)
            tokens += (token,)
            if source is not None:
                q.append(source)
        return Draft("draft", tokens, q=tuple(q) if q else None)

    return propose


def continued(gamma: int, copied: int, draw: Drawer = draw) -> Drafter:
    """Drafts of a draft model with those of prompt lookup behind them, which depend on what was drawn."""

    def propose(committed: Tokens, sampling: Sampling, noise: Noise) -> Draft:
        front = drawn(gamma, draw=draw)(committed, sampling, noise)
        back = lookup(copied)(committed + front.tokens, sampling, noise)
        return front.followed_by(replace(back, evidence=(1.0,) * copied))

    return propose


def emit(
    drafter: Drafter,
    sampling: Sampling,
    length: int,
    seed: int,
    model: Model = target,
    verify: Verifier = verify,
) -> Tokens:
    """The first `length` tokens that rounds of drafting and verifying yield after `PROMPT`."""
    noise = Noise(seed)
    committed: Tokens = PROMPT
    rounds = 0
    while len(committed) < len(PROMPT) + length:
        own_noise = noise.fork(rounds) if sampling.coupling == "maximal" else noise
        draft = drafter(committed, sampling, own_noise)
        rows = np.stack([model(committed + draft.tokens[:i]) for i in range(len(draft) + 1)])
        verdict = verify(rows, draft, committed, len(committed), sampling, own_noise)
        committed += (*draft.tokens[: verdict.accepted], verdict.next_token)
        rounds += 1
    return committed[len(PROMPT) :][:length]


def remember_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computes each distribution once: thousands of answers meet the same few rows."""
    known: dict[tuple[bytes, Tokens, Sampling], Distribution] = {}

    def remembered(row: Row, history: Sequence[int], sampling: Sampling) -> Distribution:
        key = (row.tobytes(), tuple(history), sampling)
        if key not in known:
            known[key] = distribution(row, history, sampling)
        return known[key]

    monkeypatch.setattr("specengine.sampling.distribution", remembered)
    monkeypatch.setattr("specengine.verify.distribution", remembered)


@dataclass(frozen=True)
class Processed:
    """A row after processing, by the book."""

    probabilities: Probabilities
    """Of every token of the vocabulary."""
    margin: float
    """How far the token nearest to the edge of top-p or min-p is from it; below 1e-9 rounding may decide."""


def reference(row: Row, history: Sequence[int], sampling: Sampling) -> Processed:
    """Penalties, temperature, top-k, top-p, min-p, written for reading: one full sort, float64."""
    logits = _penalise(row, history, sampling)
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    weights = np.exp((logits - logits.max()) / sampling.temperature)
    margin = 1.0
    if sampling.top_k > 0:
        order = order[: sampling.top_k]
    if sampling.top_p < 1:
        cumulative = np.cumsum(weights[order]) / weights[order].sum()
        margin = min(margin, np.abs(cumulative - sampling.top_p).min())
        order = order[: int(np.searchsorted(cumulative, sampling.top_p)) + 1]
    if sampling.min_p > 0:
        margin = min([margin, *(abs(weight - sampling.min_p) for weight in weights[order] if weight < 1)])
        order = [token for token in order if weights[token] >= sampling.min_p]
    probabilities = np.zeros(len(logits))
    probabilities[order] = weights[order] / weights[order].sum()
    return Processed(probabilities, margin)


def _penalise(row: Row, history: Sequence[int], sampling: Sampling) -> Probabilities:
    logits = row.astype(np.float64)
    recent = list(history)[-sampling.penalty_window :] if sampling.penalty_window else []
    for token, count in Counter(recent).items():
        if token >= len(logits):
            continue
        value = logits[token]
        value = value / sampling.repetition_penalty if value > 0 else value * sampling.repetition_penalty
        value -= count * sampling.frequency_penalty
        value -= sampling.presence_penalty
        logits[token] = np.float32(value)  # logits stay in the precision that they came in
    return logits


def law(sampling: Sampling, length: int, model: Model = target) -> dict[Tokens, float]:
    """The probability of every answer of `length` tokens, by enumeration."""
    answers: dict[Tokens, float] = {(): 1.0}
    for _ in range(length):
        longer: dict[Tokens, float] = {}
        for answer, probability in answers.items():
            prefix = PROMPT + answer
            for token, p in enumerate(reference(model(prefix), prefix, sampling).probabilities):
                if p > 0:
                    longer[(*answer, token)] = probability * p
        answers = longer
    return answers


def fit(samples: Iterable[Tokens], expected: Mapping[Tokens, float]) -> float:
    """The p-value of Pearson's chi-square test of `samples` against `expected`; 0 if something impossible came up.

    Cells with fewer than 5 expected samples are pooled.
    """
    observed = Counter(samples)
    if observed.keys() - expected.keys():
        return 0.0
    total = observed.total()
    common = [cell for cell, p in expected.items() if p * total >= 5]
    counts = [observed[cell] for cell in common]
    means = [expected[cell] * total for cell in common]
    if total - sum(means) >= 1:
        counts.append(total - sum(counts))
        means.append(total - sum(means))
    if len(means) == 1:
        return 1.0
    means_array = np.array(means) * (sum(counts) / sum(means))
    return float(stats.chisquare(counts, means_array).pvalue)

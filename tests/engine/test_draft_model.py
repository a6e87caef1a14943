"""The draft model: what it reads, what it draws, and that it stays in step with the committed tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import tiny
from decoding import EXACT, Rig, engine, loaded, read, run
from specengine.draft import Draft, Plan
from specengine.drafters.model import DraftModel
from specengine.errors import Stopped
from specengine.growth import BestRateGrowth
from specengine.noise import Noise
from specengine.sampling import distribution
from specengine.settings import Sampling
from specengine.verify import draw

GREEDY = Sampling(temperature=0)
WARM = Sampling(temperature=1.0, top_k=20, top_p=1, frequency_penalty=0.3, seed=5)
TEXT = "def hello(self):\n    return 'the world' and class import"


@pytest.fixture
def draft(tmp_path: Path) -> Iterator[tuple[DraftModel, list[int]]]:
    with loaded(tiny.make(tmp_path / "draft.gguf", end=-30)) as model:
        yield DraftModel(model, model.vocabulary.size), model.vocabulary.tokenize(TEXT)


def propose(draft: DraftModel, committed: Sequence[int], limit: int, sampling: Sampling = GREEDY) -> Draft:
    return draft.propose(committed, Plan("draft", limit), sampling, Noise(sampling.seed))


def asked_until(limit: int) -> Callable[[], bool]:
    asked = count()
    return lambda: next(asked) >= limit


def drawn_one_by_one(draft: DraftModel, committed: list[int], wanted: int, sampling: Sampling) -> list[int]:
    tokens = list(committed)
    for _ in range(wanted):
        row = read(draft.model, tokens)[-1]
        tokens.append(draw(row, tokens, len(tokens), sampling, Noise(sampling.seed))[0])
    return tokens[len(committed) :]


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_tokens_are_drawn_after_one_another_with_the_history_up_to_each(
    draft: tuple[DraftModel, list[int]], sampling: Sampling
) -> None:
    model, committed = draft
    expected = drawn_one_by_one(model, committed, 8, sampling)
    model.rollback(0)
    proposal = propose(model, committed, 8, sampling)
    assert list(proposal.tokens) == expected
    assert proposal.source == "draft"
    assert proposal.q is None


def test_evidence_is_the_largest_probability_before_each_draw(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    proposal = propose(model, committed, 4, WARM)
    rows = read(model.model, committed + list(proposal.tokens))[len(committed) - 1 : -1].astype(np.float64)
    softmax = np.exp(rows - rows.max(axis=1, keepdims=True))
    np.testing.assert_allclose(proposal.evidence, (softmax / softmax.sum(axis=1, keepdims=True)).max(axis=1), atol=1e-4)


def test_maximal_coupling_gets_the_distribution_that_each_token_was_drawn_from(
    draft: tuple[DraftModel, list[int]],
) -> None:
    model, committed = draft
    sampling = replace(WARM, coupling="maximal")
    proposal = propose(model, committed, 4, sampling)
    assert proposal.q is not None
    rows = read(model.model, committed + list(proposal.tokens))
    for i, q in enumerate(proposal.q):
        history = committed + list(proposal.tokens[:i])
        expected = distribution(rows[len(history) - 1], history, sampling)
        assert list(q.ids) == list(expected.ids)
        np.testing.assert_allclose(q.probs, expected.probs, atol=1e-4)
        assert proposal.tokens[i] in q.ids


def test_the_first_proposal_reads_the_context_in_passes_of_its_own(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    assert model.missing(committed) == len(committed) - 2
    propose(model, committed, 3)
    assert (model.work.prefilled, model.work.caught_up, model.work.passes) == (len(committed) - 1, 1, 3)
    assert model.model.length == len(committed) + 2


@pytest.mark.parametrize(("accepted", "fed"), [(0, 1), (1, 1), (2, 1), (3, 2)])
def test_after_a_round_one_token_is_fed_or_two_after_a_full_accept(
    draft: tuple[DraftModel, list[int]], accepted: int, fed: int
) -> None:
    model, committed = draft
    proposal = propose(model, committed, 3)
    committed = [*committed, *proposal.tokens[:accepted], 65]
    model.rollback(len(committed) - 1)
    assert model.missing(committed) == 0
    again = propose(model, committed, 3)
    assert (model.work.prefilled, model.work.caught_up, model.work.passes) == (0, fed, 3)
    assert list(again.tokens) == drawn_one_by_one(model, committed, 3, GREEDY)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_shortest_contexts_can_be_drafted_for(draft: tuple[DraftModel, list[int]], length: int) -> None:
    model, committed = draft
    context = committed[:length]
    assert len(propose(model, context, 3)) == 3
    assert model.work.prefilled + model.work.caught_up == length


def test_a_long_context_is_read_in_chunks(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    context = (committed * 60)[: model.model.n_batch + 100]
    proposal = propose(model, context, 2)
    assert model.work.prefilled == len(context) - 1
    assert list(proposal.tokens) == drawn_one_by_one(model, context, 2, GREEDY)


def test_stopping_while_it_catches_up_leaves_a_prefix_in_the_cache(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    context = (committed * 60)[:1000]
    expected = drawn_one_by_one(model, context, 2, GREEDY)
    for limit in (0, 1, 30):
        model.rollback(0)
        with pytest.raises(Stopped):
            model.propose(context, Plan("draft", 2), GREEDY, Noise(0), asked_until(limit))
        assert model.model.length % model.model.n_batch == 0
        assert list(propose(model, context, 2).tokens) == expected


def test_nothing_is_drawn_behind_an_end_of_generation(tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "draft.gguf", end=30)) as model:
        proposal = propose(DraftModel(model, model.vocabulary.size), model.vocabulary.tokenize(TEXT), 5)
    assert list(proposal.tokens) == [model.vocabulary.special[tiny.END]]


@dataclass
class Reluctant:
    """Takes so many tokens, then looks at one more and doesn't."""

    willing: int
    looked_at: list[tuple[int, float]]

    def runs_on(self, evidence: Sequence[float]) -> bool:
        return True

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        self.looked_at.append((len(evidence), confidence))
        return len(evidence) < self.willing

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:
        return 0


@dataclass
class Copying:
    """Draws so many tokens, then takes so many of those that prompt lookup would go on with."""

    drawn: int
    copied: int

    def runs_on(self, evidence: Sequence[float]) -> bool:
        return True

    def takes(self, evidence: Sequence[float], confidence: float) -> bool:
        return True

    def copies(self, evidence: Sequence[float], matches: Sequence[float]) -> int:
        return min(self.copied, len(matches)) if len(evidence) == self.drawn else 0


def test_prompt_lookup_goes_on_behind_the_tokens_that_were_drawn(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    whole = propose(model, committed, 3)
    model.rollback(0)
    behind: list[tuple[int, ...]] = []

    def go_on(drawn: Sequence[int]) -> Draft:
        behind.append(tuple(drawn))
        return Draft("lookup", (7, 8, 9), (5.0, 6.0, 7.0))

    plan = Plan("draft", 8, Copying(drawn=3, copied=2))
    proposal = model.propose(committed, plan, GREEDY, Noise(0), None, go_on)
    assert proposal.tokens == (*whole.tokens, 7, 8)
    assert (proposal.evidence, proposal.copied, proposal.drawn) == (whole.evidence, (5.0, 6.0), 3)
    assert behind == [whole.tokens[:count] for count in (1, 2, 3)]
    assert model.work.passes == 3
    assert model.model.length == len(committed) + 2, "the last drawn token and the copied ones were never read"


def test_copied_tokens_are_certain_to_the_maximal_coupling(draft: tuple[DraftModel, list[int]]) -> None:
    model, committed = draft
    plan, sampling = Plan("draft", 8, Copying(drawn=1, copied=2)), replace(WARM, coupling="maximal")
    proposal = model.propose(committed, plan, sampling, Noise(5), None, lambda _: Draft("lookup", (7, 8), (5.0, 6.0)))
    assert proposal.q is not None and len(proposal.q) == len(proposal) == 3
    assert [(list(q.ids), list(q.probs)) for q in proposal.q[1:]] == [([7], [1.0]), ([8], [1.0])]


@pytest.mark.parametrize("willing", [0, 1, 3])
def test_growth_is_asked_before_each_draw(draft: tuple[DraftModel, list[int]], willing: int) -> None:
    model, committed = draft
    whole = propose(model, committed, 8)
    model.rollback(0)
    growth = Reluctant(willing, [])
    proposal = model.propose(committed, Plan("draft", 8, growth), GREEDY, Noise(0))
    assert proposal.tokens == whole.tokens[:willing]
    assert model.work.passes == willing + 1
    assert [number for number, _ in growth.looked_at] == list(range(willing + 1))
    np.testing.assert_allclose([confidence for _, confidence in growth.looked_at], whole.evidence[: willing + 1])


def test_a_draft_ends_where_the_draft_models_own_context_ends(tmp_path: Path) -> None:
    with loaded(tiny.make(tmp_path / "draft.gguf"), replace(EXACT, n_ctx=256)) as model:
        draft = DraftModel(model, model.vocabulary.size)
        context = (model.vocabulary.tokenize(TEXT) * 60)[: model.n_ctx - 2]
        assert len(propose(draft, context, 5)) == 2
        assert len(propose(draft, [*context, 65, 65], 5)) == 0
        assert model.length <= model.n_ctx


def test_beyond_the_draft_models_context_prompt_lookup_goes_on_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else copies behind its tokens would take the text over before its context is full.
    monkeypatch.setattr(BestRateGrowth, "copies", lambda *_: 0)
    target = tiny.make(tmp_path / "target.gguf", seed=3, cycle=2.0, end=-30)
    draft = tiny.make(tmp_path / "draft.gguf", seed=3, cycle=2.0, noise=0.03, end=-30)
    with engine(target) as made, loaded(draft, replace(EXACT, n_ctx=256)) as model:
        made.model = DraftModel(model, made.target.vocabulary.size)
        rig = Rig(made)
        prompt = made.target.vocabulary.tokenize(TEXT)
        plain = run(rig.decoder(prompt, "none"), GREEDY, 400)
        answer = run(rig.decoder(prompt, "both"), GREEDY, 400)
        assert answer.tokens == plain.tokens
        last_draft = max(i for i, one in enumerate(answer.rounds) if one.source == "draft")
        within = sum(one.kept for one in answer.rounds[: last_draft + 1])
        assert 200 < len(prompt) + within <= model.n_ctx + 1
        beyond = answer.rounds[last_draft + 1 :]
        assert all(one.draft_passes == 0 for one in beyond)
        assert sum(one.accepted for one in beyond) > 50


@pytest.mark.parametrize(("target_extra", "draft_extra"), [(0, 10), (10, 0)])
def test_padding_of_either_vocabulary_does_no_harm(tmp_path: Path, target_extra: int, draft_extra: int) -> None:
    """The random target emits padding tokens too, which its draft model may not have."""
    target = tiny.make(tmp_path / "target.gguf", end=-30, vocab_extra=target_extra)
    draft = tiny.make(tmp_path / "draft.gguf", end=-30, vocab_extra=draft_extra)
    flat = Sampling(temperature=3.0, top_k=0, top_p=1, seed=2)
    with engine(target, draft) as made:
        rig = Rig(made)
        prompt = made.target.vocabulary.tokenize(TEXT)
        plain = run(rig.decoder(prompt, "none"), flat, 200)
        if target_extra:
            assert max(plain.tokens[:-20]) >= rig.draft.vocabulary.size
        assert run(rig.decoder(prompt, "draft"), flat, 200, gamma=3).tokens == plain.tokens

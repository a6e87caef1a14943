"""Real models: text that speculation leaves as it is, forks no wider than the kernels' noise, deep rollbacks, chats
over documents, and pairs that don't match.

SPECCHAT_TEST_FULL=1 runs each comparison of text on 20 prompts of up to 2,000 tokens, with 300 tokens of answer each.
They take the samplings (temperature 0, 0.7 and 1) in turn, one for each prompt; every answer is written without
speculation, with it, and with it turned on and off. Without it some prompts and shorter answers stand for all.
"""

import inspect
import os
import statistics
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from decoding import Answer, FixedCosts, answer, flat_costs, loaded
from quantised import q4_0
from specengine.backends.llamacpp import LlamaOptions
from specengine.controls import Controls
from specengine.costs import GRID
from specengine.engine import Engine
from specengine.gamma import Gamma
from specengine.language_model import LanguageModel, Rows
from specengine.loading import load
from specengine.noise import Noise
from specengine.protocol import Chat, Load, Message, Raw
from specengine.settings import Limits, Sampling
from specengine.trace import Round

RealModel = Callable[[str], Path]
FULL: Final = bool(os.environ.get("SPECCHAT_TEST_FULL"))

pytestmark = [pytest.mark.real, pytest.mark.timeout(4 * 3600 if FULL else 1200)]

SAMPLINGS: Final = {
    "greedy": Sampling(temperature=0),
    "temperature 0.7": Sampling(temperature=0.7, seed=11),
    "temperature 1": Sampling(temperature=1.0, top_k=0, top_p=1, seed=12),
}


def code(length: int) -> str:
    """So many characters of the standard library."""
    return (inspect.getsource(statistics) + inspect.getsource(textwrap))[20_000:][:length]


TASKS: Final = (
    "Rename the variable `data` to `values` in this code and write out all of it:",
    "Explain in a few sentences what this code does:",
    "Write a short story about the person who wrote this code:",
    "Add type hints to this code and write out all of it:",
)
PROMPTS: Final = [f"{TASKS[i % len(TASKS)]}\n\n{code(i * 330)}" for i in range(20)]
"""From no code to some 2,000 tokens of it."""


@contextmanager
def opened(model: Path, draft: Path | None = None, *, exact: bool = False, n_ctx: int = 2560) -> Iterator[Engine]:
    """Loaded as the program loads it; in place of measured costs it has some that make speculation pay at any width."""
    request = Load(str(model), draft=str(draft) if draft else None, n_ctx=n_ctx, exact=exact)
    engine = load(request, lambda *_: None, lambda: False)
    engine.measuring = None
    engine.gamma = Gamma(flat_costs())
    try:
        yield engine
    finally:
        engine.close()


@dataclass(frozen=True)
class Compared:
    """One prompt's answers: without speculation, with it, and with it turned on and off."""

    plain: Answer
    fast: Answer
    toggled: Answer


def compare(engine: Engine, prompt: str, sampling: Sampling, limits: Limits, gamma: int | None) -> Compared:
    def toggle(done: int, controls: Controls) -> None:
        controls.speculation = "off" if done % 6 < 3 else "on"

    chat = Chat((Message("user", prompt),))
    plain = answer(engine, chat, sampling, limits=limits)
    fast = answer(engine, chat, sampling, limits=limits, lookup=True, draft=True, gamma=gamma)
    toggled = answer(
        engine,
        chat,
        sampling,
        limits=limits,
        lookup=True,
        draft=True,
        gamma=gamma,
        speculation="off",
        each_round=toggle,
    )
    return Compared(plain, fast, toggled)


Case = tuple[str, str]
"""A prompt, and the name of the sampling of its answer."""

IN_TURN: Final[list[Case]] = list(zip(PROMPTS, cycle(SAMPLINGS), strict=False))


def check_same_text(engine: Engine, cases: list[Case], limits: Limits, gamma: int | None) -> tuple[int, int]:
    """Returns how many drafted tokens were accepted, and in how many rounds one was rejected."""
    assert engine.measure_width_noise().identical_text_expected
    accepted = rejected = 0
    for prompt, name in cases:
        runs = compare(engine, prompt, SAMPLINGS[name], limits, gamma)
        assert runs.fast.tokens == runs.plain.tokens, (name, prompt[:80])
        assert runs.toggled.tokens == runs.plain.tokens, (name, prompt[:80])
        assert runs.fast.text == runs.toggled.text == runs.plain.text
        accepted += runs.fast.stats.accepted
        rejected += sum(one.rejected for one in runs.fast.rounds)
    return accepted, rejected


def test_smollm2_writes_the_same_text_with_lookup_when_exact(real_model: RealModel) -> None:
    with opened(real_model("smollm2-135m"), exact=True) as engine:
        few = [(PROMPTS[8], "greedy"), (PROMPTS[8], "temperature 0.7"), (PROMPTS[19], "temperature 1")]
        cases = IN_TURN if FULL else few
        accepted, rejected = check_same_text(engine, cases, Limits(max_tokens=300 if FULL else 72), gamma=8)
        assert min(accepted, rejected) > 0
        accepted, rejected = check_same_text(engine, [(PROMPTS[8], "greedy")], Limits(max_tokens=48), gamma=96)
        assert accepted > 0


def test_smollm2_writes_the_same_text_with_a_draft_model_when_exact(real_model: RealModel) -> None:
    """It drafts for itself: as its narrow passes and the wide ones agree, no token of its own is ever turned down."""
    path = real_model("smollm2-135m")
    with opened(path, path, exact=True) as engine:
        limits = Limits(max_tokens=300 if FULL else 60)
        parts = {2: IN_TURN[:5], 4: IN_TURN[5:10], 7: IN_TURN[10:15], 16: IN_TURN[15:]}
        for gamma, cases in parts.items() if FULL else [(5, [(PROMPTS[2], "temperature 1")])]:
            check_same_text(engine, cases, limits, gamma)
            prompt, name = cases[0]
            chat = Chat((Message("user", prompt),))
            own = answer(engine, chat, SAMPLINGS[name], limits=Limits(max_tokens=60), draft=True, gamma=gamma)
            assert own.stats.accepted == own.stats.drafted > 0


def test_the_larger_model_in_q4_0_writes_the_same_text_when_exact(real_model: RealModel) -> None:
    with opened(q4_0(real_model("qwen2.5-coder-1.5b")), exact=True) as engine:
        cases = IN_TURN if FULL else [(PROMPTS[4], "greedy"), (PROMPTS[4], "temperature 1")]
        accepted, rejected = check_same_text(engine, cases, Limits(max_tokens=300 if FULL else 60), gamma=4)
        assert min(accepted, rejected) > 0


def test_drafts_of_two_sources_leave_the_text_as_it_is_when_exact(real_model: RealModel) -> None:
    """The draft model bridges what changes in a copied text, and lookup goes on behind its tokens."""
    with opened(q4_0(real_model("qwen2.5-coder-1.5b")), real_model("qwen2.5-coder-0.5b"), exact=True) as engine:
        engine.gamma = Gamma(FixedCosts([0.010] * len(GRID), draft_step_s=0.003, draft_read_s=0.0001, host_s=0.0001))
        rounds: list[Round] = []
        engine.on_round = rounds.append
        cases = IN_TURN[3::4] if FULL else [(PROMPTS[4], "temperature 0.7")]
        check_same_text(engine, cases, Limits(max_tokens=300 if FULL else 90), gamma=None)
        copied = [one.accepted - (one.drafted - one.copied) for one in rounds if one.copied]
        assert len(copied) > 2
        assert max(copied) > 8, "copied tokens stand behind drawn ones"


def test_where_kernels_differ_text_forks_only_at_near_ties(real_model: RealModel) -> None:
    """Q4_K_M: scores of the two tokens at the fork, in one-token passes, lie within the noise measured for the file."""
    with opened(real_model("qwen2.5-coder-1.5b"), real_model("qwen2.5-coder-0.5b")) as engine:
        noise = engine.measure_width_noise().max_difference
        limits = Limits(max_tokens=300 if FULL else 48)
        for prompt, name in IN_TURN if FULL else [(PROMPTS[2], "greedy"), (PROMPTS[2], "temperature 1")]:
            runs = compare(engine, prompt, SAMPLINGS[name], limits, gamma=4)
            assert runs.fast.stats.accepted > 0
            for forked in (runs.fast, runs.toggled):
                check_fork(engine, runs.plain, forked, SAMPLINGS[name], noise)


def check_fork(engine: Engine, plain: Answer, forked: Answer, sampling: Sampling, noise: float) -> None:
    """The first two tokens that differ, if any do, had nearly the same score."""
    pairs = zip(plain.tokens, forked.tokens, strict=False)
    same = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if same is None:
        assert forked.tokens == plain.tokens
        return
    prefix = [*engine.committed[: plain.stats.prompt_tokens], *plain.tokens[:same]]
    row = narrow_row(engine, prefix)
    one, other = (raced(row, tokens[same], len(prefix), sampling) for tokens in (plain.tokens, forked.tokens))
    assert abs(one - other) <= 2 * noise


def narrow_row(engine: Engine, prefix: list[int]) -> Rows:
    """Logits behind `prefix` from one-token passes over its end."""
    target = engine.target
    target.rollback(0)
    start = max(0, len(prefix) - 64)
    for at in range(0, start, target.n_batch):
        target.forward(prefix[at : min(start, at + target.n_batch)], 0)
    for token in prefix[start:]:
        row = target.forward([token], 1)
    engine.committed[:] = prefix
    engine.lookup.rollback(0)
    last: Rows = row[0].copy()
    return last


def raced(row: Rows, token: int, position: int, sampling: Sampling) -> float:
    """A token's score in the race that decides, in logits: the largest wins."""
    if sampling.greedy:
        return float(row[token])
    time = Noise(sampling.seed).exponentials(position, np.array([token]))[0]
    return float(row[token] - sampling.temperature * np.log(time))


def prefilled(model: LanguageModel, tokens: list[int], boundaries: list[int]) -> None:
    """Reads `tokens` in passes that end at the given boundaries and at every 512th token behind them."""
    done = model.length
    while done < len(tokens):
        end = min([at for at in (*boundaries, len(tokens)) if at > done] + [done + model.n_batch])
        model.forward(tokens[done:end], 0)
        done = end


@pytest.mark.parametrize("back", [600, 1400])
def test_a_sliding_window_model_is_right_after_deep_rollbacks(real_model: RealModel, back: int) -> None:
    """Gemma 3 with windows of 512. Both ways the kept tokens are read in the same passes, so logits are equal."""
    path = real_model("gemma-3-270m")
    with loaded(path, LlamaOptions(n_ctx=2048, threads=2)) as model:
        tokens = model.vocabulary.tokenize(code(9000))[:1500]
        other = model.vocabulary.tokenize("The lighthouse keeper climbed the stairs each evening.")
        kept = 1500 - back
        prefilled(model, tokens, [kept])
        model.rollback(kept)
        after = model.forward(other, len(other)).copy()
        model.rollback(0)
        prefilled(model, tokens[:kept], [])
        np.testing.assert_allclose(model.forward(other, len(other)), after, atol=1e-3)


def test_a_sliding_window_model_goes_on_from_a_reused_prefix(real_model: RealModel) -> None:
    with opened(real_model("gemma-3-270m"), n_ctx=2048) as engine:
        text, limits = code(7000), Limits(max_tokens=8)
        for kept in (6000, 400):
            first = answer(engine, Raw(text), SAMPLINGS["greedy"], limits=limits)
            assert first.stats.prompt_tokens > 1200
            second = answer(engine, Raw(text[:kept] + "\n\n# Lighthouse"), SAMPLINGS["greedy"], limits=limits)
            assert second.stats.prompt_tokens - second.stats.reused_tokens < 16
            warm = engine.committed[:]
            row = narrow_row(engine, warm[:-1])
            engine.committed.clear()
            answer(engine, Raw(text[:kept] + "\n\n# Lighthouse"), SAMPLINGS["greedy"], limits=limits)
            assert float(row.max() - row[warm[-1]]) < 1.0


def test_the_next_turn_over_a_document_reads_only_what_is_new(real_model: RealModel) -> None:
    with opened(real_model("qwen2.5-coder-1.5b"), real_model("qwen2.5-coder-0.5b"), n_ctx=4096) as engine:
        assert engine.model is not None
        messages = [Message("user", f"Read this:\n\n{code(6000)}\n\nWhat does it do?")]
        limits = Limits(max_tokens=12)
        first = answer(engine, Chat(tuple(messages)), SAMPLINGS["temperature 0.7"], limits=limits, draft=True, gamma=2)
        assert first.stats.prefilled_tokens == first.stats.prompt_tokens - 1 > 1200
        assert first.stats.draft_prefilled_tokens == first.stats.prompt_tokens
        held, held_by_draft = len(engine.committed), engine.model.model.length
        messages += [Message("assistant", first.text, first.tokens), Message("user", "Say more.")]
        second = answer(engine, Chat(tuple(messages)), SAMPLINGS["temperature 0.7"], limits=limits, draft=True, gamma=2)
        assert second.stats.reused_tokens == held - 1
        assert second.stats.prefilled_tokens == second.stats.prompt_tokens - held < 30
        assert second.stats.draft_prefilled_tokens == second.stats.prompt_tokens - held_by_draft < 32
        assert second.stats.accepted > 0


def test_a_draft_of_another_family_is_refused_and_lookup_stays_on(real_model: RealModel) -> None:
    with opened(real_model("qwen2.5-coder-0.5b"), real_model("smollm2-135m")) as engine:
        assert engine.loaded.draft is None
        refused = engine.loaded.draft_refused or ""
        assert "can't draft for this model: Token 0 is '!'" in refused
        assert refused.endswith("Prompt lookup drafts alone.")
        chat = Chat((Message("user", f"Repeat this code:\n\n{code(600)}"),))
        repeated = answer(
            engine, chat, SAMPLINGS["greedy"], limits=Limits(max_tokens=60), lookup=True, draft=True, gamma=8
        )
        assert repeated.stats.sources["lookup"].accepted > 0


def test_a_quantised_model_runs_on_this_processor(real_model: RealModel) -> None:
    """Narrow and wide passes take different kernels, AMX where llama.cpp was given it."""
    with loaded(real_model("smollm2-135m"), LlamaOptions(n_ctx=512, threads=2)) as model:
        tokens = model.vocabulary.tokenize(code(1000))[:129]
        wide = model.forward(tokens[:128], 128).copy()
        assert np.isfinite(wide).all()
        model.rollback(0)
        narrow = np.concatenate([model.forward([token], 1).copy() for token in tokens[:16]])
        np.testing.assert_allclose(narrow, wide[:16], atol=1.0)

"""From a Load request to an engine: what is used, what is refused and why, and what is measured once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

import tiny
from decoding import answer
from specengine import hardware
from specengine.costs import CostTable
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.loading import load
from specengine.protocol import Chat, Load, Message
from specengine.settings import Limits, Sampling

GREEDY: Final = Sampling(temperature=0)
SHORT: Final = Limits(max_tokens=24)
QUESTION: Final = Chat((Message("user", "def hello(self):\n    return 'the world'\n" * 4),))


@contextmanager
def opened(
    model: Path,
    draft: Path | None = None,
    *,
    seen: list[str] | None = None,
    costs: Path | None = None,
    exact: bool = False,
    n_ctx: int | None = None,
) -> Iterator[Engine]:
    request = Load(
        str(model),
        draft=str(draft) if draft else None,
        threads=1,
        exact=exact,
        n_ctx=n_ctx,
        costs_file=str(costs) if costs else None,
    )
    engine = load(request, lambda what, _: seen.append(what) if seen is not None else None, lambda: False)
    try:
        yield engine
    finally:
        engine.close()


def test_a_target_and_its_draft_are_loaded_and_described(tmp_path: Path) -> None:
    target = tiny.make(tmp_path / "target.gguf", cycle=1.0, end=-30)
    draft = tiny.make(tmp_path / "draft.gguf", cycle=1.0, end=-30, noise=0.03)
    with opened(target, draft) as engine:
        loaded = engine.loaded
        assert (loaded.name, loaded.path, loaded.draft) == ("target", str(target), "draft")
        assert (loaded.draft_refused, loaded.speculation_refused) == (None, None)
        assert (loaded.n_ctx, loaded.n_vocab) == (4096, engine.target.vocabulary.size)
        assert (loaded.infill, loaded.template) == (True, True)
        assert loaded.device == "CPU, 1 thread"
        assert (engine.target.length, engine.committed) == (0, [])
        assert not engine.gamma.costs.known
        engine.measure_costs(lambda: False)
        assert engine.gamma.costs.known
        assert engine.gamma.costs.draft_step_s is not None
        assert all(seconds > 0 for seconds in engine.gamma.costs.target_s)
        both = answer(engine, QUESTION, GREEDY, limits=SHORT, lookup=True, draft=True, gamma=3)
        assert both.stats.sources["draft"].accepted > 0


def test_a_recurrent_model_decodes_plainly_and_says_why(tmp_path: Path) -> None:
    target, draft = tiny.make_recurrent(tmp_path / "mamba.gguf"), tiny.make(tmp_path / "draft.gguf")
    with opened(target, draft) as engine:
        assert engine.loaded.speculation_refused is not None
        assert "recurrent" in engine.loaded.speculation_refused
        assert engine.loaded.draft_refused == engine.loaded.speculation_refused
        first = answer(engine, QUESTION, GREEDY, limits=SHORT, lookup=True, draft=True, gamma=3)
        assert first.stats.drafted == 0
        messages = (*QUESTION.messages, Message("assistant", first.text, first.tokens), Message("user", "hello"))
        second = answer(engine, Chat(messages), GREEDY, limits=SHORT, lookup=True)
        assert second.stats.reused_tokens == first.stats.prompt_tokens + len(first.tokens) - 1
        engine.committed.clear()
        assert answer(engine, Chat(messages), GREEDY, limits=SHORT).tokens == second.tokens
        edited = Chat((*QUESTION.messages[:-1], Message("user", "something else")))
        assert answer(engine, edited, GREEDY, limits=SHORT).stats.reused_tokens == 0


@pytest.mark.parametrize("larger", [False, True])
def test_a_draft_with_another_vocabulary_is_refused_and_lookup_stays_on(tmp_path: Path, larger: bool) -> None:
    target = tiny.make(tmp_path / "target.gguf", cycle=2.0, end=-30, seed=3)
    draft = tiny.make_mismatched(tmp_path / "other.gguf", larger=larger)
    with opened(target, draft) as engine:
        if larger:
            assert (engine.loaded.draft, engine.loaded.draft_refused) == ("other", None)
            return
        assert engine.loaded.draft is None
        refused = engine.loaded.draft_refused
        assert refused is not None
        assert refused.startswith("other can't draft for this model: Token ")
        assert "hello" in refused
        assert "jello" in refused
        answered = answer(engine, QUESTION, GREEDY, limits=Limits(max_tokens=200), lookup=True, draft=True)
        assert answered.stats.sources["lookup"].accepted > 0


def broken(path: Path, what: str) -> Path:
    if what == "truncated":
        return tiny.truncate(tiny.make(path))
    if what == "not a model":
        path.write_bytes(b"<html>404</html>" * 100)
    elif what == "empty":
        path.write_bytes(b"")
    return path


BROKEN: Final = ["truncated", "not a model", "empty", "missing"]


@pytest.mark.parametrize("what", BROKEN)
def test_a_target_that_is_no_model_is_refused_in_one_sentence(tmp_path: Path, what: str) -> None:
    with pytest.raises(EngineError, match=r"broken\.gguf") as refused, opened(broken(tmp_path / "broken.gguf", what)):
        pass
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("what", BROKEN)
def test_a_draft_that_is_no_model_leaves_the_target_with_lookup(tmp_path: Path, what: str) -> None:
    with opened(tiny.make(tmp_path / "target.gguf"), broken(tmp_path / "broken.gguf", what)) as engine:
        assert engine.loaded.draft is None
        assert engine.loaded.draft_refused is not None
        assert "broken.gguf" in engine.loaded.draft_refused
        assert engine.loaded.draft_refused.endswith("Prompt lookup drafts alone.")
        assert len(answer(engine, QUESTION, GREEDY, limits=SHORT, lookup=True, draft=True).tokens) > 0


def test_costs_are_measured_once_and_kept(tmp_path: Path) -> None:
    target, draft, costs = tiny.make(tmp_path / "t.gguf"), tiny.make(tmp_path / "d.gguf"), tmp_path / "costs.json"
    with opened(target, draft, costs=costs) as engine:
        engine.measure_costs(lambda: False)
        kept = engine.gamma.costs
        assert engine.measuring is None
    with opened(target, draft, costs=costs) as engine:
        assert engine.measuring is None
        assert engine.gamma.costs == kept
    with opened(target, costs=costs) as engine:
        assert engine.measuring is not None
        engine.measure_costs(lambda: False)
        assert engine.gamma.costs.draft_step_s is None
    assert kept in msgspec.json.decode(costs.read_bytes(), type=dict[str, CostTable]).values()


def test_measuring_gives_way_and_goes_on_later(tmp_path: Path) -> None:
    with opened(tiny.make(tmp_path / "t.gguf")) as engine:
        engine.measure_costs(lambda: True)
        assert not engine.gamma.costs.known
        times = iter([False, False, True])
        engine.measure_costs(lambda: next(times))
        assert engine.gamma.costs.known
        assert engine.measuring is not None
        engine.measure_costs(lambda: False)
        assert engine.measuring is None


def test_no_token_waits_for_the_measuring_and_the_text_is_the_same(tmp_path: Path) -> None:
    """Without kept costs an answer begins plainly; one pass is measured between two of its rounds."""
    target, draft = tiny.make(tmp_path / "t.gguf", cycle=1.0), tiny.make(tmp_path / "d.gguf", cycle=1.0, noise=0.03)
    costs = tmp_path / "costs.json"
    long = Limits(max_tokens=60)
    with opened(target, draft, costs=costs) as engine:
        rounds: list[tuple[int, bool]] = []
        engine.on_round = lambda done: rounds.append((done.drafted, engine.gamma.costs.known))
        answered = answer(engine, QUESTION, GREEDY, limits=long, lookup=True, draft=True, speculation="auto")
        assert rounds[0] == (0, False)
        assert rounds[1] == (0, True)
        assert engine.measuring is None
        assert costs.exists()
        again = answer(engine, QUESTION, GREEDY, limits=long)
        assert again.tokens == answered.tokens
        assert again.stats.reused_tokens == again.stats.prompt_tokens - 1


def test_an_answer_without_speculation_measures_nothing(tmp_path: Path) -> None:
    with opened(tiny.make(tmp_path / "t.gguf")) as engine:
        plain = answer(engine, QUESTION, GREEDY, limits=SHORT, lookup=True, speculation="off")
        assert not engine.gamma.costs.known
        assert plain.stats.plain_s_per_token is None


def test_a_draft_refused_for_want_of_memory_has_its_costs_measured_once_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft, costs = tiny.make(tmp_path / "t.gguf"), tiny.make(tmp_path / "d.gguf"), tmp_path / "costs.json"
    with monkeypatch.context() as short:
        short.setattr("specengine.hardware.available_memory", lambda: 500 * 10**6)
        with opened(target, draft, costs=costs) as engine:
            assert engine.loaded.draft is None
            engine.measure_costs(lambda: False)
    with opened(target, draft, costs=costs) as engine:
        assert engine.loaded.draft == "d"
        assert engine.measuring is not None


def test_a_larger_context_than_the_model_knows_is_cut_with_a_notice(tmp_path: Path) -> None:
    path = tiny.make(tmp_path / "t.gguf", context=1024)
    engine = load(Load(str(path), n_ctx=5000, threads=1), lambda *_: None, lambda: False)
    try:
        assert engine.loaded.n_ctx == 1024
        assert ["1,024" in notice for notice in engine.loaded.notices] == [True]
    finally:
        engine.close()


def test_the_context_is_as_large_as_asked_and_no_larger(tmp_path: Path) -> None:
    with opened(tiny.make(tmp_path / "a.gguf"), n_ctx=100) as engine:
        assert engine.loaded.n_ctx == 100
        given = answer(engine, "Hello", Sampling(temperature=0), limits=Limits())
        assert given.reason in ("context", "end")
        assert given.stats.context_used <= 100


def test_more_threads_than_processors_are_cut_with_a_notice(tmp_path: Path) -> None:
    path = tiny.make(tmp_path / "t.gguf")
    engine = load(Load(str(path), threads=100_000), lambda *_: None, lambda: False)
    try:
        most = hardware.allowed_cpus()
        assert engine.loaded.device == ("CPU, 1 thread" if most == 1 else f"CPU, {most} threads")
        assert [f"{most} processors" in notice for notice in engine.loaded.notices] == [True]
    finally:
        engine.close()


@pytest.mark.parametrize("n_ctx", [1, 8, 63])
def test_a_context_too_small_for_any_answer_is_refused(tmp_path: Path, n_ctx: int) -> None:
    with (
        pytest.raises(EngineError, match="--ctx must be 64 or more"),
        opened(tiny.make(tmp_path / "a.gguf"), n_ctx=n_ctx),
    ):
        pass


def test_a_context_beyond_the_memory_is_refused_and_a_wished_one_is_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny.make(tmp_path / "t.gguf")
    # Weights, workspace and 2,000 tokens of KV (2 layers of 32 K and 32 V numbers, 2 bytes each).
    memory = path.stat().st_size + 400 * 10**6 + 2000 * 2 * 64 * 2
    monkeypatch.setattr("specengine.hardware.available_memory", lambda: memory)
    with opened(path) as engine:
        assert 1500 < engine.loaded.n_ctx <= 2000
        assert "Memory is short" in engine.loaded.notices[0]
    with pytest.raises(EngineError, match="memory"):
        load(Load(str(path), n_ctx=4096, threads=1), lambda *_: None, lambda: False)


def test_a_draft_that_does_not_fit_beside_the_target_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = tiny.make(tmp_path / "t.gguf"), tiny.make(tmp_path / "d.gguf")
    monkeypatch.setattr("specengine.hardware.available_memory", lambda: 500 * 10**6)
    with opened(target, draft) as engine:
        assert engine.loaded.draft is None
        assert "does not fit into memory" in (engine.loaded.draft_refused or "")


def stop_at(call: int) -> Callable[[], bool]:
    calls = iter(range(10**9))
    return lambda: next(calls) >= call


def test_loading_can_be_stopped_at_any_time(tmp_path: Path) -> None:
    target, draft = tiny.make(tmp_path / "t.gguf"), tiny.make(tmp_path / "d.gguf")
    stops = 0
    for call in range(0, 400, 9):
        try:
            load(Load(str(target), draft=str(draft), threads=1), lambda *_: None, stop_at(call)).close()
        except Stopped:
            stops += 1
    assert stops > 3


def test_exact_keeps_the_cache_in_bf16(tmp_path: Path) -> None:
    path = tiny.make(tmp_path / "t.gguf")
    with opened(path, exact=True) as exact, opened(path) as usual:
        one, other = (
            answer(engine, QUESTION, Sampling(seed=1), limits=SHORT, lookup=True) for engine in (exact, usual)
        )
        assert len(one.tokens) == len(other.tokens) == 24 or "end" in (one.reason, other.reason)
        assert exact.measure_width_noise().max_difference != usual.measure_width_noise().max_difference

"""llama-cpp-python's own Llama as a rival, on tiny real models in real processes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from rivals import never, question, setup_of
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.contract import RivalRun
from specchat.bench.rivals.llama_cpp_python import LlamaCppPython
from specengine import loading
from specengine.controls import Controls
from specengine.errors import EngineError, Stopped
from specengine.protocol import Done, Generate, Load, Raw
from specengine.settings import Limits, Sampling

TEXT = "one two three four five six seven eight nine ten " * 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("models") / "tiny.gguf", cycle=1.0, end=-30, context=4096)


@pytest.fixture(scope="module")
def ours(model: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Our engine's prompt and plain greedy answer to it."""
    engine = loading.load(Load(model=str(model), n_ctx=1024, threads=1), lambda what, done: None, lambda: False)
    request = Generate(1, Raw(TEXT), Sampling(temperature=0), Limits(48), speculation="off")
    done = list(engine.generate(request, Controls(speculation="off")))[-1]
    assert isinstance(done, Done)
    prompt = tuple(engine.committed[: done.stats.prompt_tokens])
    engine.close()
    return prompt, done.tokens


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    kept = Kept()
    yield kept
    kept.close()


@pytest.fixture(scope="module")
def rival(model: Path, kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> LlamaCppPython:
    return LlamaCppPython(setup_of(model), kept, tmp_path_factory.mktemp("state") / "rivals.log")


def test_it_answers_the_same_ids_with_the_same_greedy_text(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    prompt, answer = ours
    for mode in rival.modes:
        assert rival.answer(mode, question(*prompt, max_tokens=48), never).tokens == answer, mode


def test_an_answer_is_timed_over_as_many_passes_as_ours_and_finds_the_prompt_read(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    asked = question(*ours[0][:-1], max_tokens=20)
    first, second, again = (rival.answer("plain", asked, never) for _ in range(3))
    assert (first.n_tokens, first.target_passes, first.drafted, first.accepted) == (20, 20, 0, 0)
    assert first.first_token_s is not None and first.seconds > 0
    for later in (second, again):
        assert later.first_token_s is None
        assert counters(later) == counters(first)


def test_a_further_turn_reads_its_message_before_the_answer_is_timed(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    prompt, answer = ours
    first = question(*prompt, max_tokens=4)
    further = replace(question(*prompt, *answer[:4], 40, 41, 42, max_tokens=4), continues=True)
    runs = [rival.answer("plain", asked, never) for asked in (first, further, first, further)]
    assert runs[1].first_token_s is runs[3].first_token_s is None
    assert [run.target_passes for run in runs] == [4] * 4
    assert runs[1].tokens == runs[3].tokens


def test_a_single_token_takes_a_pass_too(rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    asked = question(*ours[0], max_tokens=1)
    assert [rival.answer("plain", asked, never).target_passes for _ in range(3)] == [1, 1, 1]


def test_its_prompt_lookup_is_counted_from_outside_and_starts_empty_each_time(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    runs = [rival.answer("lookup:2", question(*ours[0], max_tokens=48), never) for _ in range(2)]
    assert counters(runs[0]) == counters(runs[1])
    run = runs[0]
    assert run.accepted and run.drafted and run.target_passes
    assert run.accepted <= run.drafted <= 2 * run.target_passes
    # Each pass emits what it accepted and one token more; the last one may have been cut by the limit.
    assert run.n_tokens - run.target_passes <= run.accepted <= run.n_tokens - run.target_passes + 1


def test_lookup_takes_prompts_longer_than_a_batch_and_a_larger_context_when_needed(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    short, long = question(*ours[0], max_tokens=4), question(*(ours[0] * 6)[:700], max_tokens=4)
    assert len(long.prompt) > 512
    for asked in (short, long, short):
        assert rival.answer("lookup:10", asked, never).n_tokens == 4


def test_a_sampled_answer_follows_its_seed(
    rival: LlamaCppPython, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    def drawn(seed: int) -> tuple[int, ...] | None:
        sampling = Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=seed)
        return rival.answer("plain", question(*ours[0], max_tokens=24, sampling=sampling), never).tokens

    assert drawn(7) == drawn(7) != drawn(8)


def test_an_answer_ends_where_the_model_ends_it(tmp_path: Path) -> None:
    ending, kept = tiny.make(tmp_path / "ending.gguf", end=30), Kept()
    run = LlamaCppPython(setup_of(ending), kept, tmp_path / "log").answer("plain", question(max_tokens=40), never)
    kept.close()
    assert run.n_tokens == 1


def test_a_file_that_it_refuses_is_one_sentence_and_the_terminal_stays_clean(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    refused = tiny.make(tmp_path / "refused.gguf")
    refused.write_bytes(refused.read_bytes().replace(b"llama.block_count", b"llama.block_cuont"))
    kept = Kept()
    with pytest.raises(EngineError, match=r"^llama-cpp-python failed \(ValueError: Failed to load model.*rivals\.log"):
        LlamaCppPython(setup_of(refused), kept, tmp_path / "rivals.log").answer("plain", question(), never)
    kept.close()
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_ends_an_answer_and_the_next_one_gets_a_new_process(rival: LlamaCppPython) -> None:
    with pytest.raises(Stopped):
        rival.answer("plain", question(5, 6, 7, max_tokens=900), lambda: True)
    assert rival.answer("plain", question(5, 6, 7, max_tokens=2), never).first_token_s is not None


def test_modes_say_what_they_are_and_unknown_ones_are_refused(model: Path, tmp_path: Path) -> None:
    rival = LlamaCppPython(setup_of(model), Kept(), tmp_path / "log", ["plain", "lookup:5:3"])
    assert rival.modes == {
        "plain": "no speculation",
        "lookup:5:3": "its prompt lookup: drafts of 5 tokens after n-grams of up to 3",
    }
    for wrong in ("lookup", "lookup:0", "lookup:5:3:1", "lookup:x", "lookup:10000"):
        with pytest.raises(EngineError, match=f"no mode {wrong}; it has plain and lookup:TOKENS"):
            LlamaCppPython(setup_of(model), Kept(), tmp_path / "log", [wrong])


def counters(run: RivalRun) -> tuple[object, ...]:
    return run.tokens, run.n_tokens, run.target_passes, run.drafted, run.accepted

"""transformers' own generate as a rival: the same four-bit weights and ids, in a real process, on tiny real models."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import tiny_folder
from rivals import never, question
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.chosen import rivals
from specchat.bench.rivals.contract import RivalRun
from specchat.bench.rivals.transformers_generate import Folders, Transformers
from specengine.backends.torch_nf4.model import TorchModel
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.errors import EngineError
from specengine.model_folder import read_folder
from specengine.protocol import Load, Loaded
from specengine.settings import Sampling

TEXT = "one two three four five six seven eight nine ten " * 3
N_TOKENS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder.make(tmp_path_factory.mktemp("models") / "tiny", cycle=3.0, end=-30)


@pytest.fixture(scope="module")
def ours(folder: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A prompt, and what our engine makes of it in the same precision, token by token."""
    model = TorchModel(read_folder(folder), TorchOptions(512, precision="fp32"))
    prompt = model.vocabulary.tokenize(TEXT)
    model.forward(prompt[:-1], 0)
    answer: list[int] = [prompt[-1]]
    while len(answer) <= N_TOKENS:
        answer.append(int(model.forward(answer[-1:], 1)[0].argmax()))
    model.close()
    return tuple(prompt), tuple(answer[1:])


@pytest.fixture(scope="module")
def rival(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Transformers]:
    kept = Kept()
    small = tiny_folder.make(tmp_path_factory.mktemp("draft") / "small", cycle=3.0, end=-30, noise=0.2)
    yield Transformers(folders(folder, small), kept, tmp_path_factory.mktemp("state") / "rivals.log")
    kept.close()


def folders(target: Path, draft: Path | None = None, ends: tuple[int, ...] = (499,)) -> Folders:
    return Folders(target, draft, 512, 1, "cpu", "fp32", ends)


def test_it_writes_our_plain_text_in_every_mode_from_the_same_four_bit_weights(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    prompt, answer = ours
    assert list(rival.modes) == ["plain", "lookup:10", "draft"]
    for mode in rival.modes:
        assert rival.answer(mode, question(*prompt, max_tokens=N_TOKENS), never).tokens == answer, mode


def test_an_answer_finds_the_prompt_read_and_takes_a_pass_a_token(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    asked = question(*ours[0][1:], max_tokens=8)
    first, second = (rival.answer("plain", asked, never) for _ in range(2))
    assert first.first_token_s is not None
    assert second.first_token_s is None
    for run in (first, second):
        assert (run.n_tokens, run.target_passes, run.drafted, run.accepted) == (8, 8, 0, 0)
    single = replace(asked, max_tokens=1)
    assert [rival.answer(mode, single, never).target_passes for mode in rival.modes] == [1, 1, 1]


@pytest.mark.parametrize("mode", ["lookup:10", "draft"])
def test_drafts_are_counted_from_outside_and_nothing_is_kept_between_answers(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]], mode: str
) -> None:
    asked = question(*ours[0], max_tokens=N_TOKENS)
    first, second = (rival.answer(mode, asked, never) for _ in range(2))
    assert counters(first) == counters(second)
    assert first.target_passes and first.drafted and first.accepted
    assert first.accepted + first.target_passes == first.n_tokens == N_TOKENS
    assert first.accepted <= first.drafted


def test_a_draft_length_holds_for_its_own_mode_alone(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    asked = question(*ours[0], max_tokens=N_TOKENS)
    usual = rival.answer("draft", asked, never)
    fixed = rival.answer("draft:1", asked, never)
    assert fixed.drafted is not None and fixed.target_passes is not None
    assert fixed.drafted <= fixed.target_passes
    assert counters(fixed) != counters(usual)
    assert counters(rival.answer("draft", asked, never)) == counters(usual)


def test_a_further_turn_reads_its_message_before_the_answer_is_timed(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    prompt, answer = ours
    further = replace(question(*prompt, *answer[:4], 40, 41, 42, max_tokens=4), continues=True)
    runs = [rival.answer("plain", asked, never) for asked in (question(*prompt, max_tokens=4), further)]
    assert runs[1].first_token_s is None
    assert [run.target_passes for run in runs] == [4, 4]


def test_a_sampled_answer_follows_its_seed(rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    def drawn(seed: int) -> tuple[int, ...] | None:
        sampling = Sampling(temperature=1.5, top_k=0, top_p=1.0, seed=seed)
        return rival.answer("plain", question(*ours[0], max_tokens=16, sampling=sampling), never).tokens

    assert drawn(7) == drawn(7) != drawn(8)


def test_one_mode_that_fails_leaves_the_others_their_process(
    rival: Transformers, ours: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    with pytest.raises(EngineError, match=r"^transformers failed \(\w+"):
        rival.answer("plain", question(10**6, 5), never)
    asked = question(*ours[0], max_tokens=2)
    assert rival.answer("plain", asked, never).first_token_s is None  # it knows the prompt


def test_modes_say_what_they_are_and_unknown_ones_are_refused(folder: Path, tmp_path: Path) -> None:
    def modes(*names: str, draft: Path | None = folder) -> dict[str, str]:
        return Transformers(folders(folder, draft), Kept(), tmp_path / "log", names or None).modes

    assert list(modes(draft=None)) == ["plain", "lookup:10"]
    assert modes("lookup:5", "draft:7") == {
        "lookup:5": "prompt_lookup_num_tokens 5",
        "draft:7": "assistant_model, num_assistant_tokens 7",
    }
    for wrong in ("lookup", "lookup:0", "draft:x", "plain:1"):
        with pytest.raises(EngineError, match=f"no mode {wrong}; it has plain, lookup:TOKENS and draft"):
            modes(wrong)
    with pytest.raises(EngineError, match="can't be run as draft: no draft model is loaded; name one with --draft"):
        modes("draft", draft=None)


def test_each_rival_is_measured_beside_the_engine_that_reads_the_same_files(folder: Path, tmp_path: Path) -> None:
    ours = Loaded("tiny", str(folder), "torch, NF4", "CPU, 1 thread", n_ctx=512, n_vocab=500)
    load = Load(str(folder), draft=str(folder), threads=1)

    def chosen(word: str, loaded: Loaded) -> tuple[object, ...]:
        with rivals([word], None, load, loaded, tmp_path / "log", never) as found:
            return found

    (beside_torch,) = chosen("transformers", ours)
    assert isinstance(beside_torch, Transformers)
    assert list(beside_torch.modes) == ["plain", "lookup:10"]  # ours loaded no draft model
    with pytest.raises(EngineError, match=r"tiny runs in llama\.cpp: take --engine torch"):
        chosen("transformers", msgspec.structs.replace(ours, backend="llama.cpp"))
    with pytest.raises(EngineError, match="tiny runs in torch, NF4: take --engine llamacpp, or --against transformers"):
        chosen("llama-cpp-python", ours)


def counters(run: RivalRun) -> tuple[object, ...]:
    return run.tokens, run.n_tokens, run.target_passes, run.drafted, run.accepted

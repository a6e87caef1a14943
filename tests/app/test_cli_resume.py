"""Going on with a chat from the command line: real processes, with tests/scripted_engine.py in the engine's place."""

import os
import pty
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specchat import paths
from specchat.chat import Answer, Settings, Turn
from specchat.store.chats import Header, Kept, Store
from specengine.settings import Limits, Sampling

SPECCHAT = (sys.executable, str(Path(__file__).with_name("scripted_specchat.py")))
SETTINGS = Settings(Sampling(temperature=0.25, seed=77), Limits(50), "on", 3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A GGUF file with nothing in it: enough to be found, and the scripted engine needs no more."""
    path = tmp_path / "toy.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    return str(path)


def keep(id: str, model: str, at_s: float) -> None:
    header = Header(id, "A title", at_s, "Be brief.", SETTINGS, model, "none")
    with Store(paths.chats_file()) as store, store.writing():
        turn = Turn("say one", "say one", asked_s=at_s)
        store.keep_prompt(header, turn, at_s)
        store.keep_answer(turn.id, Answer("one", "end", (4, 5), None, "toy", ended_s=at_s))


def kept(id: str) -> Kept:
    with Store(paths.chats_file()) as store:
        return store.kept(id)


def started(*arguments: str) -> "subprocess.Popen[str]":
    """With a terminal for stdin, and stdout in a pipe."""
    _, far = pty.openpty()
    try:
        return subprocess.Popen(
            (*SPECCHAT, *arguments), stdin=far, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(far)


def specchat(*arguments: str) -> tuple[int, str, str]:
    process = started(*arguments)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_one_more_answer_in_the_last_chat_is_given_in_its_context_and_kept(model: str) -> None:
    keep("old", model, 1.0)
    keep("new", model, 2.0)
    code, out, err = specchat("-c", "-p", "request")
    assert (code, err) == (0, "")
    for text in (
        "Message(role='system', content='Be brief.'",
        "Message(role='user', content='say one'",
        "Message(role='assistant', content='one', tokens=(4, 5))",
        "Message(role='user', content='request'",
        "temperature=0.25",
        "seed=77",
        "speculation='on', gamma=3",
        "max_tokens=50",
    ):
        assert text in out, text
    turns = kept("new").conversation.turns
    assert [turn.prompt for turn in turns] == ["say one", "request"]
    answer = turns[1].answer
    assert answer and (answer.text, answer.ending, answer.model) == (out.removesuffix("\n"), "end", "toy")
    assert answer.settings == SETTINGS
    assert len(kept("old").conversation.turns) == 1


def test_a_chat_is_named_by_the_beginning_of_its_id_and_flags_win_over_what_it_was_left_with(model: str) -> None:
    keep("aaaa", model, 1.0)
    keep("bbbb", model, 2.0)
    code, out, _ = specchat(
        "--resume", "aa", "-s", "Be long.", "--temperature", "0.5", "--spec", "off", "-p", "request"
    )
    assert code == 0
    for text in ("content='Be long.'", "temperature=0.5", "speculation='off'", "seed=77"):
        assert text in out, text
    assert kept("aaaa").conversation.system == "Be long."


def test_without_c_an_answer_is_kept_nowhere(model: str) -> None:
    assert specchat("-m", model, "-p", "say hi") == (0, "hi\n", "")
    assert not paths.chats_file().exists()


def test_with_no_save_the_chat_stays_as_it_was(model: str) -> None:
    keep("aaaa", model, 1.0)
    assert specchat("-c", "--no-save", "-p", "say hi")[:2] == (0, "hi\n")
    assert len(kept("aaaa").conversation.turns) == 1


def test_an_interrupted_answer_is_kept_as_far_as_it_came(model: str) -> None:
    keep("aaaa", model, 1.0)
    process = started("-c", "-p", "endless")
    assert process.stdout
    assert process.stdout.read(8)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    answer = kept("aaaa").conversation.turns[-1].answer
    assert answer and answer.ending == "stopped" and answer.text.strip().endswith(out.strip()[-10:])


def test_an_answer_whose_reader_goes_away_or_whose_engine_dies_is_kept_too(model: str) -> None:
    keep("aaaa", model, 1.0)
    code, _, err = specchat("-c", "-p", "killed")
    assert code == 1 and "The engine ended" in err
    assert [turn.prompt for turn in kept("aaaa").unanswered] == ["killed"]
    process = started("-c", "-p", "endless")
    assert process.stdout and process.stdout.read(8)
    process.stdout.close()
    process.wait(60)
    answer = kept("aaaa").conversation.turns[-1].answer
    assert answer and answer.text.startswith("on ")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["-c", "-p", "x"], 1, "There is no chat to go on with yet; `specchat` begins one."),
        (["-c", "--resume", "a", "-p", "x"], 2, "Say which chat to go on with once: either -c or --resume."),
        (["-p", "x", "--resume"], 2, "Say which chat is to answer: --resume ID"),
    ],
)
def test_what_can_not_be_gone_on_with_is_one_sentence(arguments: list[str], code: int, sentence: str) -> None:
    ended = specchat(*arguments)
    assert ended[0] == code and sentence in " ".join(ended[2].split())


def test_an_unknown_id_is_one_sentence(model: str) -> None:
    keep("aaaa", model, 1.0)
    assert specchat("--resume", "zz", "-p", "x") == (
        1, "", "There is no chat 'zz'; `specchat chats list` shows them.\n"
    )  # fmt: skip


def test_a_chat_whose_model_is_gone_goes_on_with_another_and_says_so(model: str) -> None:
    keep("aaaa", "/nowhere/gone.gguf", 1.0)
    code, out, err = specchat("-m", model, "-c", "-p", "say hi")
    assert (code, out, err) == (0, "hi\n", "")  # the user chose one
    keep("bbbb", "/nowhere/gone.gguf", time.time())
    code, out, err = specchat("-c", "--offline", "-p", "say hi")
    assert "This chat was written with /nowhere/gone.gguf, which is not here; another model goes on.\n" in err
    assert (code, out) == (1, "") and "Traceback" not in err  # there is no other one on this machine

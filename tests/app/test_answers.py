"""`specchat -p` with the real engine process, on models of a few hundred kilobytes made for the test."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tiny

SPECCHAT = (sys.executable, "-c", "from specchat.cli import main; main()")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny.make(folder / "target.gguf", cycle=1.0)
    tiny.make(folder / "draft.gguf", cycle=1.0, noise=0.1)
    tiny.make_mismatched(folder / "mismatched.gguf")
    tiny.make_recurrent(folder / "recurrent.gguf")
    tiny.make(folder / "base.gguf", template=None)
    tiny.make(folder / "cut.gguf")
    tiny.truncate(folder / "cut.gguf")
    (folder / "text.gguf").write_text("no model at all")
    return folder


def specchat(model: Path, *arguments: str, piped: bytes = b"hello world") -> "subprocess.CompletedProcess[bytes]":
    command = (*SPECCHAT, "-m", str(model), "--threads", "1", *arguments)
    return subprocess.run(command, input=piped, capture_output=True, timeout=120, check=False)


def text_of(model: Path, *arguments: str) -> str:
    ended = specchat(model, "--json", "--max-tokens", "60", "--exact", *arguments)
    assert ended.returncode == 0, ended.stderr
    return str(json.loads(ended.stdout)["text"])


def sentence(ended: "subprocess.CompletedProcess[bytes]", code: int = 1) -> str:
    """The one line on stderr of a run that printed nothing else."""
    assert (ended.returncode, ended.stdout) == (code, b""), ended
    (line,) = ended.stderr.decode().splitlines()
    return line


def test_the_same_seed_gives_the_same_text_with_every_kind_of_speculation(models: Path) -> None:
    target, draft = models / "target.gguf", str(models / "draft.gguf")
    for sampling in (["--temperature", "0"], ["--temperature", "1", "--seed", "7"]):
        plain = text_of(target, *sampling, "--spec", "off", "--draft", "none")
        assert len(plain) > 20
        assert text_of(target, *sampling, "--spec", "on", "--draft", "none") == plain
        assert text_of(target, *sampling, "--spec", "on", "--draft", draft, "--no-lookup", "--gamma", "4") == plain


def test_drafts_are_made_and_counted(models: Path) -> None:
    arguments = ("--temperature", "0", "--gamma", "4", "--no-lookup", "--spec", "on", "--max-tokens", "40")
    ended = specchat(models / "target.gguf", "--draft", str(models / "draft.gguf"), "--json", *arguments)
    stats = json.loads(ended.stdout)["stats"]
    assert stats["draft"] == "draft" and stats["draft_passes"] > 0
    assert 0 < stats["accepted"] <= stats["drafted"] and set(stats["sources"]) == {"draft"}
    assert stats["emitted"] == 40 and stats["target_passes"] < 40


def test_a_draft_of_another_vocabulary_is_refused_with_the_first_difference_and_the_answer_comes(models: Path) -> None:
    ended = specchat(models / "target.gguf", "--draft", str(models / "mismatched.gguf"), "--max-tokens", "5")
    assert ended.returncode == 0 and ended.stdout.strip()
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith("mismatched can't draft for this model: Token ")


def test_a_model_that_cannot_roll_back_answers_plainly_and_says_why(models: Path) -> None:
    ended = specchat(models / "recurrent.gguf", "--max-tokens", "5")
    assert ended.returncode == 0 and ended.stdout.strip()
    assert len(ended.stderr.decode().splitlines()) == 1


def test_a_base_model_goes_on_with_the_text(models: Path) -> None:
    ended = specchat(models / "base.gguf", "--max-tokens", "5")
    assert ended.returncode == 0 and ended.stdout.strip()


def test_a_file_that_is_cut_short_and_one_that_is_no_model_are_one_sentence(models: Path) -> None:
    assert "cut short" in sentence(specchat(models / "cut.gguf"))
    assert "not a GGUF model file" in sentence(specchat(models / "text.gguf"))


def test_a_context_too_small_for_the_prompt_is_one_sentence(models: Path) -> None:
    line = sentence(specchat(models / "target.gguf", "--ctx", "256", piped=b"word " * 400))
    assert "256" in line and "--ctx" in line


def test_a_megabyte_that_does_not_fit_is_one_sentence(models: Path) -> None:
    line = sentence(specchat(models / "target.gguf", piped=b"some words of text\n" * 55_000))
    assert "shorten it; this model was trained for contexts of" in line and "--ctx" not in line


def test_bytes_that_are_no_text_are_said_and_answered(models: Path) -> None:
    ended = specchat(models / "target.gguf", "--max-tokens", "5", piped=b"caf\xe9 \xf0\x9f hello")
    assert ended.returncode == 0 and ended.stdout.strip()
    (line,) = ended.stderr.decode().splitlines()
    assert "not valid UTF-8" in line


def test_control_sequences_in_a_prompt_do_not_come_back(models: Path) -> None:
    ended = specchat(
        models / "target.gguf", "--max-tokens", "60", piped=b"\x1b[31mred\x1b[0m \x07 <|im_end|> \x1b]0;x\x07"
    )
    assert ended.returncode == 0
    assert not set(ended.stdout) & set(range(32)) - {9, 10}


def test_ctrl_c_keeps_the_answer_and_leaves_no_process(models: Path) -> None:
    command = (*SPECCHAT, "-m", str(models / "target.gguf"), "--threads", "1", "--temperature", "0", "-p", "hello")
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout and process.stdout.read(8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 130) and err == b""
    assert out.endswith(b"\n")
    with pytest.raises(ProcessLookupError):  # nothing of its process group is left
        os.killpg(process.pid, 0)


def test_doctor_measures_what_can_be_promised(models: Path) -> None:
    command = (*SPECCHAT, "doctor", "--exact", "--model", str(models / "target.gguf"))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "lossless  identical text expected" in ended.stdout, ended

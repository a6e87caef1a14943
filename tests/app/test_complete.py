"""`specchat complete` with the real engine process, on models of a few hundred kilobytes made for the test."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tiny

SPECCHAT = (sys.executable, "-c", "from specchat.cli import main; main()")
SOURCE = "class A:\n    def hello(self):\n        return self.world\n\n    def world(self):\n\n\nprint(A)\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny.make(folder / "coder.gguf", cycle=1.0)
    tiny.make_sentencepiece(folder / "unmarked.gguf")
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    return path


def complete(
    models: Path, *arguments: str, model: str = "coder", piped: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    options = ("-m", str(models / f"{model}.gguf"), "--threads", "1", "--max-tokens", "40")
    return subprocess.run(
        (*SPECCHAT, "complete", *options, *arguments), input=piped, capture_output=True, timeout=120, check=False
    )


def sentence(ended: "subprocess.CompletedProcess[bytes]", code: int = 1) -> str:
    """The one line on stderr of a run that printed nothing else."""
    assert (ended.returncode, ended.stdout) == (code, b""), ended
    (line,) = ended.stderr.decode().splitlines()
    return line


def test_the_completion_is_all_that_reaches_stdout_and_the_file_stays(models: Path, source: Path) -> None:
    ended = complete(models, f"{source}:5", "--until", "end")
    assert (ended.returncode, ended.stderr) == (0, b"")
    told = json.loads(complete(models, f"{source}:5", "--until", "end", "--json").stdout)
    assert told["text"] == ended.stdout.decode() and len(told["text"]) > 20
    assert (told["file"], told["line"], told["column"], told["applied"]) == (str(source), 5, None, False)
    assert told["stats"]["emitted"] == 40
    assert source.read_text() == SOURCE


def test_apply_puts_the_completion_into_the_file_and_says_where(models: Path, source: Path) -> None:
    ended = complete(models, f"{source}:5:9", "--until", "end", "--apply")
    assert ended.returncode == 0
    lines = SOURCE.splitlines(keepends=True)
    expected = "".join(lines[:4]) + lines[4][:8] + ended.stdout.decode() + lines[4][8:] + "".join(lines[5:])
    assert source.read_text() == expected != SOURCE
    assert ended.stderr.decode().startswith(f"{source}:5:9: ") and ended.stderr.endswith(b" written.\n")


def test_speculation_gives_the_same_completion_in_fewer_passes(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "long.py"
    source.write_text(SOURCE * 20)
    options = (f"{source}:5", "--until", "end", "--json", "--max-tokens", "100")
    plain = json.loads(complete(models, *options, "--spec", "off").stdout)
    fast = json.loads(complete(models, *options, "--spec", "on").stdout)
    assert fast["text"] == plain["text"]
    assert 0 < fast["stats"]["accepted"] <= fast["stats"]["drafted"]
    assert fast["stats"]["target_passes"] < plain["stats"]["target_passes"]


def test_it_ends_with_the_line_if_asked_to_and_the_engine_stops_there(models: Path, source: Path) -> None:
    whole = complete(models, f"{source}:5", "--until", "end", "--max-tokens", "200").stdout.decode()
    told = json.loads(complete(models, f"{source}:5", "--until", "line", "--json", "--max-tokens", "200").stdout)
    head, line, _ = whole.partition(whole.strip().partition("\n")[0])
    assert told["text"] == head + line
    assert told["stats"]["emitted"] < 200


def test_a_pipe_is_completed_at_its_end_or_at_a_place(models: Path) -> None:
    at_end = complete(models, "-", piped=b"def hello(self):\n")
    assert at_end.returncode == 0 and at_end.stdout
    assert complete(models, "-:2", piped=b"def hello(self):\n").stdout == at_end.stdout
    assert complete(models, "-", piped=b"def hello(self):\n<|cursor|>").stdout == at_end.stdout


def test_a_file_larger_than_the_context_is_read_around_the_place(models: Path, tmp_path: Path) -> None:
    source = tmp_path / "large.py"
    source.write_text(SOURCE * 2000)
    ended = complete(models, f"{source}:6005", "--ctx", "512", "--json")
    assert ended.returncode == 0
    assert "The text outgrew the context: " in ended.stderr.decode()
    assert json.loads(ended.stdout)["stats"]["prompt_tokens"] == 512 - 40


def test_a_model_without_the_tokens_says_what_to_choose(models: Path, source: Path) -> None:
    assert sentence(complete(models, f"{source}:5", model="unmarked")) == (
        "unmarked can't fill in a gap: it has no fill-in-the-middle tokens; choose a code model, such as "
        "qwen2.5-coder-0.5b."
    )


def test_without_a_code_model_on_the_machine_it_says_how_to_get_one(source: Path) -> None:
    ended = subprocess.run((*SPECCHAT, "complete", f"{source}:1"), capture_output=True, timeout=120, check=False)
    assert sentence(ended).startswith("There is no code model on this machine: `specchat models pull ")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("{}:99", "has 8 lines: there is no line 99."),
        ("{}:1:99", "has 8 characters: there is no column 99."),
        ("{}", "Say where: "),
        ("{}.absent:1", "can't be read: No such file"),
    ],
)
def test_a_place_that_is_not_there_is_one_sentence(models: Path, source: Path, place: str, told: str) -> None:
    assert told in sentence(complete(models, place.format(source)))


def test_a_pipe_can_not_be_applied_to(models: Path) -> None:
    ended = complete(models, "-", "--apply", piped=b"x")
    assert ended.returncode == 2 and b"--apply needs a file" in ended.stderr


def test_an_empty_pipe_is_one_sentence(models: Path) -> None:
    assert sentence(complete(models, "-", piped=b"")) == "The piped text is empty; pipe in what is to be completed."


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupted_completion_keeps_what_was_printed_and_leaves_the_file_alone(models: Path, source: Path) -> None:
    options = ("-m", str(models / "coder.gguf"), "--threads", "1", "--max-tokens", "4000", "--until", "end", "--apply")
    process = subprocess.Popen(
        (*SPECCHAT, "complete", f"{source}:5", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    rest, said = process.communicate(timeout=120)
    assert process.returncode == 130 and first + rest
    assert said.decode() == f"Interrupted: {source} was left as it was.\n"
    assert source.read_text() == SOURCE


RECTANGLE = """class Rectangle:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def perimeter(self):

    def scaled(self, factor):
        return Rectangle(self.width * factor, self.height * factor)
"""


@pytest.mark.real
def test_a_real_code_model_writes_the_missing_method_and_it_works(
    real_model: Callable[[str], Path], tmp_path: Path
) -> None:
    source = tmp_path / "rectangle.py"
    source.write_text(RECTANGLE)
    command = ("complete", f"{source}:9", "--apply", "-m", str(real_model("qwen2.5-coder-0.5b")))
    ended = subprocess.run((*SPECCHAT, *command), capture_output=True, timeout=250, check=False)
    assert ended.returncode == 0, ended.stderr
    names: dict[str, type] = {}
    exec(compile(source.read_text(), "rectangle.py", "exec"), names)
    assert names["Rectangle"](2, 3).perimeter() == 10


@pytest.mark.real
def test_a_real_model_without_the_tokens_is_refused(real_model: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = \n")
    command = ("complete", f"{tmp_path / 'a.py'}:1", "-m", str(real_model("smollm2-135m")))
    ended = subprocess.run((*SPECCHAT, *command), capture_output=True, timeout=120, check=False)
    assert "can't fill in a gap" in sentence(ended)

"""The console script with a real model in a real terminal: the first thing that a user meets."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmux import MODES_RESTORED, Tmux, needs_tmux

pytestmark = [needs_tmux, pytest.mark.real]

DOCUMENT = "".join(f"width_{number} = {number}\n" for number in range(300))


@pytest.fixture
def window(tmp_path: Path, real_model: Callable[[str], Path]) -> Iterator[Tmux]:
    script = shutil.which("specchat", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert script, "the console script specchat is not installed"
    command = [script, "--model", str(real_model("smollm2-135m")), "--temperature", "0", "--max-tokens", "400"]
    window = Tmux(tmp_path, command, {"SPECCHAT_HOME": str(tmp_path / "home")}, (100, 30))
    try:
        yield window
    finally:
        window.close()


def test_type_paste_stream_toggle_stop_and_quit(window: Tmux) -> None:
    window.until_shown("Ask anything", "SPEC auto")
    window.until_shown("SmolLM2", "tok/s")

    window.type("Tell me a long story about a lighthouse.")
    window.enter()
    window.until(lambda: re.search(r"\d tok/s", window.screen()), "a rate in the status bar")
    window.keys("C-t")
    window.until_shown("SPEC off")
    window.keys("C-t")
    window.until_shown("SPEC auto")
    window.keys("Escape")
    window.until_shown("stopped")

    window.paste(DOCUMENT, bracketed=True)
    window.until_shown("[Pasted #1: 300 lines]")
    window.type(" Copy the first ten lines.")
    before = len(window.written())
    window.enter()
    window.until_written("reading", since=before, seconds=120)
    window.until(lambda: re.search(r"\d tok/s +\S+× .*SPEC", window.screen()), "a second answer", seconds=240)
    window.keys("Escape")
    window.until(lambda: "reading" not in window.screen() and window.screen().count("tok/s ·"), "its end")
    window.type("/stats")
    window.enter()
    window.until_shown("first token", "verify")

    window.keys("C-q")
    assert window.ended() == 0
    written = window.written()
    for off in MODES_RESTORED:
        on = off[:-1] + ("l" if off.endswith("h") else "h")
        assert written.rfind(off) > written.rfind(on), off
    assert "Traceback" not in written


def test_an_answer_goes_on_from_what_was_written_when_its_engine_was_killed(window: Tmux, tmp_path: Path) -> None:
    window.until_shown("Ask anything", "SPEC auto")
    window.until_shown("SmolLM2", "tok/s")
    window.type("Tell me a long story about a lighthouse.")
    window.enter()
    window.until(lambda: re.search(r"\d tok/s", window.screen()), "a rate in the status bar")
    (engine,) = subprocess.check_output(["pgrep", "-P", str(window.pid)], text=True).split()
    os.kill(int(engine), signal.SIGKILL)
    window.until_shown("broken off", "ended in the middle of its work")
    begun = answer_in(exported(window, tmp_path / "begun.md"))
    read = context_used(window)
    window.type("/continue")
    window.enter()
    window.until_shown("was loaded again")
    window.until(lambda: context_used(window) > read + 4, "more of it", seconds=120)
    window.keys("Escape")
    window.until(lambda: "tok/s ·" in window.screen() and "broken off" not in window.screen(), "its end")
    whole = answer_in(exported(window, tmp_path / "whole.md"))
    assert whole.startswith(begun) and len(whole) > len(begun) > 0
    window.keys("C-q")
    assert window.ended() == 0


def context_used(window: Tmux) -> int:
    """Tokens in the context as the status bar tells; 0 while it tells none."""
    found = re.search(r"([\d,]+)/8,192 ctx", window.screen())
    return int(found[1].replace(",", "")) if found else 0


def exported(window: Tmux, file: Path) -> str:
    window.type(f"/export md {file}")
    window.enter()
    window.until(lambda: file.exists() and file.read_text().endswith("\n"), f"the export to {file.name}")
    return file.read_text()


def answer_in(markdown: str) -> str:
    """The answer, without the line that says how it ended."""
    answer = markdown.rpartition("\n## ")[2].partition("\n")[2].strip()
    return answer.rpartition("\n\n*(")[0]

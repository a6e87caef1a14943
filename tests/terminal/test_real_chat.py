"""The console script with a real model in a real terminal: the first thing that a user meets."""

import os
import re
import shutil
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

"""What the command line prints, in real terminals of usual and of small sizes."""

import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tmux import Tmux, needs_tmux

pytestmark = needs_tmux


@pytest.fixture(params=[80, 60], ids=lambda width: f"{width} columns")
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("models list", ["qwen2.5-coder-1.5b", "A wider terminal also shows: ", "is the best for this machine."]),
        ("help commands", ["/draft [NAME|self|none]", "some of the model's own layers."]),
        ("bench --help", ["summarise", "--against-modes LIST"]),
        ("modles list", ["did you mean", "`specchat -p 'modles list'`."]),
    ],
)
def test_no_word_is_cut_at_the_edge(tmp_path: Path, isolated: Path, width: int, command: str, words: list[str]) -> None:
    home = {"SPECCHAT_HOME": str(isolated)}
    terminal = Tmux(tmp_path, [sys.executable, "-m", "specchat", *command.split()], home, (width, 50))
    try:
        terminal.until(lambda: all(word in " ".join(terminal.written().split()) for word in words), f"printing {words}")
        lines = terminal.written().replace("\r", "").split("\n")
    finally:
        terminal.close()
    assert all(cell_len(line) <= width for line in lines)

"""What only a real terminal shows: where its cursor stands, who has the mouse, and which colours it gets."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmux import Tmux, needs_tmux

pytestmark = needs_tmux

_TESTS = Path(__file__).resolve().parent.parent
_PROGRAM = """
import sys
from chatting import options
from fake_engine import FakeEngine
from specchat.tui.app import run
sys.exit(run(options(FakeEngine(), **{})))
"""
Open = Callable[..., Tmux]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Open]:
    """Opens the chat on a scripted engine: `chat({"theme": "ansi"}, NO_COLOR="1")`."""
    windows: list[Tmux] = []

    def start(choices: dict[str, object] | None = None, **environment: str) -> Tmux:
        program = tmp_path / "chat.py"
        program.write_text(_PROGRAM.replace("{}", repr(choices or {})))
        paths = os.pathsep.join([str(_TESTS), *(path for path in sys.path if path)])
        windows.append(Tmux(tmp_path, [sys.executable, str(program)], {"PYTHONPATH": paths, **environment}, (80, 24)))
        windows[0].until_shown("SPEC auto", "tiny-1b")
        return windows[0]

    yield start
    for window in windows:
        window.close()


@pytest.mark.parametrize("text", ["plain", "日本語のテキスト", "🙂🙂"])
def test_the_cursor_stands_behind_what_was_typed_so_that_an_input_method_opens_there(chat: Open, text: str) -> None:
    window = chat()
    window.type(text)
    window.until_shown(text)
    row = next(number for number, line in enumerate(window.screen().splitlines()) if text in line)
    width = sum(1 if character.isascii() else 2 for character in text)
    window.until(lambda: window.cursor() == (3 + width, row), f"the cursor behind {text}, not at {window.cursor()}")
    window.keys("C-j")
    window.until(lambda: window.cursor()[0] == 3, "the cursor at the start of the new line")


def test_without_the_mouse_the_terminal_keeps_it(chat: Open) -> None:
    assert not re.search(r"\x1b\[\?(100[0-3]|1006|1015)h", chat({"mouse": False}).written())


def test_with_the_mouse_the_terminal_is_asked_for_it(chat: Open) -> None:
    assert "\x1b[?1003h" in chat().written()


def colours(written: str) -> set[str]:
    """What the colours that a terminal was sent look like: "38;2" for one in 24 bits, "34" for its own blue, …"""
    found = set()
    for codes in re.findall(r"\x1b\[([0-9;]+)m", written):
        parts = codes.split(";")
        while parts:
            code = parts.pop(0)
            if code in ("38", "48"):
                kind = parts.pop(0)
                found.add(f"{code};{kind}")
                del parts[: 3 if kind == "2" else 1]
            elif 30 <= int(code) <= 47 or 90 <= int(code) <= 107:
                found.add(code)
    return found - {"39", "49"}


def test_the_ansi_theme_sends_the_terminals_own_colours_only(chat: Open) -> None:
    found = colours(chat({"theme": "ansi"}).written())
    assert found and not [code for code in found if ";" in code]


def test_no_color_sends_none(chat: Open) -> None:
    assert colours(chat(NO_COLOR="1", COLORTERM="truecolor").written()) == set()


def test_the_other_themes_send_colours_of_their_own(chat: Open) -> None:
    assert "38;2" in colours(chat(COLORTERM="truecolor").written())

"""What terminals do that is not quite right, byte by byte: on a real pty, with the screen as an emulator makes it."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no ptys")

_TESTS = Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 80, 24
SUPPORTS_SIZE_REPORTS = b"\x1b[?2048;2$y"


class Terminal:
    """A chat on a scripted engine, and a terminal that misbehaves as it is told."""

    def __init__(self, folder: Path) -> None:
        paths = os.pathsep.join([str(_TESTS), *(path for path in sys.path if path)])
        settings = {"PYTHONPATH": paths, "REQUESTS": str(folder / "requests.jsonl"), "TERM": "xterm-256color"}
        self.program = pexpect.spawn(
            sys.executable,
            [str(_TESTS / "terminal" / "fake_chat.py")],
            env={**os.environ, **settings},
            dimensions=(HEIGHT, WIDTH),
        )
        self.program.delaybeforesend = None
        self.written = b""
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._emulator = pyte.ByteStream(self._screen)

    def send(self, keys: bytes) -> None:
        self.program.send(keys)

    def type(self, text: str) -> None:
        self.send(text.encode())
        self.until(lambda: text in self.prompt(), f"{text!r} in the prompt")

    def enter(self) -> None:
        """Presses Enter on its own: what comes right behind a burst of keys counts as part of it."""
        time.sleep(0.4)
        self.send(b"\r")

    def resize(self, width: int, height: int) -> None:
        self._screen.resize(height, width)
        self.program.setwinsize(height, width)

    def shown(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    def prompt(self) -> str:
        """What stands in the prompt, without the breaks of its lines."""
        return "".join(self.lines())

    def lines(self) -> list[str]:
        """The lines of the prompt; a wide character has no second cell."""
        lines = self.shown()
        top = next((number for number, line in enumerate(lines) if line.lstrip().startswith("╭")), 0)
        bottom = next((number for number, line in enumerate(lines) if line.lstrip().startswith("╰")), 0)
        return [line.strip(" │") for line in lines[top + 1 : bottom]]

    def until(self, condition: Callable[[], object], what: str, seconds: float = 60) -> None:
        """Reads what the program writes until `condition` holds; the limit only ends a test that fails."""
        for _ in range(int(seconds * 20)):
            if condition():
                return
            try:
                new = self.program.read_nonblocking(2**16, timeout=0.05)
            except pexpect.TIMEOUT:
                continue
            except pexpect.EOF:
                break
            self.written += new
            self._emulator.feed(new)
        assert condition(), f"{what} did not happen; the screen:\n" + "\n".join(self.shown())

    def until_shown(self, text: str) -> None:
        self.until(lambda: any(text in line for line in self.shown()), f"{text!r} on the screen")


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One for all tests; each leaves the prompt empty."""
    terminal = Terminal(tmp_path_factory.mktemp("terminal"))
    terminal.until_shown("SPEC auto")
    terminal.until_shown("tiny-1b")
    yield terminal
    terminal.program.close(force=True)


def emptied(terminal: Terminal) -> None:
    terminal.send(b"\x03")
    terminal.until_shown("Ask anything")


def test_bytes_that_are_no_text_do_not_end_the_chat(terminal: Terminal) -> None:
    def typed() -> bool:
        terminal.send(b"k")  # one that comes in the same moment may be lost with them
        return "k" in terminal.prompt()

    terminal.send(b"\x1b[M \xe9\xe9\xff\xfe")
    terminal.until(typed, "a key in the prompt")
    emptied(terminal)


def test_the_mouse_is_counted_in_cells_also_where_a_terminal_tells_its_size_in_pixels(terminal: Terminal) -> None:
    terminal.send(SUPPORTS_SIZE_REPORTS)
    terminal.type("x")
    assert b"\x1b[?2048h" not in terminal.written and b"\x1b[?1016h" not in terminal.written
    emptied(terminal)


def test_wide_characters_taken_back_over_a_wrap_and_a_resize_leave_no_ghosts(terminal: Terminal) -> None:
    words = "日本語のテキスト" * 8
    terminal.type(words)
    assert len(terminal.lines()) == 2
    terminal.resize(70, HEIGHT)
    terminal.until(lambda: terminal.prompt() == words, "all words in a smaller window")
    terminal.send(b"\x7f" * 60)
    terminal.until(lambda: terminal.lines() == [words[:4]], "four characters and nothing else")
    terminal.resize(WIDTH, HEIGHT)
    terminal.until(lambda: terminal.lines() == [words[:4]], "the same in a larger window")
    emptied(terminal)


def test_a_streamed_answer_paints_what_changed_and_never_clears_the_screen(terminal: Terminal) -> None:
    terminal.type("count")
    start = len(terminal.written)
    terminal.enter()
    terminal.until(lambda: re.search(rb"word\d\d", terminal.written[start:]), "a screenful of text")
    terminal.send(b"\x1b")
    terminal.until_shown("stopped")
    written = terminal.written[start:]
    assert not any(clearing in written for clearing in (b"\x1b[2J", b"\x1b[J", b"\x1bc"))


def test_pastes_are_asked_for_with_brackets_and_every_mode_is_taken_back_at_the_end(terminal: Terminal) -> None:
    assert b"\x1b[?2004h" in terminal.written and b"\x1b[>25u" in terminal.written
    terminal.send(b"\x11")
    terminal.until(lambda: b"\x1b[?1049l" in terminal.written, "the end")
    for on, off in ((b"\x1b[?2004h", b"\x1b[?2004l"), (b"\x1b[>25u", b"\x1b[<u"), (b"\x1b[?1003h", b"\x1b[?1003l")):
        assert terminal.written.rfind(off) > terminal.written.rfind(on)

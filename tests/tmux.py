"""A real terminal for tests: tmux on a server of its own, with everything that the program wrote kept."""

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

MODES_RESTORED = ("\x1b[?1049l", "\x1b[?2004l", "\x1b[?1003l", "\x1b[?1006l", "\x1b[?25h")
"""Alternate screen, bracketed paste and mouse tracking off, cursor shown."""


FRAMES = "│▌"
"""What stands beside the lines of prompts, messages and notices."""


class Tmux:
    """One window with one program; the program's exit status is kept after it ended."""

    def __init__(
        self, folder: Path, command: Sequence[str], environment: Mapping[str, str], size: tuple[int, int]
    ) -> None:
        self._socket = folder / f"tmux-{uuid.uuid4().hex[:8]}"
        self._log = folder / "output.log"
        self._pasted = folder / "pasted.txt"
        self._status = folder / "status"
        script = folder / "run.sh"
        words = " ".join(_quoted(word) for word in command)
        log, status = _quoted(str(self._log)), _quoted(str(self._status))
        script.write_text(
            f'tmux -S {_quoted(str(self._socket))} pipe-pane -o "cat >> {log}"\n'
            f"{words} & pid=$!; echo $pid > {status}.pid; fg >/dev/null\necho $? > {status}\nexec cat\n"
        )
        width, height = size
        self._tmux(
            *("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height)),
            *("bash", "-m", str(script)),
            environment={**os.environ, **environment, "TERM": "xterm-256color"},
        )

    def _tmux(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    def screen(self) -> str:
        """What stands on the screen now; spaces that don't break count as spaces."""
        return self._tmux("capture-pane", "-p").replace("\xa0", " ")

    def cursor(self) -> tuple[int, int]:
        """Column and row of the terminal's cursor, from 0."""
        column, _, row = self._tmux("display-message", "-p", "#{cursor_x},#{cursor_y}").strip().partition(",")
        return int(column), int(row)

    def written(self) -> str:
        """Every byte that the program wrote so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def keys(self, *names: str) -> None:
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Types as a person does: each key once the one before it shows, and not so soon that they make a burst."""
        for character in text:
            self._press(character)
            time.sleep(0.06)

    def _press(self, character: str) -> None:
        before = self._looks()
        self._tmux("send-keys", "-l", character)
        self.until(lambda: self._looks() != before, f"showing {character!r}")

    def _looks(self) -> str:
        """The screen and the place of the cursor."""
        return self._tmux("capture-pane", "-p", ";", "display-message", "-p", "#{cursor_x},#{cursor_y}")

    def enter(self) -> None:
        """Presses Enter on its own: what comes right behind a burst of keys counts as part of it."""
        time.sleep(0.4)
        self.keys("Enter")

    def wheel(self, up: bool, notches: int = 1) -> None:
        """Turns the mouse wheel, over the upper left of the screen."""
        self._tmux("send-keys", "-l", f"\x1b[<{64 if up else 65};10;8M" * notches)

    def paste(self, text: str, bracketed: bool, then: str = "") -> None:
        """Pastes, and presses the key `then` in the same moment."""
        self._pasted.write_bytes(text.encode())
        self._tmux("load-buffer", str(self._pasted))
        press = [";", "send-keys", then] if then else []
        self._tmux("paste-buffer", *(["-p"] if bracketed else []), *press)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    @property
    def pid(self) -> int:
        return int(self._status.with_suffix(".pid").read_text())

    def until(self, condition: Callable[[], object], what: str, seconds: float = 60) -> None:
        """Waits until `condition` holds; the limit only ends a test that fails."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not happen; the screen:\n{self.screen()}")
            time.sleep(0.05)

    def until_written(self, text: str, since: int = 0, seconds: float = 60) -> None:
        """Waits for what may be gone from the screen again: `text` was written behind the first `since` characters."""
        self.until(lambda: text in self.written()[since:], f"writing {text!r}", seconds)

    def until_shown(self, *texts: str, seconds: float = 60) -> None:
        """Waits until every text stands on the screen, on one line or broken between words: paths differ in length."""
        self.until(lambda: self._shows(texts), f"{texts} on the screen", seconds)

    def _shows(self, texts: Sequence[str]) -> bool:
        screen = self.screen()
        flowing = " ".join(word for word in screen.split() if word not in FRAMES)
        return all(text in screen or text in flowing for text in texts)

    def ended(self) -> int:
        """Waits for the end of the program and returns its exit status."""
        self.until(lambda: self._status.exists() and self._status.read_text().strip(), "the end of the program")
        return int(self._status.read_text())

    def close(self) -> None:
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False, capture_output=True)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"

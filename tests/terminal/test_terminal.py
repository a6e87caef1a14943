"""The terminal UI in a real terminal, on a scripted engine."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tmux import MODES_RESTORED, Tmux, needs_tmux

pytestmark = needs_tmux

_TESTS = Path(__file__).resolve().parent.parent
LINES = "".join(f"line {number}: 日本語 🙂 [/b]\n" for number in range(300))


class Window(Tmux):
    def __init__(self, folder: Path, **environment: str) -> None:
        self._requests = folder / "requests.jsonl"
        paths = os.pathsep.join([str(_TESTS), *(path for path in sys.path if path)])
        command = [sys.executable, str(_TESTS / "terminal" / "fake_chat.py")]
        settings = {"PYTHONPATH": paths, "REQUESTS": str(self._requests), **environment}
        super().__init__(folder, command, settings, (100, 30))

    def asked(self) -> list[dict[str, Any]]:
        text = self._requests.read_text() if self._requests.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def prompts(self) -> list[str]:
        return [entry["prompt"] for entry in self.asked() if "prompt" in entry]

    def until_counted(self, number: int) -> None:
        """Waits until an answer that counts got this far; a busy screen shows some numbers only."""
        self.until(
            lambda: any(int(found) >= number for found in re.findall(r"word(\d+)", self.screen())), f"word{number}"
        )

    def send(self, text: str) -> None:
        self.type(text)
        self.until_shown(text)
        self.enter()

    def restored(self) -> bool:
        """Whether the last thing said about each mode is that it is off."""
        written = self.written()
        return all(
            written.rfind(off) > written.rfind(off[:-1] + ("l" if off.endswith("h") else "h")) for off in MODES_RESTORED
        )


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Window]:
    window = Window(tmp_path)
    try:
        window.until_shown("specchat", "SPEC auto", "tiny-1b")
        yield window
    finally:
        window.close()


def test_the_list_of_models_and_the_settings_open_by_their_keys_and_leave_the_prompt_as_it_was(window: Window) -> None:
    window.type("half a thought")
    window.until_shown("half a thought")
    window.keys("C-o")
    window.until_shown("qwen2.5-coder-32b", "esc close")
    window.type("smol")
    window.until_shown("SmolLM2")
    window.keys("Escape")
    window.until_shown("half a thought")
    window.keys("F2")
    window.until_shown("Settings of this chat", "Temperature")
    window.keys("Escape")
    window.until_shown("half a thought")


def test_type_stream_toggle_stop_and_quit(window: Window) -> None:
    window.send("count on")
    window.until_counted(5)
    window.keys("C-t")
    window.until_shown("SPEC off")
    window.keys("C-t")
    window.until_shown("SPEC auto")
    window.keys("Escape")
    window.until_shown("stopped")
    assert [entry["adjust"] for entry in window.asked() if "adjust" in entry] == ["off", "auto"]
    window.keys("C-c", "C-c")  # at once: a first one counts for some seconds only
    assert window.ended() == 0
    window.until(window.restored, "the restoring of the terminal's modes")


def test_a_bracketed_paste_is_one_chip_and_is_sent_whole(window: Window) -> None:
    window.paste(LINES, bracketed=True)
    window.until_shown("[Pasted #1: 300 lines]")
    window.type(" ok")
    window.enter()
    window.until(window.prompts, "a request")
    assert window.prompts() == [f"{LINES} ok"]


def test_a_paste_without_brackets_is_one_prompt_too(window: Window) -> None:
    window.paste(LINES, bracketed=False)
    window.until_shown("[Pasted #1: 300 lines]")
    assert window.prompts() == []
    window.type(" ok")
    window.enter()
    window.until(window.prompts, "a request")
    assert window.prompts() == [f"{LINES} ok"]


EDITOR = """import sys
from pathlib import Path

file = Path(sys.argv[1])
text = file.read_text()
if "give up" in text:
    sys.exit(1)
assert sys.stdout.isatty()
file.write_text(text.replace("line 5:", "line FIVE:").rstrip("\\n") + "\\n")
"""


@pytest.fixture
def editing(tmp_path: Path) -> Iterator[Window]:
    (tmp_path / "editor.py").write_text(EDITOR)
    window = Window(tmp_path, VISUAL=f"{sys.executable} {tmp_path / 'editor.py'}")
    try:
        window.until_shown("specchat", "SPEC auto", "tiny-1b")
        yield window
    finally:
        window.close()


def test_the_editor_gets_the_pasted_text_and_gives_it_back_as_a_chip(editing: Window) -> None:
    editing.paste(LINES, bracketed=True)
    editing.until_shown("[Pasted #1: 300 lines]")
    left = editing.written().count("\x1b[?1049l")
    editing.keys("C-g")
    editing.until(lambda: editing.written().count("\x1b[?1049l") > left, "leaving the screen to the editor")
    editing.until(
        lambda: editing.written().rfind("\x1b[?1049h") > editing.written().rfind("\x1b[?1049l"), "coming back"
    )
    editing.until_shown("[Pasted #1: 300 lines]")
    editing.type(" ok")
    editing.until_shown("lines] ok")
    editing.enter()
    editing.until(editing.prompts, "a request")
    assert editing.prompts() == [LINES.replace("line 5:", "line FIVE:") + " ok"]


def test_an_editor_that_fails_is_one_sentence_and_the_prompt_stays(editing: Window) -> None:
    editing.type("give up")
    editing.until_shown("give up")
    editing.keys("C-x", "C-e")
    editing.until_shown("ended with exit status 1, so the prompt stays as it was.", "give up")
    assert editing.prompts() == []


def test_the_enter_that_comes_right_behind_a_paste_does_not_send(window: Window) -> None:
    window.paste("one\ntwo\n", bracketed=True, then="Enter")
    window.until_shown("two")
    window.type("x")
    window.until_shown("x")
    assert window.prompts() == []
    window.enter()
    window.until(window.prompts, "a request")
    assert window.prompts() == ["one\ntwo\nx"]


@pytest.mark.parametrize("bracketed", [True, False])
def test_control_characters_in_a_paste_neither_act_nor_reach_terminal_or_model(window: Window, bracketed: bool) -> None:
    window.paste("a\x07b \x1b]0;title\x07c\x0fd\n" + "more\n" * 20, bracketed=bracketed)
    window.until_shown("lines]")
    assert window.prompts() == []
    window.type("end")
    window.until_shown("end")
    window.enter()
    window.until(window.prompts, "a request")
    (prompt,) = window.prompts()
    assert not set(prompt).intersection("\x07\x1b\x00\x0f") and prompt.count("more") == 20
    assert "\x1b]0;title" not in window.written()


def test_prompts_survive_a_window_that_is_killed(tmp_path: Path) -> None:
    for known in (False, True):
        window = Window(tmp_path, HISTORY=str(tmp_path / "history.jsonl"))
        try:
            window.until_shown("SPEC auto", "tiny-1b")
            if known:
                window.keys("Up")
                window.until_shown("remember me")
            else:
                window.send("remember me")
                window.until(window.prompts, "a request")
                os.kill(window.pid, signal.SIGKILL)
        finally:
            window.close()


def test_a_file_is_attached_by_letters_of_its_name(window: Window) -> None:
    window.type("@pyprojt")
    window.until_shown("pyproject.toml", "tab attaches")
    window.keys("Tab")
    window.until_shown("[@pyproject.toml:")
    window.enter()
    window.until(window.prompts, "a request")
    assert window.prompts()[0].startswith("pyproject.toml:\n```\n[build-system]\n")


def test_a_megabyte_is_pasted_and_typing_goes_on(window: Window) -> None:
    text = "0123456789abcdef\n" * 62_500
    window.paste(text, bracketed=True)
    window.until_shown("[Pasted #1: 62,500 lines]")
    window.type("x")
    window.until_shown("lines]x")


def test_resizing_keeps_prompt_and_status_on_the_screen(window: Window) -> None:
    window.send("count")
    window.until_counted(5)
    for width, height in ((60, 16), (140, 40), (60, 16)):
        window.resize(width, height)
        window.until_shown("SPEC auto", "Ask anything")
    window.until_shown("word119", "120 tokens")


def test_the_view_stays_where_one_scrolls_while_text_streams_and_follows_again_at_the_end(window: Window) -> None:
    def view() -> list[str]:
        """Lines without the scrollbar, which goes on telling how much there is."""
        return [line[:90].rstrip() for line in window.screen().splitlines()[:20]]

    def context() -> int:
        """Tokens so far, as the status bar has them."""
        return int(re.findall(r"([\d,]+)/8,192 ctx", window.screen())[-1].replace(",", ""))

    def rests(tokens: int) -> bool:
        """Whether the view stays the same while so many more tokens come."""
        seen, end = view(), context() + tokens
        while context() < end:
            if view() != seen:
                return False
        return view() == seen

    window.send("count on")
    window.until_counted(40)
    window.keys("PPage", "PPage")
    window.until_shown("↓ new text")
    window.until(lambda: rests(20), "a view that rests")
    assert "word" in "".join(view())
    assert rests(60)
    seen = view()
    window.wheel(up=True)
    window.until(lambda: view() != seen, "a move by the wheel")
    window.keys("C-End")
    window.until(lambda: "↓ new text" not in window.screen(), "the end of the chat")
    seen = view()
    window.until(lambda: view() != seen, "more words, followed by themselves")
    window.keys("PPage")
    window.until_shown("↓ new text")

    def reached() -> bool:
        window.wheel(up=False, notches=20)
        return "↓ new text" not in window.screen()

    window.until(reached, "the end of the chat, reached by the wheel")
    window.keys("Escape")
    window.until_shown("stopped")


def test_who_wrote_what_is_shown_in_the_middle_of_an_answer(window: Window) -> None:
    window.send("count on")
    window.until_counted(5)
    window.keys("C-l")
    window.until_shown("target", "(100%)")
    window.keys("C-l")
    window.until(lambda: "(100%)" not in window.screen(), "Markdown again")
    window.keys("Escape")
    window.until_shown("stopped")


def test_a_crash_of_the_engine_leaves_the_chat_alive(window: Window) -> None:
    window.send("crash")
    window.until_shown("The engine ended", "broken off")
    window.send("again")
    window.until(lambda: window.prompts() == ["crash", "again"], "the next request")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order_with_the_modes_restored(window: Window, number: signal.Signals) -> None:
    window.send("count on")
    window.until_counted(5)
    os.kill(window.pid, number)
    assert window.ended() == 128 + number
    window.until(window.restored, "the restoring of the terminal's modes")


def test_a_terminal_that_is_closed_mid_answer_leaves_no_process_behind(window: Window) -> None:
    window.send("count on")
    window.until_counted(5)
    pid = window.pid
    window.close()
    end = time.monotonic() + 60  # only ends a test that fails
    while running(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not running(pid)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_fault_of_the_ui_itself_restores_the_modes_and_leaves_the_word_to_the_command_line(window: Window) -> None:
    window.send("boom")
    assert window.ended() == 1
    window.until(window.restored, "the restoring of the terminal's modes")
    after = window.written().rpartition(MODES_RESTORED[0])[2]
    assert "It failed: a fault in the UI." in after
    assert "Traceback" not in after


def test_no_color_is_respected(tmp_path: Path) -> None:
    window = Window(tmp_path, NO_COLOR="1")
    try:
        window.until_shown("SPEC auto")
        colours = {code for code in ("38;2;143", "38;2;216") if code in window.written()}
        assert not colours
    finally:
        window.close()

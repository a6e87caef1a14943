"""Where the user types: multi-line, with history, suggestions, and chips in place of long pastes and of files."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from specchat.tui import attachments, editor
from specchat.tui.attachments import Attachment
from specchat.tui.bursts import BURST_QUIET_S, ONE_PASTE_S, Burst
from specchat.tui.chips import command_of, file_label, plain, prompt_of, spans, spelled_out, used
from specchat.tui.commands import Controls
from specchat.tui.history import Entry, History
from specchat.tui.pastes import CHIP_LINES, ENTER_AFTER_PASTE_S, normalised
from specchat.tui.suggestions import begins_command, is_command
from specchat.tui.widgets.chip_area import ChipArea
from specchat.tui.widgets.suggesting import Suggesting
from specengine.errors import EngineError

BYTES_A_TOKEN = 4
"""Of common text; code has fewer, so what is more than this is sure to be too much."""
_KEYS_OF_TEXT = {"enter": "\n", "ctrl+j": "\n", "tab": "\t"}


class Prompt(ChipArea):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="prompt.send"),
        Binding("ctrl+j,shift+enter,alt+enter,ctrl+enter", "newline", "New line", id="prompt.newline"),
        Binding("up", "earlier", "Earlier prompt, from the first line", id="prompt.earlier"),
        Binding("down", "later", "Later prompt, from the last line", id="prompt.later"),
        Binding("ctrl+up,alt+p", "search", "Find an earlier prompt by its words", id="prompt.search"),
        Binding("ctrl+g", "edit", "Edit in your editor (also ctrl+x ctrl+e)", id="prompt.edit"),
        Binding("ctrl+x", "cut_or_edit", show=False),
        Binding("tab", "expand", "Take a suggestion, or open the chip beside the cursor", id="prompt.expand"),
        Binding("end,ctrl+e", "end", "End of line, then of the chat", show=False, id="prompt.end"),
        Binding("pageup", "screen.page(-1)", show=False, id="chat.up"),
        Binding("pagedown", "screen.page(1)", show=False, id="chat.down"),
        Binding("ctrl+c,super+c", "screen.interrupt", show=False, id="chat.interrupt"),
        Binding("ctrl+d", "delete_or_quit", show=False),
    ]

    class Submitted(Message):
        """The user sent `prompt`; `shown` is the same with its chips."""

        def __init__(self, prompt: str, shown: str) -> None:
            super().__init__()
            self.prompt = prompt
            self.shown = shown

    def __init__(
        self,
        controls: Controls,
        history: History | None = None,
        chip_lines: int = CHIP_LINES,
        clock: Callable[[], float] = lambda: Message().time,
    ) -> None:
        """`clock` must be the one that keys are stamped with; it differs between systems."""
        super().__init__("Ask anything, or paste some code", chip_lines)
        self.clock = clock
        self.context: int | None = None
        """Tokens that the loaded model's context holds."""
        self.history_of_prompts = history or History()
        self.suggesting = Suggesting(self, controls, self.history_of_prompts, _folder())
        self._warned = ""
        """The prompt that the user was warned about: sent again, it is sent."""
        self._chord = False
        """Whether ctrl+x was the last key."""
        self._burst = Burst()
        self._burst_timer: Timer | None = None
        self._burst_chip: tuple[str, float] | None = None
        """Label and time of the chip that the last burst became."""
        self._paste_ended_s = float("-inf")
        """When a bracketed paste that ends in a newline arrived."""

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, lambda _: self._moved())
        self.screen.mount(self.suggesting.list)

    def remember(self, text: str) -> None:
        """Adds a prompt that was not typed here to the history."""
        self._remember(Entry(text, {}))

    def bring_back(self, shown: str) -> None:
        """Shows a sent prompt again, chips and all, unless another one is being typed."""
        if not self.text and (entry := self.history_of_prompts.find(shown)):
            self.recall(entry.text, entry.chips)

    def empty(self) -> None:
        self.recall("", {})

    async def action_send(self) -> None:
        if not self.text.strip() or (prompt := self._prepared()) is None:
            return
        chips = used(self.text, self.chips)
        shown = plain(self.text, chips)
        self._remember(Entry(self.text, chips))
        self.empty()
        self.post_message(self.Submitted(prompt, shown))

    def action_newline(self) -> None:
        self.type("\n")

    def action_expand(self) -> None:
        self.open_chip()

    def action_search(self) -> None:
        self.suggesting.search()

    def search(self, words: str) -> None:
        """Looks for an earlier prompt that holds these words."""
        self.recall(words, {})
        self.suggesting.search()

    def action_cut_or_edit(self) -> None:
        """Cuts what is selected; else ctrl+e may follow."""
        if self.selected_text:
            self.action_cut()
        else:
            self._chord = True

    def action_edit(self) -> None:
        """Lets the user's own editor take over the terminal."""
        text = spelled_out(self.text, self.chips)
        failure: EngineError | None = None
        written = text
        try:
            command = editor.command()
            with self.app.suspend():
                try:
                    written = editor.edited(text, command)
                except EngineError as error:  # an exception here would leave the terminal to the editor
                    failure = error
        except EngineError as error:
            failure = error
        except SuspendNotSupported:
            failure = EngineError("An editor can't take over this terminal.")
        if failure:
            self.post_message(self.Complaint(str(failure)))
        elif written != text:
            self._take_over(normalised(written))

    def _take_over(self, written: str) -> None:
        """Shows what was written in the editor, with the pastes in it as chips again."""
        parts = [self.closed_again(part) for part in editor.closed(written, self.text, self.chips)]
        self.replace("".join(parts), (0, 0), self.document.end, maintain_selection_offset=False)

    def action_earlier(self) -> None:
        if not self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_cursor_up()
        elif entry := self.history_of_prompts.earlier(Entry(self.text, self.chips)):
            self.recall(entry.text, entry.chips)

    def action_later(self) -> None:
        if not self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_cursor_down()
        elif entry := self.history_of_prompts.later():
            self.recall(entry.text, entry.chips)

    async def action_end(self) -> None:
        if self.cursor_location == self.document.end:
            await self.run_action("screen.follow")
        else:
            self.action_cursor_line_end()

    async def action_delete_or_quit(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            await self.run_action("screen.arm_quit('chat.end')")

    async def _on_key(self, event: events.Key) -> None:
        chord, self._chord = self._chord, False
        if chord and event.key == "ctrl+e":
            event.stop()
            event.prevent_default()
            self.action_edit()
            return
        now_s = event.time  # stamped on arrival: keys that waited for a busy screen still count as one burst
        character = _KEYS_OF_TEXT.get(event.key) or (event.character if event.is_printable else None)
        if character is None and self._burst.holds_back(event.key, now_s):
            event.stop()
            event.prevent_default()
            return
        if character is None:
            self._end_burst()
        elif begins_command(self.text):
            self._burst.forget()
        elif self._burst.feed(character, now_s):
            event.stop()
            event.prevent_default()
            self._hold(now_s)
            return
        if self.suggesting.key(event.key):
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.prevent_default()
            if now_s - self._paste_ended_s <= ENTER_AFTER_PASTE_S:
                event.stop()
            elif self._burst.guards_enter(now_s):
                event.stop()
                self.type("\n")

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._end_burst()
        self._burst_chip = None
        text = normalised(event.text)
        if text.endswith("\n"):
            self._paste_ended_s = event.time
        self.insert_pasted(text)

    @on(ChipArea.Changed)
    @on(ChipArea.SelectionChanged)
    def _changed(self) -> None:
        self.suggesting.refresh()

    def _moved(self) -> None:
        """Keeps the list above the prompt, and the terminal's cursor at the caret: input methods open their window
        there."""
        self.suggesting.list.place(self.region)
        if self.has_focus:
            self.app.cursor_position = self.cursor_screen_offset

    def _remember(self, entry: Entry) -> None:
        try:
            self.history_of_prompts.add(entry)
        except EngineError as error:
            self.post_message(self.Complaint(str(error)))

    def _prepared(self) -> str | None:
        """The prompt as the model gets it; None, and a complaint, where something should be known before."""
        contents: dict[Path, str] = {}
        changed: list[Attachment] = []
        try:
            for label, stands_for in used(self.text, self.chips).items():
                if isinstance(stands_for, Attachment):
                    now = attachments.read(stands_for.path, stands_for.name)
                    contents[stands_for.path] = now.text
                    if now.file != stands_for:
                        changed.append(now.file)
                        self._relabel(label, now.file)
        except EngineError as error:
            self.post_message(self.Complaint(str(error)))
            return None
        if changed:
            said = " and ".join(f"{file.name} (now {file.size_in_words})" for file in changed)
            self.post_message(
                self.Complaint(f"Changed since it was attached: {said}. Press enter again to send it as it is now.")
            )
            return None
        word = self.text.split(maxsplit=1)[0]
        if word.startswith("/") and is_command(word[1:]):
            return command_of(self.text, self.chips, contents)
        prompt = prompt_of(self.text, self.chips, contents)
        return prompt if self._fits(prompt) else None

    def _relabel(self, label: str, file: Attachment) -> None:
        """Puts a file's new chip in the place of its old one."""
        new = file_label(file)
        self.chips[new] = file
        for row in range(self.document.line_count):
            for start, end in reversed(list(spans(self.document.get_line(row), {label: file}))):
                self.replace(new, (row, start), (row, end))

    def _fits(self, prompt: str) -> bool:
        """Whether the prompt may fit the context; the user may send it all the same, by sending it again."""
        tokens = len(prompt.encode("utf-8", "replace")) // BYTES_A_TOKEN
        if self.context is None or tokens < self.context or self._warned == prompt:
            return True
        self._warned = prompt
        self.post_message(
            self.Complaint(
                f"This prompt has about {tokens:,} tokens and the context holds {self.context:,}: shorten it, load the "
                "model with a larger context (--ctx), or press enter again to send it all the same."
            )
        )
        return False

    def _hold(self, now_s: float) -> None:
        """Takes back what was typed of a burst before it was known, and waits for its end."""
        self._take_back(self._burst.typed.replace("\t", ""))
        if self._burst_timer is None:
            if self._burst_chip and now_s - self._burst_chip[1] > ONE_PASTE_S:
                self._burst_chip = None
            self._burst_timer = self.set_interval(BURST_QUIET_S / 2, self._end_quiet_burst)

    def _take_back(self, typed: str) -> None:
        """Removes `typed` from before the cursor, if it stands there."""
        row, column = self.cursor_location
        first = row - typed.count("\n")
        if not typed or first < 0 or not self.get_text_range((first, 0), (row, column)).endswith(typed):
            return
        head = typed.partition("\n")[0]
        end = column if first == row else len(self.document.get_line(first))
        self.delete((first, end - len(head)), (row, column))

    def _end_quiet_burst(self) -> None:
        if self._burst.over(self.clock()):
            self._end_burst()

    def _end_burst(self) -> None:
        if self._burst_timer is not None:
            self._burst_timer.stop()
            self._burst_timer = None
        text = normalised(self._burst.take())
        if text:
            label = self.insert_pasted(self._earlier_part() + text)
            self._burst_chip = (label, self.clock()) if label else None

    def _earlier_part(self) -> str:
        """Takes the chip away that a burst just before became, if it stands before the cursor, and returns its text:
        a terminal under load delivers one paste in several bursts."""
        label = self._burst_chip[0] if self._burst_chip else ""
        row, column = self.cursor_location
        if not label or not self.document.get_line(row)[:column].endswith(label):
            return ""
        self._take_back(label)
        self._number -= 1
        text = self.chips.pop(label)
        assert isinstance(text, str)
        return text


def _folder() -> Path:
    """The current folder, or the user's own where that was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()

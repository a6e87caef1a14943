"""Where the user types: multi-line, with history, suggestions, and chips in place of long pastes and of files."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.message import Message

from specchat.tui import attachments, editor
from specchat.tui.attachments import Attachment
from specchat.tui.chips import command_of, file_label, plain, prompt_of, spans, spelled_out, used
from specchat.tui.commands import Controls
from specchat.tui.history import Entry, History
from specchat.tui.pastes import CHIP_LINES, normalised
from specchat.tui.suggestions import begins_command, is_command
from specchat.tui.widgets.at_once import acted
from specchat.tui.widgets.paste_area import PasteArea
from specchat.tui.widgets.suggesting import Suggesting
from specengine.context_size import shorter_or_larger
from specengine.errors import EngineError
from specengine.protocol import Loaded

BYTES_A_TOKEN = 4
"""Of common text; code has fewer, so what is more than this is sure to be too much."""


class Prompt(PasteArea):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send", id="prompt.send"),
        Binding("ctrl+j,shift+enter,alt+enter,ctrl+enter", "newline", "New line", id="prompt.newline"),
        Binding("up", "earlier", "Earlier prompt, from the first line", id="prompt.earlier"),
        Binding("down", "later", "Later prompt, from the last line", id="prompt.later"),
        Binding("ctrl+up,alt+p", "search", "Find an earlier prompt by its words", id="prompt.search"),
        Binding("ctrl+g", "edit", "Edit in your editor (also ctrl+x ctrl+e)", id="prompt.edit"),
        Binding("ctrl+x", "cut_selected", show=False),
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
        super().__init__("Ask anything, or paste some code", chip_lines, clock)
        self.loaded: Loaded | None = None
        """The model whose context it goes into."""
        self.history_of_prompts = history or History()
        self.suggesting = Suggesting(self, controls, self.history_of_prompts, _folder())
        self._warned = 0
        """Tokens of the prompt that the user was warned of: sent again without being longer, it is sent."""
        self._chord = False
        """Whether ctrl+x was the last key."""

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

    def put_aside(self) -> None:
        """Empties it; what was typed is the newest prompt of the history then."""
        if self.text.strip() and not self.history_of_prompts.shows(self.text):
            self._remember(Entry(self.text, used(self.text, self.chips)))
        self.empty()

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

    def action_cut_selected(self) -> None:
        """Cuts what is selected; without anything, ctrl+e may follow."""
        if self.selected_text:
            self.action_cut()

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
        chord, self._chord = self._chord, event.key == "ctrl+x" and not self.selected_text
        if chord and event.key == "ctrl+e":
            event.stop()
            event.prevent_default()
            self.action_edit()
            return
        if self.takes(event, free=begins_command(self.text)) or self.suggesting.key(event.key):
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.prevent_default()
            if self.keeps_enter(event.time):
                event.stop()
            else:
                await acted(self, event)
        elif not event.is_printable:
            await acted(self, event)

    @on(PasteArea.Changed)
    @on(PasteArea.SelectionChanged)
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
        if self.loaded is None or tokens < self.loaded.n_ctx:
            self._warned = 0
            return True
        if tokens <= self._warned:
            return True
        self._warned = tokens
        self.post_message(
            self.Complaint(
                f"This prompt has about {tokens:,} tokens and the context holds {self.loaded.n_ctx:,}: "
                f"{shorter_or_larger(tokens, self.loaded.n_ctx_trained)} Press enter again to send it all the same."
            )
        )
        return False


def _folder() -> Path:
    """The current folder, or the user's own where that was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return Path.home()

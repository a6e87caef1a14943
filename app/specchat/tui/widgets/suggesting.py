"""Between the prompt and the list above it: when the list shows, what it shows, and which keys it takes."""

import asyncio
from functools import partial
from pathlib import Path

from textual.widgets.text_area import Location

from specchat.tui import suggestions
from specchat.tui.background import begin
from specchat.tui.commands import Controls, parse
from specchat.tui.files import Files
from specchat.tui.history import History
from specchat.tui.suggestions import Suggestion, Wanted, wanted
from specchat.tui.widgets.chip_area import ChipArea
from specchat.tui.widgets.suggestions import Suggestions
from specengine.errors import EngineError

_HINTS = {
    "command": "tab completes · enter runs · esc closes",
    "argument": "tab completes · enter runs · esc closes",
    "file": "tab attaches · ↓ chooses · esc closes",
    "prompt": "enter takes it · typing searches · esc closes",
}


class Suggesting:
    """Belongs to one prompt."""

    def __init__(self, prompt: ChipArea, controls: Controls, history: History, folder: Path) -> None:
        self._prompt = prompt
        self._controls = controls
        self._history = history
        self._files = Files(folder)
        self._asked: Wanted | None = None
        """What the list was made for."""
        self._searching = False
        """Whether the text is words to look for in the history."""
        self._dismissed: tuple[int, str, int] | None = None
        """Row, kind and start of what the user wants no list for."""
        self.list = Suggestions(self._take)

    def search(self) -> None:
        """Looks for the prompt's words in earlier prompts, from now on while they change."""
        self._searching = True
        self.refresh()

    def refresh(self) -> None:
        """The text or the cursor changed."""
        row, column = self._prompt.cursor_location
        asked = None
        if self._searching:
            asked = Wanted("prompt", 0, self._prompt.text)
        elif self._history.shows(self._prompt.text):
            pass  # the arrow keys are on their way through the history
        elif not self._prompt.selected_text and not self._prompt.beside_chip:
            line = self._prompt.document.get_line(row)
            asked = wanted(line[:column], self._prompt.document.line_count == 1)
        if asked is None:
            self._dismissed = None
        if asked is None or self._dismissed == (row, asked.kind, asked.start):
            self._asked = None
            self.list.close()
        elif asked != self._asked:
            self._asked = asked
            self._suggest(asked)

    def key(self, key: str) -> bool:
        """Whether the list takes this key. Enter is left to the prompt where what stands there is to be sent."""
        if not self.list.open or self._asked is None:
            return False
        match key:
            case "up" | "down":
                self.list.move(1 if key == "down" else -1)
            case "escape" if self._searching:
                self._searching = False
                self.refresh()
            case "escape":
                self._dismissed = (self._prompt.cursor_location[0], self._asked.kind, self._asked.start)
                self.refresh()
            case "tab":
                self._take(self.list.chosen or self.list.items[0])
            case "enter":
                return self._entered(self._asked)
            case _:
                return False
        return True

    def _entered(self, asked: Wanted) -> bool:
        chosen = self.list.chosen
        if asked.kind == "file":
            chosen = chosen or next((item for item in self.list.items if suggestions.surely(item, asked)), None)
            if chosen:
                self._take(chosen)
            return chosen is not None
        if asked.kind == "prompt":
            self._take(chosen or self.list.items[0])
            return True
        if chosen is None or (asked.kind == "command" and suggestions.is_command(asked.typed)):
            return False
        self._take(chosen)
        return bool(self._prompt.text.endswith(" "))  # it waits for an argument

    def _suggest(self, asked: Wanted) -> None:
        match asked.kind:
            case "command":
                self._show(asked, suggestions.commands(asked.typed))
            case "argument":
                assert asked.command is not None
                self._show(asked, suggestions.arguments(asked.command, self._controls, asked.typed))
            case "prompt":
                self._show(asked, suggestions.prompts(self._history, asked.typed))
            case "file":
                begin(self._prompt, partial(self._find, asked), "files", exclusive=True)

    async def _find(self, asked: Wanted) -> None:
        found = await asyncio.to_thread(self._files.matching, asked.typed)
        if self._asked == asked:
            self._show(asked, [Suggestion(path, path) for path in found])

    def _show(self, asked: Wanted, items: list[Suggestion]) -> None:
        # Where enter means "send", nothing is chosen until the user chooses.
        choose = asked.kind in ("command", "prompt") or (asked.kind == "argument" and bool(asked.typed))
        self.list.show(items, self._prompt.region, choose=choose, hint=_HINTS[asked.kind])

    def _take(self, item: Suggestion) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            return
        row, column = self._prompt.cursor_location
        start, end = (row, asked.start), (row, column)
        self.list.close()
        self._searching = False
        match asked.kind:
            case "command":
                command = parse(f"/{item.value}")
                self._put(f"/{item.value}" + (" " if command and command[0].takes_arguments else ""), start, end)
            case "argument":
                self._put(item.value, start, end)
            case "prompt":
                entry = next(entry for entry in self._history.search(asked.typed) if entry.text == item.value)
                self._prompt.recall(entry.text, entry.chips)
            case "file" if item.value.endswith("/"):
                self._put(f"@{item.value}", start, end)
            case "file":
                self._attach(item.value, start, end)

    def _attach(self, shown: str, start: Location, end: Location) -> None:
        try:
            label = self._prompt.chip_of_file(self._files.path(shown), shown)
        except EngineError as error:
            self._prompt.post_message(ChipArea.Complaint(str(error)))
        else:
            self._put(f"{label} ", start, end)

    def _put(self, text: str, start: Location, end: Location) -> None:
        self._prompt.replace(text, start, end, maintain_selection_offset=False)

"""A text area in which chips stand for long texts and files, and change as one."""

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.geometry import Offset
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Location

from specchat.tui import attachments
from specchat.tui.attachments import Attachment
from specchat.tui.chips import Chips, file_label, inside, number_of, pasted_label, spans, touching
from specchat.tui.pastes import ALWAYS_A_CHIP, CHIP_LINES, MOST_SHOWN, worth_a_chip


class ChipArea(TextArea):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"chip-area--chip"}

    class Complaint(Message):
        """Something that the user asked for can't be done; one sentence."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, placeholder: str = "", chip_lines: int = CHIP_LINES) -> None:
        """`chip_lines` lines of a paste make it a chip; 0 makes none."""
        super().__init__(placeholder=placeholder, soft_wrap=True, show_line_numbers=False, highlight_cursor_line=False)
        self.match_cursor_bracket = False
        self.chips: dict[str, str | Attachment] = {}
        """What the chips in the text stand for, and those that undoing may bring back."""
        self.typed_characters = 0
        """Characters that went into the text area since the start: what laying it out has to do with."""
        self._chip_lines = chip_lines
        self._number = 0

    def recall(self, text: str, chips: Chips) -> None:
        """Shows another text and its chips, ready to be edited."""
        self.chips = dict(chips)
        self._number = max(map(number_of, chips), default=0)
        self.load_text(text)
        self.move_cursor(self.document.end)

    def insert_pasted(self, text: str) -> str | None:
        """Types `text`, or a chip in its place; returns the chip. Pasted again right behind its own chip, it takes the
        chip's place instead."""
        if self._expanded_again(text):
            return None
        label = self.chip_of(text) if worth_a_chip(text, self._chip_lines) else None
        self.type(label or text)
        self.scroll_cursor_visible()
        return label

    def chip_of(self, text: str) -> str:
        """A new chip for `text`; it is not in the prompt yet."""
        self._number += 1
        label = pasted_label(self._number, text)
        self.chips[label] = text
        return label

    def chip_of_file(self, path: Path, name: str) -> str:
        """A new chip for a file; it is not in the prompt yet.

        Raises:
            EngineError: the file can't be attached.
        """
        content = attachments.read(path, name)
        if content.complaint:
            self.post_message(self.Complaint(content.complaint))
        label = file_label(content.file)
        self.chips[label] = content.file
        return label

    def closed_again(self, part: str | tuple[str, str]) -> str:
        """A part of an edited text as it stands in the prompt: what a chip stands for now is a chip still, unless it
        is short."""
        label, text = ("", part) if isinstance(part, str) else part
        if self.chips.get(label) == text:
            return label
        if len(text) < ALWAYS_A_CHIP and not (label and worth_a_chip(text, self._chip_lines)):
            return text
        if not label:
            return self.chip_of(text)
        label = pasted_label(number_of(label), text)
        self.chips[label] = text
        return label

    def type(self, text: str) -> None:
        """Puts text in the place of the selection, as keys would."""
        self._replace_via_keyboard(text, *self.selection)

    def open_chip(self) -> bool:
        """Puts the text of the pasted chip beside the cursor in its place; false where there is none."""
        row, column = self.cursor_location
        span = touching(self.document.get_line(row), column, self.chips)
        if span is None or self.selected_text:
            return False
        self._expand((row, span[0]), (row, span[1]))
        return True

    @property
    def beside_chip(self) -> bool:
        row, column = self.cursor_location
        return bool(self.chips) and touching(self.document.get_line(row), column, self.chips) is not None

    def edit(self, edit: Edit) -> EditResult:
        """An edit that reaches into a chip takes it whole; one inside it goes behind it."""
        start, end = sorted((edit.from_location, edit.to_location))
        first, last = self._chip(start), self._chip(end)
        if start == end and first:
            edit.from_location = edit.to_location = first[1]
        elif first or last:
            edit.from_location = first[0] if first else start
            edit.to_location = last[1] if last else end
        self.typed_characters += len(edit.text)
        return super().edit(edit)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Undoing takes lines away before it moves the cursor, and Textual would look for the cursor in between."""
        if self.cursor_location[0] >= self.document.line_count:
            return Offset()
        return super().scroll_cursor_visible(center, animate)

    def load_text(self, text: str) -> None:
        self.typed_characters += len(text)
        super().load_text(text)

    def get_line(self, line_index: int) -> Text:
        line = super().get_line(line_index)
        if self.chips:
            style = self.get_component_rich_style("chip-area--chip", partial=True)
            for start, end in spans(line.plain, self.chips):
                line.stylize(style, start, end)
        return line

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """The cursor steps over a chip, never into it."""
        start, end = event.selection
        if start == end == self.cursor_location and (found := self._chip(end)):
            before = getattr(self, "_cursor_was", end)
            self.move_cursor(found[0] if before >= found[1] else found[1])
        self._cursor_was = self.cursor_location

    def _chip(self, location: Location) -> tuple[Location, Location] | None:
        """Ends of the chip that `location` lies strictly inside of."""
        row, column = location
        if not self.chips or row >= self.document.line_count:
            return None
        found = inside(self.document.get_line(row), column, self.chips)
        return ((row, found[0]), (row, found[1])) if found else None

    def _expand(self, start: Location, end: Location) -> None:
        text = self.chips[self.get_text_range(start, end)]
        if isinstance(text, Attachment):
            self.post_message(self.Complaint(f"{text.name} stays a file: its text is read when the prompt is sent."))
        elif len(text) > MOST_SHOWN:
            self.post_message(
                self.Complaint(f"This paste has {len(text):,} characters, too many to be shown here; ctrl+g edits it.")
            )
        else:
            self.replace(text, start, end, maintain_selection_offset=False)

    def _expanded_again(self, text: str) -> bool:
        row, column = self.cursor_location
        span = touching(self.document.get_line(row), column, self.chips) if self.chips else None
        if span is None or span[1] != column or self.selected_text:
            return False
        if self.chips[self.get_text_range((row, span[0]), (row, column))] != text:
            return False
        self._expand((row, span[0]), (row, column))
        return True

"""The conversation on the screen, and what keys do to the message or the code in it that is chosen."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.message import Message
from textual.widget import Widget

from specchat.tui.refusals import Act
from specchat.tui.widgets.at_once import acted
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.item import ChangeTurn, CopyItem, Item, SaveItem
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.turns_column import TurnsColumn


class Transcript(TurnsColumn, can_focus=False):
    """Takes the focus only while one of its items is chosen: else all keys reach the prompt."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+up,up", "choose(-1)", "Choose the message or block of code above", id="block.above"),
        Binding("alt+down,down", "choose(1)", "Choose the one below", id="block.below"),
        Binding("c", "copy", "Copy what is chosen", id="block.copy"),
        Binding("s", "save", "Save the chosen code to a file", id="block.save"),
        Binding("enter", "open", "Open the chosen thoughts or paste", id="block.open"),
        Binding("e", "change('edit')", "Edit the prompt there, as a new branch", id="block.edit"),
        Binding("r", "change('retry')", "Answer the prompt there again", id="block.retry"),
        Binding("right", "change('next')", "Next branch from there", id="block.next"),
        Binding("left", "change('back')", "Branch before", id="block.back"),
        Binding("escape", "leave", "Back to the prompt", id="block.leave"),
    ]

    class Chose(Message):
        """Another item is chosen, or None is any longer."""

        def __init__(self, item: Item | None) -> None:
            super().__init__()
            self.item = item

    class Refused(Message):
        """What a key asked for can't be done with the chosen item."""

        def __init__(self, act: Act) -> None:
            super().__init__()
            self.act = act

    def __init__(self, prompt: Widget) -> None:
        """Keys that are no commands of the choice go on to `prompt`."""
        super().__init__()
        self._prompt = prompt
        self._coming = 0
        """Keys and pastes on their way here."""
        self.chosen: Item | None = None
        """What keys act on."""
        self._followed = True
        """Whether the view followed the end before an item was chosen."""

    def replace(self, old: Sequence[Item], new: Sequence[Item]) -> None:
        """What is chosen stays so while it is there."""
        super().replace(old, new)
        if self.chosen in old:
            if self.chosen in self.items:
                self.chosen.choose(True)
            else:
                self.action_leave()

    # Choosing what keys act on.

    def action_choose(self, step: int) -> None:
        """Goes to the next item above (-1) or below (1) that can be chosen; below the last one is the prompt."""
        if self.chosen is None and step > 0:
            return
        number = self.items.index(self.chosen) + step if self.chosen else self.last_in_view()
        while 0 <= number < len(self.items) and not self.items[number].choosable:
            number += step
        if 0 <= number < len(self.items):
            self._choose(self.items[number])
        elif step > 0:
            self.action_leave()

    def action_copy(self) -> None:
        if self.chosen:
            self.post_message(CopyItem(self.chosen) if self.chosen.copied else self.Refused("copy"))

    def action_save(self) -> None:
        if self.chosen:
            is_code = isinstance(self.chosen, CodeBlock)
            self.post_message(SaveItem(self.chosen) if is_code else self.Refused("save"))

    def action_open(self) -> None:
        if self.chosen and not self.chosen.open():
            self.post_message(self.Refused("open"))

    def action_change(self, act: Literal["edit", "retry", "next", "back"]) -> None:
        if self.chosen is None:
            return
        if (turn := self.turn_of(self.chosen)) is None:
            self.post_message(self.Refused("change"))
        else:
            self.action_leave()
            self.post_message(ChangeTurn(turn, act))

    def choose_turn(self, turn: int) -> None:
        """Chooses the question of this turn."""
        if question := self._question(turn):
            self._choose(question)

    def turn_of(self, item: Item) -> int | None:
        """The turn that an item belongs to; None where its prompt has not been asked yet."""
        at = self.items.index(item)
        above = (other for other in reversed(self.items[: at + 1]) if isinstance(other, Question))
        question = next(above, None)
        return question.turn if question and not question.queued else None

    def action_leave(self) -> None:
        self._choose(None)

    def post_message(self, message: Message) -> bool:
        taken = super().post_message(message)
        self._coming += taken and isinstance(message, Key | Paste)
        return taken

    async def on_key(self, event: Key) -> None:
        """Whoever types on goes on with the prompt."""
        self._coming -= 1
        if self.chosen is None or (not await acted(self, event) and event.is_printable):
            self._hand_on(event, Key(event.key, event.character))
        self._let_go()

    def on_paste(self, event: Paste) -> None:
        self._coming -= 1
        self._hand_on(event, Paste(event.text))
        self._let_go()

    def on_blur(self) -> None:
        if self.chosen and not self._has_keys:
            self._choose(None)

    @property
    def _has_keys(self) -> bool:
        return self.screen.focused is self

    def _hand_on(self, event: Key | Paste, copy: Key | Paste) -> None:
        """Gives the prompt what is not for here."""
        event.stop()
        if self.chosen:
            self._choose(None)
        copy.time = event.time
        copy._set_forwarded()  # else the app hands it to whatever has the focus, once more
        self._prompt.post_message(copy)

    def _let_go(self) -> None:
        """Leaves the keys to the prompt once none is on its way here: later ones would overtake it."""
        if self.chosen is None and not self._coming:
            self.screen.set_focus(self._prompt)

    def _choose(self, item: Item | None) -> None:
        if self.chosen:
            self.chosen.choose(False)
        elif item:
            self._followed = self.following
            self.release_anchor()
        self.chosen = item
        self.can_focus = item is not None
        if item:
            item.choose(True)
            self.screen.set_focus(self, scroll_visible=False)
            self.reveal(item)
        elif self._followed:
            self.follow()
        self._let_go()
        self.post_message(self.Chose(item))

"""The conversation on the screen: questions, answers and notes in a column."""

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from specchat import chat
from specchat.chat import Conversation
from specchat.sources import tokens_of
from specchat.tui.pace import rest_s
from specchat.tui.refusals import Act
from specchat.tui.session import Asked
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.at_once import acted
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.column import Column
from specchat.tui.widgets.item import ChangeTurn, CopyItem, Item, SaveItem
from specchat.tui.widgets.note import Kind, Note
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.welcome import Welcome


class Transcript(Column, can_focus=False):
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

    class Updated(Message):
        """The streaming answer was brought up to date."""

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
        self.answer: Answer | None = None
        """The answer that streams now."""
        self.answers: list[Answer] = []
        """All of them."""
        self.by_source = False
        """Whether answers are shown as they were written, coloured by who wrote what."""
        self.chosen: Item | None = None
        """What keys act on."""
        self._followed = True
        """Whether the view followed the end before an item was chosen."""
        self._questions: dict[Asked, Question] = {}
        self._timer: Timer | None = None
        self._busy_s = 0.0
        """CPU time of the process when the last update began."""

    def compose(self) -> ComposeResult:
        yield Welcome()
        yield from super().compose()

    def ask(self, asked: Asked, queued: bool, before_others: bool = False) -> None:
        """Shows a prompt; `queued` while its turn has not come, `before_others` above those whose turn has not."""
        before = self._waiting if before_others else None
        question = self._questions[asked] = Question(asked.prompt, asked.shown, queued, asked.turn)
        self.add(question, before=before)
        self.follow()

    def withdraw(self, asked: Asked) -> None:
        """Takes a prompt off the screen again."""
        self.replace([self._questions.pop(asked)], [])

    async def begin(self, asked: Asked) -> None:
        """The prompt's turn has come: its answer starts below it."""
        question = self._questions[asked]
        question.queued = False
        following = self.items[self.items.index(question) + 1 :]
        self._stream(Answer(self, following[0] if following else None, self.by_source))

    async def go_on(self, begun: chat.Answer) -> None:
        """The last answer is streamed on from what there is of it."""
        last = self.answers.pop()
        following = self.items[self.items.index(last.items[-1]) + 1 :]
        answer = Answer(self, following[0] if following else None, self.by_source)
        answer.write(list(tokens_of(begun.text, begun.runs)))
        await last.discard()
        self._stream(answer)
        self.follow()

    def replace(self, old: Sequence[Item], new: Sequence[Item]) -> None:
        """What is chosen stays so while it is there."""
        super().replace(old, new)
        if self.chosen in old:
            if self.chosen in self.items:
                self.chosen.choose(True)
            else:
                self.action_leave()

    def mark_branches(self, places: Mapping[int, tuple[int, int]]) -> None:
        """Says at each question which of how many branches it begins, by the turn's id."""
        for item in self.items:
            if isinstance(item, Question):
                item.place = places.get(item.turn) if item.turn is not None else None

    def _stream(self, answer: Answer) -> None:
        self.answer = answer
        self.answers.append(answer)
        self._busy_s = time.process_time()
        self._rest()

    async def end(self, footer: str) -> None:
        """The streaming answer is complete."""
        answer, self.answer = self.answer, None
        if self._timer:
            self._timer.stop()
        if answer:
            await answer.finish(footer)

    async def abandon(self, asked: Asked) -> None:
        """The streaming answer never began: nothing stays of it, nor of its prompt."""
        answer, self.answer = self.answer, None
        if answer:
            self.answers.remove(answer)
            await answer.discard()
        self.withdraw(asked)

    def note(self, text: str, kind: Kind = "info", turn: int | None = None) -> None:
        """Stands behind all that has happened so far, above prompts whose turn has not come; above the prompt of
        `turn`, where it happened before that."""
        self.tell(Note(text, kind), turn)

    def tell(self, note: Note, turn: int | None = None) -> None:
        self.add(note, before=self._question(turn) or self._waiting)

    def note_above_answer(self, text: str) -> None:
        """What concerns the running answer's prompt stands between the two."""
        self.add(Note(text), before=self.answer.items[0] if self.answer else self._waiting)

    @property
    def _waiting(self) -> Question | None:
        """The first prompt whose turn has not come."""
        return next((question for question in self._questions.values() if question.queued), None)

    async def clear(self) -> None:
        """Shows an empty chat."""
        await self.show(Conversation())

    async def show(self, conversation: Conversation) -> None:
        """Shows a conversation of earlier in place of this one, from its end."""
        answer, self.answer = self.answer, None
        if answer:
            await answer.discard()
        async with self.turn:
            self.action_leave()
            self._questions.clear()
            self.answers.clear()
            self.replace(list(self.items), [])
            for turn in conversation.turns:
                self.add(Question(turn.prompt, turn.shown, turn=turn.id))
                if turn.answer:
                    self.answers.append(Answer(self, None, self.by_source, turn.answer))
            self.follow()
            await self.settle()

    async def colour(self, by_source: bool) -> None:
        """Shows all answers coloured by source, or as Markdown again."""
        async with self.turn:
            self.by_source = by_source
            for answer in self.answers:
                answer.colour(by_source)
            await self.settle()

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

    def _question(self, turn: int | None) -> Question | None:
        found = (item for item in self.items if isinstance(item, Question) and item.turn == turn)
        return None if turn is None else next(found, None)

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

    def _rest(self) -> None:
        took_s, self._busy_s = time.process_time() - self._busy_s, time.process_time()
        self._timer = self.set_timer(rest_s(took_s), self._update)

    async def _update(self) -> None:
        if self.answer is None:
            return
        self._rest()
        await self.answer.flush()
        self.post_message(self.Updated())

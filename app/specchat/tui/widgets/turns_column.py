"""The conversation on the screen: questions, answers and notes in a column, as they come."""

import time
from collections.abc import Mapping

from textual.app import ComposeResult
from textual.message import Message
from textual.timer import Timer

from specchat import chat
from specchat.chat import Conversation
from specchat.sources import tokens_of
from specchat.tui.jobs import Asked
from specchat.tui.pace import rest_s
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.column import Column
from specchat.tui.widgets.note import Kind, Note
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.welcome import Welcome


class TurnsColumn(Column):
    """Everything but what keys act on."""

    class Updated(Message):
        """The streaming answer was brought up to date."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer | None = None
        """The answer that streams now."""
        self.answers: list[Answer] = []
        """All of them."""
        self.by_source = False
        """Whether answers are shown as they were written, coloured by who wrote what."""
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

    def _question(self, turn: int | None) -> Question | None:
        found = (item for item in self.items if isinstance(item, Question) and item.turn == turn)
        return None if turn is None else next(found, None)

    def _rest(self) -> None:
        took_s, self._busy_s = time.process_time() - self._busy_s, time.process_time()
        self._timer = self.set_timer(rest_s(took_s), self._update)

    async def _update(self) -> None:
        if self.answer is None:
            return
        self._rest()
        await self.answer.flush()
        self.post_message(self.Updated())

"""The scrolling conversation: follows its end until the user scrolls up, and again once back at the bottom."""

import time

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer

from specchat.tui.session import Asked
from specchat.tui.widgets.answer import Answer
from specchat.tui.widgets.note import Kind, Note
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.welcome import Welcome

_NEAR_ROWS = 2
"""Moving down to within this many rows of the end counts as the end: it moves on while an answer streams."""
_REST_S = 0.08
"""Shortest time between two updates of a streaming answer."""
_LONGEST_REST_S = 1.0
_REST_SHARE = 3
"""Seconds of rest for each second of CPU that the last update took, layout and painting included."""


class Transcript(VerticalScroll, can_focus=False):
    """Never takes the focus: keys always reach the prompt."""

    following: var[bool] = var(True)

    class Updated(Message):
        """The streaming answer was brought up to date."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer | None = None
        """The answer that streams now."""
        self._questions: dict[Asked, Question] = {}
        self._timer: Timer | None = None
        self._busy_s = 0.0
        """CPU time of the process when the last update began."""

    def compose(self) -> ComposeResult:
        yield Welcome()

    def on_mount(self) -> None:
        self.follow()

    def ask(self, asked: Asked, queued: bool) -> None:
        """Shows a prompt; `queued` while its turn has not come."""
        question = self._questions[asked] = Question(asked.prompt, asked.shown)
        question.queued = queued
        self.mount(question)
        self.follow()

    def withdraw(self, asked: Asked) -> None:
        """Takes a prompt off the screen again."""
        self._questions.pop(asked).remove()

    async def begin(self, asked: Asked) -> None:
        """The prompt's turn has come: its answer starts below it."""
        question = self._questions[asked]
        question.queued = False
        self.answer = Answer()
        await self.mount(self.answer, after=question)
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
            await answer.discard()
        self.withdraw(asked)

    def note(self, text: str, kind: Kind = "info") -> None:
        self.mount(Note(text, kind))

    def note_above_answer(self, text: str) -> None:
        """What concerns the running answer's prompt stands between the two."""
        self.mount(Note(text, "info"), before=self.answer)

    async def clear(self) -> None:
        """Shows an empty chat."""
        self._questions.clear()
        answer, self.answer = self.answer, None
        if answer:
            await answer.discard()
        await self.remove_children()
        await self.mount(Welcome())
        self.follow()

    def follow(self) -> None:
        """Goes to the end and stays there."""
        self.following = True
        self.anchor()

    def release_anchor(self) -> None:
        if self.max_scroll_y == 0:
            return
        self.following = False
        super().release_anchor()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self.following and new_value > old_value and new_value >= self.max_scroll_y - _NEAR_ROWS:
            self.follow()

    def _rest(self) -> None:
        """Waits for the next update; longer where the last one was dear, so that keys and the engine get their turn."""
        took_s, self._busy_s = time.process_time() - self._busy_s, time.process_time()
        self._timer = self.set_timer(min(max(_REST_S, _REST_SHARE * took_s), _LONGEST_REST_S), self._update)

    async def _update(self) -> None:
        if self.answer is None:
            return
        self._rest()
        await self.answer.flush()
        self.post_message(self.Updated())

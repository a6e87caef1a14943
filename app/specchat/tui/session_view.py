"""What the session tells, brought onto the chat screen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from specchat.branches import places
from specchat.chat import Answer, Conversation
from specchat.tui.background import begin
from specchat.tui.course import Course
from specchat.tui.figures import footer, reading
from specchat.tui.jobs import Asked
from specengine.protocol import Loaded, Token
from specengine.stats import Stats

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


class SessionView:
    """The `session.View` of a chat screen."""

    def __init__(self, screen: "TalkScreen") -> None:
        self._screen = screen
        self._error = ""
        """What went wrong with the running answer."""
        self._stats: Stats | None = None
        """The newest figures of the running answer; the status bar takes them at its own pace."""

    async def show(self, conversation: Conversation | None = None) -> None:
        """Shows a conversation, by default the one that is talked in, from its end, and what waits below it."""
        screen = self._screen
        await screen.transcript.show(conversation or screen.session.conversation)
        for asked in screen.session.waiting:
            if asked.beside is None:
                screen.transcript.ask(asked, queued=True)
        screen.transcript.mark_branches(places(screen.session.conversation))
        self._show_last()

    def show_soon(self, chosen: int | None = None) -> None:
        """Shows the branch that is talked in from its end, or with the question of a turn chosen."""

        async def shown() -> None:
            await self.show()
            if chosen is not None:
                self._screen.transcript.choose_turn(chosen)

        begin(self._screen, shown, "show", exclusive=True)

    def show_stats(self) -> None:
        """Gives the status bar the newest figures, while there are any."""
        if self._screen.session.answering:
            self._screen.status.stats = self._stats

    def _show_last(self) -> None:
        """Gives the status bar the figures of the chat's last answer, if what is loaded now wrote it; else they would
        be taken for figures of this model in this chat."""
        session, status = self._screen.session, self._screen.status
        if session.answering:
            return
        answer = session.conversation.turns[-1].answer if session.conversation.turns else None
        loaded = status.loaded
        same = answer and loaded and (answer.model, answer.draft) == (loaded.name, loaded.draft or "")
        stats = answer.stats if answer and same else None
        if stats is not status.stats:
            status.course = Course()
        status.stats = stats

    def rest(self) -> None:
        """No answer runs, and none of this chat has been seen yet."""
        status = self._screen.status
        status.course = Course()
        status.stats = None
        status.activity = ""
        status.live = False

    # What the session calls.

    def on_loading(self, what: str, fraction: float) -> None:
        self._screen.status.activity = f"{what} {fraction:.0%}"

    def on_loaded(self, loaded: Loaded) -> None:
        self._screen.status.activity = ""
        self._screen.status.loaded = loaded
        self._screen.prompt.loaded = loaded
        self._show_last()
        for refusal in (loaded.draft_refused, loaded.speculation_refused, *loaded.notices):
            if refusal:
                self._screen.note(refusal)

    def on_notice(self, text: str) -> None:
        """What happens to an answer that goes on happens behind its first part, and behind why that was cut."""
        answering = self._screen.session.answering
        if answering and answering.goes_on:
            self._screen.note(text)
        else:
            self._screen.transcript.note_above_answer(text)

    def on_error(self, text: str) -> None:
        self._error = text
        self._screen.status.activity = ""
        self._screen.note(text, "error")

    async def on_started(self, asked: Asked) -> None:
        self._error = ""
        transcript, conversation = self._screen.transcript, self._screen.session.conversation
        if asked.goes_on and (begun := conversation.turns[-1].answer):
            await transcript.go_on(begun)
        else:
            if asked.beside is not None:
                await self.show(replace(conversation, turns=conversation.turns[:-1]))
                transcript.ask(asked, queued=False, before_others=True)
            await transcript.begin(asked)
        transcript.mark_branches(places(conversation))
        self._screen.status.live = True
        self._screen.status.course = Course()
        self._screen.status.stats = None

    def on_reading(self, done: int, total: int) -> None:
        self._screen.status.activity = reading(done, total)
        if answer := self._screen.transcript.answer:
            answer.wait(reading(done, total))

    def on_tokens(self, tokens: Sequence[Token], stats: Stats) -> None:
        status = self._screen.status
        if answer := self._screen.transcript.answer:
            answer.write(tokens)
        if not status.activity.startswith("stop"):
            status.activity = ""
        self._stats = stats
        status.course.see(stats)

    async def on_ended(self, asked: Asked, given: Answer) -> None:
        transcript, status = self._screen.transcript, self._screen.status
        status.activity = ""
        status.live = False
        status.stats = given.stats
        if given.text:
            await transcript.end(footer(given))
        elif asked.beside is not None:
            await self.show()
            if self._error:
                self._screen.note(self._error, "error")
            if asked.seed is None:
                self._screen.prompt.bring_back(asked.shown)
        elif given.ending == "stopped":
            await transcript.abandon(asked)
            self._screen.prompt.bring_back(asked.shown)
        else:
            await transcript.end("" if given.ending == "failed" else "The answer is empty.")

"""The screen that a session with the engine is talked on: its parts, and what commands and parts of it have it do."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial

from textual import on
from textual.app import ComposeResult
from textual.events import Resize
from textual.screen import Screen
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from specchat.chat import Settings
from specchat.tui import keymap
from specchat.tui.background import begin
from specchat.tui.commands import COMMANDS, CommandError, parse
from specchat.tui.comparing import Comparing
from specchat.tui.filling import fill
from specchat.tui.history import History
from specchat.tui.history_file import HistoryFile
from specchat.tui.kept_chats import KeptChats
from specchat.tui.loader import Loader
from specchat.tui.model_switch import ModelSwitch
from specchat.tui.options import TuiOptions
from specchat.tui.refusals import in_chat
from specchat.tui.screens.help import Help
from specchat.tui.session import Session
from specchat.tui.session_view import SessionView
from specchat.tui.tuning import Tuning
from specchat.tui.turns import Turns
from specchat.tui.widgets.first_start import FirstStart
from specchat.tui.widgets.note import Kind
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.pull_line import PullLine
from specchat.tui.widgets.status import StatusBar
from specchat.tui.widgets.too_small import TooSmall
from specchat.tui.widgets.transcript import Transcript


class TalkScreen(Screen[None]):
    """Everything but the keys."""

    def __init__(self, options: TuiOptions) -> None:
        super().__init__()
        self.options = options
        settings = Settings(
            options.sampling,
            options.limits,
            options.speculation,
            options.gamma,
            options.lookup,
            options.draft,
            options.n_ctx,
        )
        self.view = SessionView(self)
        self.session = Session(options.make_host(), settings, options.system, self.view)
        self._pulls = PullLine(options)
        self.models = ModelSwitch(options, self.session, self._pulls)
        self.tuning = Tuning(self)
        self.loader = Loader(self, self._pulls)
        self.comparing = Comparing(self)
        self.turns = Turns(self)
        self.kept_chats = KeptChats(self, options.chats_file)
        self._worker: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield TooSmall()
        kept = self.options.history_file
        prompt = Prompt(self, History(HistoryFile(kept) if kept else None), self.options.paste_lines)
        yield Transcript(prompt)
        yield self._pulls
        yield prompt
        yield StatusBar()

    async def on_mount(self) -> None:
        self.status.speculation = self.options.speculation
        keymap.make_room(self.prompt, self.options.keymap)
        self.prompt.cursor_blink = self.app.animation_level != "none"
        self.kept_chats.start()
        if self.options.resume is not None:
            await self.kept_chats.begin_with(self.options.resume)
        self.watch(self.transcript, "unseen", self.mark_prompt)
        self._worker = begin(self, self.session.run, "session")
        if self.options.load is not None:
            self.loader.load(self.options.load)
        else:
            self.transcript.mount(FirstStart(self.options))
        if self.options.prompt:
            self.prompt.remember(self.options.prompt)
            self._send(self.options.prompt, self.options.prompt)
        if self.options.choose_chat:
            self._try(self.kept_chats.choose)

    def on_resize(self, event: Resize) -> None:
        self.query_one(TooSmall).fit(event.size)
        if self.focused is None:  # lost where nothing could be shown
            self.prompt.focus()

    # What commands do.

    def show_help(self) -> None:
        self.app.push_screen(Help(self.options.keymap))

    def new_chat(self) -> None:
        self.turns.leave_editing()
        self.session.new()
        self.view.rest()
        begin(self, self.transcript.clear, "clear")

    def note(self, text: str, kind: Kind = "info", turn: int | None = None) -> None:
        self.transcript.note(in_chat(text, self.options.keymap) if kind == "error" else text, kind, turn)

    def copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)

    def show_sources(self) -> None:
        begin(self, partial(self.transcript.colour, not self.transcript.by_source), "colour")

    def rest(self) -> None:
        """Ends the session: nothing more is put on a screen that is about to go. A prompt that was not sent is kept."""
        if self.is_mounted:
            self.prompt.put_aside()
        if self._worker is not None:
            self._worker.cancel()

    async def close(self) -> None:
        """Ends the engine, and writes what is left of the chat."""
        if self._worker is not None:
            with suppress(WorkerCancelled, WorkerFailed):
                await self._worker.wait()
        await self.session.engine.close()
        await self.kept_chats.close()

    def quit(self) -> None:
        self.app.exit(0)

    def fill(self, text: str) -> None:
        fill(self, text)

    def find_prompt(self, words: str) -> None:
        self.prompt.search(words)

    def model_names(self) -> tuple[str, ...]:
        return self.models.names()

    def start_command(self, name: str) -> None:
        """Runs a command from the palette, or puts it into the prompt to be completed."""
        if next(command for command in COMMANDS if command.name == name).takes_arguments:
            self.prompt.recall(f"/{name} ", {})
        else:
            self._command(f"/{name}")

    @on(FirstStart.Wanted)
    def _take(self, event: FirstStart.Wanted) -> None:
        self._try(lambda: self.loader.change(event.offer.entry.name, None))

    @on(PullLine.Fetched)
    def _fetched(self, event: PullLine.Fetched) -> None:
        self.loader.fetched(event.entry)

    @on(PullLine.Ended)
    def _pull_ended(self, event: PullLine.Ended) -> None:
        self.note(event.text, "error" if event.failed else "info")

    # What the user sends.

    @on(Prompt.Complaint)
    def _complained(self, event: Prompt.Complaint) -> None:
        self.note(event.text, "error")

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        if self._command(event.prompt):
            return
        self._send(event.prompt, event.shown)

    def _command(self, text: str) -> bool:
        """Runs `text` if it is a command; false if it is for the model."""
        try:
            found = parse(text)
            if found:
                command, argument = found
                if command.while_answering == "refuse" and self.session.answering:
                    raise CommandError(f"An answer is being written; press esc to stop it before /{command.name}.")
                command.run(self, argument)
        except CommandError as error:
            self.note(str(error), "error")
            return True
        return found is not None

    def _send(self, prompt: str, shown: str) -> None:
        beside = self.turns.take_edited()
        queued = self.session.waits
        asked = self.session.send(prompt, shown, beside)
        if beside is None:
            self.transcript.ask(asked, queued)

    def _try(self, act: Callable[[], None]) -> None:
        """Does what a key asks for, or says why it can't be done."""
        try:
            act()
        except CommandError as error:
            self.note(str(error), "error")

    def mark_prompt(self) -> None:
        """Says above the prompt what there is to know: that a prompt is edited, that new text stands below the view."""
        new = "↓ new text" if self.transcript.unseen else ""
        self.prompt.border_title = " · ".join(part for part in (self.turns.title, new) if part)

    @on(Transcript.Updated)
    def _updated(self) -> None:
        self.view.show_stats()

    @cached_property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def first_start(self) -> FirstStart | None:
        return next(iter(self.query(FirstStart)), None)

    @cached_property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @cached_property
    def status(self) -> StatusBar:
        return self.query_one(StatusBar)

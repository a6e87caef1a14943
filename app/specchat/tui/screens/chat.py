"""The chat: transcript, prompt and status bar around one session with the engine."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.reactive import var
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
from specchat.tui.refusals import in_chat, refusal
from specchat.tui.screens.help import Help
from specchat.tui.screens.save_code import SaveCode
from specchat.tui.session import Session
from specchat.tui.session_view import SessionView
from specchat.tui.tuning import Tuning
from specchat.tui.turns import Turns
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.first_start import FirstStart
from specchat.tui.widgets.item import ChangeTurn, CopyItem, SaveItem
from specchat.tui.widgets.note import Kind
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.pull_line import PullLine
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.status import StatusBar
from specchat.tui.widgets.thought import Thought
from specchat.tui.widgets.too_small import TooSmall
from specchat.tui.widgets.transcript import Transcript

_ARMED_S = 3.0
"""How long a first ctrl+c waits for the second."""


class ChatScreen(Screen[None]):
    AUTO_FOCUS = "Prompt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "toggle_speculation", "Speculation auto / off", id="chat.speculation"),
        Binding("escape", "stop", "Stop the answer", id="chat.stop"),
        Binding("ctrl+c,super+c", "interrupt", "Copy the selection, clear, stop, then quit", id="chat.interrupt"),
        Binding("ctrl+d", "arm_quit('chat.end')", "Quit, from an empty prompt", id="chat.end"),
        Binding("ctrl+n", "new_chat", "New chat", id="chat.new"),
        Binding("ctrl+l", "show_sources", "Colour answers by who wrote what", id="chat.sources"),
        Binding("alt+up", "choose_above", "Choose a message or code, to copy or save it", id="chat.choose"),
        Binding("ctrl+r", "resume", "Go on with an earlier chat", id="chat.resume"),
        Binding("f5", "retry", "Answer again, with another seed", id="chat.retry"),
        Binding("ctrl+y", "copy_answer", "Copy the last answer", priority=True, id="chat.copy"),
        Binding("pageup", "page(-1)", "Scroll up", id="chat.up"),
        Binding("pagedown", "page(1)", "Scroll down", id="chat.down"),
        Binding("ctrl+home", "top", "Start of the chat", id="chat.top"),
        Binding("ctrl+end", "follow", "End of the chat", id="chat.bottom"),
        Binding("ctrl+o", "choose_model", "Choose, pull or remove a model", id="chat.models"),
        Binding("f1", "help", "Help", id="chat.help"),
        Binding("f8", "compare", "Compare with speculation and without", id="chat.compare"),
        Binding("f2", "settings", "Settings of this chat", id="chat.settings"),
        Binding("f3", "take_offer(0)", "Pull the offered model, at the first start", show=False, id="chat.pull"),
        Binding("f4", "take_offer(1)", "Pull the other offered model", show=False, id="chat.pull_other"),
    ]

    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]  # noqa: RUF012 - as Screen declares it

    quit_key: var[str] = var("")
    """The action whose key quits if pressed again; empty when none is armed."""

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
            self.action_resume()

    def on_resize(self, event: Resize) -> None:
        self.query_one(TooSmall).fit(event.size)
        if self.focused is None:  # lost where nothing could be shown
            self.prompt.focus()

    # What keys do.

    def action_toggle_speculation(self) -> None:
        self.tuning.toggle()

    def action_stop(self) -> None:
        if self.session.answering:
            self.session.stop()
            self.status.activity = "stopping…"
        elif self.first_start and self._pulls.pulling:
            self._pulls.cancel()
        elif self.turns.leave_editing():
            pass
        elif asked := self.session.withdraw():
            self.transcript.withdraw(asked)
            self.prompt.bring_back(asked.shown)

    def action_interrupt(self) -> None:
        prompt = self.prompt
        if selected := (prompt.selected_text or self.get_selected_text()):
            self.copy(selected)
        elif prompt.text:
            prompt.put_aside()
        elif self.session.answering:
            self.action_stop()
        else:
            self.action_arm_quit("chat.interrupt")

    def action_arm_quit(self, action: str) -> None:
        if self.quit_key == action:
            self.quit()
            return
        self.quit_key = action
        self.set_timer(_ARMED_S, self._disarm)

    def action_compare(self) -> None:
        self._command("/compare")

    def action_new_chat(self) -> None:
        self.new_chat()

    def action_show_sources(self) -> None:
        self.show_sources()

    def action_choose_above(self) -> None:
        self.transcript.action_choose(-1)

    def action_resume(self) -> None:
        self._try(self.kept_chats.choose)

    def action_retry(self) -> None:
        self._try(self.turns.retry)

    def action_copy_answer(self) -> None:
        if selected := (self.prompt.selected_text or self.get_selected_text()):
            self.copy(selected)
        else:
            self._try(self.turns.copy)

    def _try(self, act: Callable[[], None]) -> None:
        """Does what a key asks for, or says why it can't be done."""
        try:
            act()
        except CommandError as error:
            self.note(str(error), "error")

    def action_page(self, direction: int) -> None:
        transcript = self.transcript
        transcript.scroll_relative(y=direction * max(1, transcript.size.height - 2), animate=False)

    def action_top(self) -> None:
        if self.transcript.items:
            self.transcript.go(self.transcript.items[0], rows_above=self.transcript.size.height)

    def action_follow(self) -> None:
        self.transcript.follow()

    def action_choose_model(self) -> None:
        self.loader.choose()

    def action_settings(self) -> None:
        self.tuning.show_form()

    def action_take_offer(self, number: int) -> None:
        if self.first_start:
            self.first_start.take(number)
        else:
            models = keymap.key_of("chat.models", self.options.keymap)
            self.notify(f"Nothing is offered now; {models} shows all models.", markup=False)

    def action_help(self) -> None:
        self.show_help()

    @on(Transcript.Chose)
    def _chose(self, event: Transcript.Chose) -> None:
        item = event.item
        if item is not self.transcript.chosen:  # another one is by now
            return
        acts = ["esc back", "c copy"] if item else []
        acts += ["s save"] if isinstance(item, CodeBlock) else []
        acts += ["enter open"] if isinstance(item, Thought) else []
        if item is not None and self.transcript.turn_of(item) is not None:
            acts += ["e edit", "r retry"]
            acts += ["←→ branch"] if isinstance(item, Question) and item.place else []
        self.prompt.border_subtitle = " · ".join(acts)

    @on(Transcript.Refused)
    def _refused(self, event: Transcript.Refused) -> None:
        text = refusal(event.act, self.transcript.by_source, self.options.keymap)
        self.notify(text, severity="warning", markup=False)

    @on(CopyItem)
    def _copy_item(self, event: CopyItem) -> None:
        self.copy(event.item.copied)

    @on(ChangeTurn)
    def _change_turn(self, event: ChangeTurn) -> None:
        match event.act:
            case "edit":
                self._try(lambda: self.turns.edit_turn(event.turn))
            case "retry":
                self._try(lambda: self.turns.retry(event.turn))
            case "next" | "back":
                self._try(lambda: self.turns.switch(event.turn, 1 if event.act == "next" else -1, choose=True))

    @on(SaveItem)
    def _save_item(self, event: SaveItem) -> None:
        if isinstance(event.item, CodeBlock):
            self.app.push_screen(SaveCode(event.item.code, event.item.language), self._saved)

    def _saved(self, path: Path | None) -> None:
        if path:
            self.notify(f"Saved as {path}.", markup=False)

    def mark_prompt(self) -> None:
        """Says above the prompt what there is to know: that a prompt is edited, that new text stands below the view."""
        new = "↓ new text" if self.transcript.unseen else ""
        self.prompt.border_title = " · ".join(part for part in (self.turns.title, new) if part)

    @on(Click, "Prompt")
    def _follow_the_mark(self, event: Click) -> None:
        if event.y == 0 and self.transcript.unseen:
            self.transcript.follow()

    @on(Prompt.Changed)
    def _disarm(self) -> None:
        self.quit_key = ""

    def watch_quit_key(self, action: str) -> None:
        self.prompt.border_subtitle = (
            f"press {keymap.key_of(action, self.options.keymap)} again to quit" if action else ""
        )

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

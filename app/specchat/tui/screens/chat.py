"""The chat: transcript, prompt and status bar around one session with the engine."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, Resize
from textual.reactive import var
from textual.screen import Screen
from textual.worker import Worker, WorkerCancelled, WorkerFailed

from specchat import config_file
from specchat.branches import places
from specchat.chat import Answer, Conversation, Settings, last_answer, new_id
from specchat.complete.run import no_infill
from specchat.looks import THEMES
from specchat.setting_fields import Chosen
from specchat.store.chats import Kept
from specchat.tui import keymap
from specchat.tui.commands import COMMANDS, CommandError, parse
from specchat.tui.comparing import Comparing
from specchat.tui.course import Course
from specchat.tui.explanation import explained
from specchat.tui.figures import footer, reading
from specchat.tui.fills import gap_in, request
from specchat.tui.history import History
from specchat.tui.history_file import HistoryFile
from specchat.tui.kept_chats import KeptChats
from specchat.tui.model_switch import ModelSwitch
from specchat.tui.options import TuiOptions
from specchat.tui.screens.fill import Fill
from specchat.tui.screens.help import Help
from specchat.tui.screens.models import Models
from specchat.tui.screens.save_code import SaveCode
from specchat.tui.screens.settings import SettingsForm
from specchat.tui.session import Asked, Session
from specchat.tui.settings_now import draft_now, speculation_now
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
from specengine.errors import EngineError
from specengine.protocol import Load, Loaded, Token
from specengine.settings import Speculation
from specengine.stats import Stats

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
        self.session = Session(options.make_host(), settings, options.system, self)
        self._defaults = Chosen(settings, options.system)
        self._pulls = PullLine(options)
        self.models = ModelSwitch(options, self.session, self._pulls)
        self._comparing = Comparing(self)
        self.turns = Turns(self)
        self.kept_chats = KeptChats(self, options.chats_file)
        self._error = ""
        """What went wrong with the running answer."""
        self._worker: Worker[None] | None = None
        self._stats: Stats | None = None
        """The newest figures of the running answer; the status bar takes them at its own pace."""

    def compose(self) -> ComposeResult:
        yield TooSmall()
        yield Transcript()
        yield self._pulls
        kept = self.options.history_file
        yield Prompt(self, History(HistoryFile(kept) if kept else None), self.options.paste_lines)
        yield StatusBar()

    async def on_mount(self) -> None:
        self._status.speculation = self.options.speculation
        keymap.make_room(self._prompt, self.options.keymap)
        self._prompt.cursor_blink = self.app.animation_level != "none"
        self.kept_chats.start()
        if self.options.resume is not None:
            await self._begin_with(self.options.resume)
        self.watch(self._transcript, "unseen", self.mark_prompt)
        self._worker = self.run_worker(self.session.run(), name="session")
        if self.options.load is not None:
            self.load(self.options.load)
        else:
            self._transcript.mount(FirstStart(self.options))
        if self.options.prompt:
            self._prompt.remember(self.options.prompt)
            self._send(self.options.prompt, self.options.prompt)
        if self.options.choose_chat:
            self.action_resume()

    def on_resize(self, event: Resize) -> None:
        self.query_one(TooSmall).fit(event.size)
        if self.focused is None:  # lost where nothing could be shown
            self._prompt.focus()

    # What keys do.

    def action_toggle_speculation(self) -> None:
        self.speculate("auto" if self.session.settings.speculation == "off" else "off")

    def action_stop(self) -> None:
        if self.session.answering:
            self.session.stop()
            self._status.activity = "stopping…"
        elif self._first_start and self._pulls.pulling:
            self._pulls.cancel()
        elif self.turns.leave_editing():
            pass
        elif asked := self.session.withdraw():
            self._transcript.withdraw(asked)
            self._prompt.bring_back(asked.shown)

    def action_interrupt(self) -> None:
        prompt = self._prompt
        if selected := (prompt.selected_text or self.get_selected_text()):
            self.copy(selected)
        elif prompt.text:
            prompt.empty()
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
        self._transcript.action_choose(-1)

    def action_resume(self) -> None:
        self._try(self.kept_chats.choose)

    def action_retry(self) -> None:
        self._try(self.turns.retry)

    def action_copy_answer(self) -> None:
        if selected := (self._prompt.selected_text or self.get_selected_text()):
            self.copy(selected)
        else:
            self._try(self.turns.copy)

    def _try(self, act: Callable[[], None]) -> None:
        """Does what a key asks for, or says why it can't be done."""
        try:
            act()
        except CommandError as error:
            self._note(str(error), "error")

    def action_page(self, direction: int) -> None:
        transcript = self._transcript
        transcript.scroll_relative(y=direction * max(1, transcript.size.height - 2), animate=False)

    def action_top(self) -> None:
        if self._transcript.items:
            self._transcript.go(self._transcript.items[0], rows_above=self._transcript.size.height)

    def action_follow(self) -> None:
        self._transcript.follow()

    def action_choose_model(self) -> None:
        self.choose_model()

    def action_settings(self) -> None:
        self.show_settings()

    def action_take_offer(self, number: int) -> None:
        if self._first_start:
            self._first_start.take(number)

    def action_help(self) -> None:
        self.show_help()

    @on(Transcript.Chose)
    def _chose(self, event: Transcript.Chose) -> None:
        item = event.item
        if item is not self._transcript.chosen:  # another one is by now
            return
        acts = ["c copies"] if item else []
        acts += ["s saves"] if isinstance(item, CodeBlock) else []
        acts += ["enter opens"] if isinstance(item, Thought) else []
        if item is not None and self._transcript.turn_of(item) is not None:
            acts += ["e edits the prompt", "r answers again"]
            acts += ["← → switch branches"] if isinstance(item, Question) and item.place else []
        self._prompt.border_subtitle = " · ".join([*acts, "esc goes back"]) if item else ""
        if item is None:
            self._prompt.focus()
            if event.key:
                self._prompt.post_message(Key(event.key.key, event.key.character))

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
        new = "↓ new text" if self._transcript.unseen else ""
        self._prompt.border_title = " · ".join(part for part in (self.turns.title, new) if part)

    @on(Click, "Prompt")
    def _follow_the_mark(self, event: Click) -> None:
        if event.y == 0 and self._transcript.unseen:
            self._transcript.follow()

    @on(Prompt.Changed)
    def _disarm(self) -> None:
        self.quit_key = ""

    def watch_quit_key(self, action: str) -> None:
        self._prompt.border_subtitle = (
            f"press {keymap.key_of(action, self.options.keymap)} again to quit" if action else ""
        )

    # What commands do.

    def show_help(self) -> None:
        self.app.push_screen(Help(self.options.keymap))

    def new_chat(self) -> None:
        self.turns.leave_editing()
        self.session.new()
        self._rest_status()
        self.run_worker(self._transcript.clear(), group="clear")

    def resume(self, kept: Kept) -> None:
        """Goes on with a chat of earlier, as it was left: its settings, and its model where that is here."""
        self.turns.leave_editing()
        self.session.resume(kept)
        self._rest_status()
        self._status.speculation = self.session.settings.speculation

        async def shown() -> None:
            await self._shown()
            self.turns.bring_back(kept.unanswered)
            if kept.model:
                self._load_again(kept.model, kept.draft or None)

        self.run_worker(shown(), group="show", exclusive=True)

    def show_conversation(self, chosen: int | None = None) -> None:
        """Shows the branch that is talked in from its end, or with the question of a turn chosen."""

        async def shown() -> None:
            await self._shown()
            if chosen is not None:
                self._transcript.choose_turn(chosen)

        self.run_worker(shown(), group="show", exclusive=True)

    def note(self, text: str, kind: Kind = "info") -> None:
        self._transcript.note(text, kind)

    def copy(self, text: str) -> None:
        self.app.copy_to_clipboard(text)

    async def _begin_with(self, kept: Kept) -> None:
        """Shows the chat to go on with; the command line has settled how."""
        settings = self.session.settings
        self.session.resume(kept)
        self.session.settings = settings
        self.session.set_system(self.options.system)
        await self._shown()
        self.turns.bring_back(kept.unanswered)

    async def _shown(self, conversation: Conversation | None = None) -> None:
        await self._transcript.show(conversation or self.session.conversation)
        for asked in self.session.waiting:
            if asked.beside is None:
                self._transcript.ask(asked, queued=True)
        self._transcript.mark_branches(places(self.session.conversation))

    def _load_again(self, model: str, draft: str | None) -> None:
        """Loads the model that a chat was left with, unless it is loaded already or would have to be pulled."""
        try:
            gone = bool(self.options.missing(model, draft))
            load = None if gone else self.models.change(model, draft)
        except EngineError:
            gone, load = True, None
        if gone:
            self._note(f"This chat was written with {model}, which is not here; /model chooses another.")
        elif load and load != self.models.wanted:
            self.load(load)

    def _rest_status(self) -> None:
        self._status.course = Course()
        self._status.stats = None
        self._status.activity = ""
        self._status.live = False

    def speculate(self, speculation: Speculation) -> None:
        self.session.adjust(speculation, self.session.settings.gamma)
        self._status.speculation = speculation

    def fix_gamma(self, gamma: int | None) -> None:
        self.session.adjust(self.session.settings.speculation, gamma)
        self._note("γ is the engine's choice each round." if gamma is None else f"γ is fixed at {gamma}.")

    def show_speculation(self) -> None:
        self._note(speculation_now(self.session.settings, self._status.loaded))

    def show_draft(self) -> None:
        self._note(draft_now(self.session.settings, self._status.loaded))

    def show_stats(self) -> None:
        shown = last_answer(self.session.conversation)
        course = self._status.course if shown and shown.stats is self._status.stats else None
        self._note(explained(shown, course, self._status.levels), "figures")

    def compare(self, prompt: str | None) -> None:
        self._comparing.start(prompt)

    def show_theme(self) -> None:
        self._note(f"The theme is {self.app.theme}; /theme NAME chooses one of {', '.join(THEMES)}.")

    def choose_theme(self, name: str) -> None:
        if name not in THEMES or name not in self.app.available_themes:
            raise CommandError(f"There is no theme called {name}; there are {', '.join(THEMES)}.")
        self.app.theme = name
        try:
            config_file.save(self.options.config_file, {"theme": name})
        except EngineError as error:
            raise CommandError(f"The theme holds until you leave: {error}") from None

    def show_sources(self) -> None:
        self.run_worker(self._transcript.colour(not self._transcript.by_source), group="colour")

    def set_system(self, text: str | None) -> None:
        if text is not None:
            self.session.set_system("" if text == "none" else text)
        system = self.session.conversation.system
        self._note(f"System prompt: {system}" if system else "There is no system prompt.")

    def choose_model(self) -> None:
        self.app.push_screen(Models(self.models, self._pulls, self.change_model, self.options.offline))

    def show_settings(self) -> None:
        chosen = Chosen(self.session.settings, self.session.conversation.system)
        save = partial(config_file.save, self.options.config_file)
        longest = self._status.loaded.n_ctx_trained if self._status.loaded else None
        form = SettingsForm(chosen, self._defaults, self.models.wanted is not None, longest, save)
        self.app.push_screen(form, self._apply)

    def _apply(self, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        before = self.session.settings
        self.session.settings = chosen.settings
        self.session.set_system(chosen.system)
        if (chosen.settings.speculation, chosen.settings.gamma) != (before.speculation, before.gamma):
            self.session.adjust(chosen.settings.speculation, chosen.settings.gamma)
        self._status.speculation = chosen.settings.speculation
        load = self.models.with_context(chosen.settings.n_ctx)
        if load and chosen.settings.n_ctx != before.n_ctx:
            self.load(load)

    def change_model(self, model: str | None, draft: str | None) -> None:
        try:
            load = self.models.change(model, draft)
        except EngineError as error:
            raise CommandError(str(error)) from None
        if load:
            self.load(load)

    def load(self, load: Load) -> None:
        self.models.chose(load)
        if self._first_start:
            self._first_start.remove()
        self.session.load(load)
        self._status.activity = "loading…"

    def rest(self) -> None:
        """Ends the session: nothing more is put on a screen that is about to go."""
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
        loaded = self.session.engine.loaded
        if self.session.busy or loaded is None:
            raise CommandError("Nothing can be filled in while a model is loaded; try again in a moment.")
        if not loaded.infill:
            raise CommandError(no_infill(loaded.name))
        try:
            gap = gap_in(text)
        except EngineError as error:
            raise CommandError(str(error)) from None
        fill = Fill(self.session.engine, gap, request(new_id(), gap, self.session.settings))
        self.app.push_screen(fill, self._filled)

    def _filled(self, text: str | None) -> None:
        if text:
            self._note(text.strip("\n"), "figures")

    def find_prompt(self, words: str) -> None:
        self._prompt.search(words)

    def model_names(self) -> tuple[str, ...]:
        return self.models.names()

    def start_command(self, name: str) -> None:
        """Runs a command from the palette, or puts it into the prompt to be completed."""
        if next(command for command in COMMANDS if command.name == name).takes_arguments:
            self._prompt.recall(f"/{name} ", {})
        else:
            self._command(f"/{name}")

    @on(FirstStart.Wanted)
    def _take(self, event: FirstStart.Wanted) -> None:
        try:
            self.change_model(event.offer.entry.name, None)
        except CommandError as error:
            self._note(str(error), "error")

    @on(PullLine.Fetched)
    def _fetched(self, event: PullLine.Fetched) -> None:
        try:
            load = self.models.fetched()
        except EngineError as error:
            self._note(str(error), "error")
            return
        self._note(f"{event.entry.title} is here now.")
        if load:
            self.load(load)

    @on(PullLine.Ended)
    def _pull_ended(self, event: PullLine.Ended) -> None:
        self._note(event.text, "error" if event.failed else "info")

    # What the user sends.

    @on(Prompt.Complaint)
    def _complained(self, event: Prompt.Complaint) -> None:
        self._note(event.text, "error")

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
            self._note(str(error), "error")
            return True
        return found is not None

    def _send(self, prompt: str, shown: str) -> None:
        beside = self.turns.take_edited()
        queued = self.session.waits
        asked = self.session.send(prompt, shown, beside)
        if beside is None:
            self._transcript.ask(asked, queued)

    # What the session tells.

    def on_loading(self, what: str, fraction: float) -> None:
        self._status.activity = f"{what} {fraction:.0%}"

    def on_loaded(self, loaded: Loaded) -> None:
        self._status.activity = ""
        self._status.loaded = loaded
        self._prompt.context = loaded.n_ctx
        refusals = (loaded.draft_refused, loaded.speculation_refused, *loaded.notices)
        for refusal in refusals:
            if refusal:
                self._note(refusal)

    def on_notice(self, text: str) -> None:
        self._transcript.note_above_answer(text)

    def on_error(self, text: str) -> None:
        self._error = text
        self._status.activity = ""
        self._note(text, "error")

    async def on_started(self, asked: Asked) -> None:
        self._error = ""
        conversation = self.session.conversation
        if asked.goes_on and (begun := conversation.turns[-1].answer):
            await self._transcript.go_on(begun)
        else:
            if asked.beside is not None:
                await self._shown(replace(conversation, turns=conversation.turns[:-1]))
                self._transcript.ask(asked, queued=False, before_others=True)
            await self._transcript.begin(asked)
        self._transcript.mark_branches(places(conversation))
        self._status.live = True
        self._status.course = Course()
        self._status.stats = None

    def on_reading(self, done: int, total: int) -> None:
        self._status.activity = reading(done, total)
        if self._transcript.answer:
            self._transcript.answer.wait(reading(done, total))

    def on_tokens(self, tokens: Sequence[Token], stats: Stats) -> None:
        if self._transcript.answer:
            self._transcript.answer.write(tokens)
        if not self._status.activity.startswith("stop"):
            self._status.activity = ""
        self._stats = stats
        self._status.course.see(stats)

    async def on_ended(self, asked: Asked, given: Answer) -> None:
        self._status.activity = ""
        self._status.live = False
        self._status.stats = given.stats
        if given.text:
            await self._transcript.end(footer(given))
        elif asked.beside is not None:
            await self._shown()
            if self._error:
                self._note(self._error, "error")
            if asked.seed is None:
                self._prompt.bring_back(asked.shown)
        elif given.ending == "stopped":
            await self._transcript.abandon(asked)
            self._prompt.bring_back(asked.shown)
        else:
            await self._transcript.end("" if given.ending == "failed" else "The answer is empty.")

    @on(Transcript.Updated)
    def _show_stats(self) -> None:
        if self.session.answering:
            self._status.stats = self._stats

    def _note(self, text: str, kind: Kind = "info") -> None:
        self._transcript.note(text, kind)

    @property
    def prompt(self) -> Prompt:
        return self._prompt

    @cached_property
    def _transcript(self) -> Transcript:
        return self.query_one(Transcript)

    @property
    def _first_start(self) -> FirstStart | None:
        return next(iter(self.query(FirstStart)), None)

    @cached_property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @cached_property
    def _status(self) -> StatusBar:
        return self.query_one(StatusBar)

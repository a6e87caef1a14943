"""The chat: transcript, prompt and status bar around one session with the engine, and what keys do there."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.reactive import var

from specchat.tui import keymap
from specchat.tui.refusals import refusal
from specchat.tui.screens.save_code import SaveCode
from specchat.tui.screens.talk import TalkScreen
from specchat.tui.widgets.code import CodeBlock
from specchat.tui.widgets.item import ChangeTurn, CopyItem, SaveItem
from specchat.tui.widgets.prompt import Prompt
from specchat.tui.widgets.question import Question
from specchat.tui.widgets.thought import Thought
from specchat.tui.widgets.transcript import Transcript

_ARMED_S = 3.0
"""How long a first ctrl+c waits for the second."""


class ChatScreen(TalkScreen):
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

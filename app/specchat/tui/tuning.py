"""What the user sets: speculation, γ, the system prompt, all of a chat in a form, and the colours."""

from functools import partial
from typing import TYPE_CHECKING

from specchat import config_file
from specchat.branches import siblings
from specchat.chat import Answer, Conversation, last_answer
from specchat.looks import THEMES
from specchat.setting_fields import Chosen
from specchat.tui.commands import CommandError
from specchat.tui.explanation import explained
from specchat.tui.refusals import in_chat
from specchat.tui.screens.settings import SettingsForm
from specchat.tui.settings_now import draft_now, speculation_now
from specchat.tui.widgets.note import Figures
from specengine.errors import EngineError
from specengine.settings import Speculation

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


class Tuning:
    """Acts for a chat screen."""

    def __init__(self, screen: "TalkScreen") -> None:
        self._screen = screen
        self._defaults = Chosen(screen.session.settings, screen.options.system)

    def toggle(self) -> None:
        self.speculate("auto" if self._screen.session.settings.speculation == "off" else "off")

    def speculate(self, speculation: Speculation) -> None:
        session = self._screen.session
        session.adjust(speculation, session.settings.gamma)
        self._screen.status.speculation = speculation

    def fix_gamma(self, gamma: int | None) -> None:
        session = self._screen.session
        session.adjust(session.settings.speculation, gamma)
        self._screen.note("γ is the engine's choice each round." if gamma is None else f"γ is fixed at {gamma}.")

    def show_speculation(self) -> None:
        self._screen.note(speculation_now(self._screen.session.settings, self._screen.status.loaded))

    def show_draft(self) -> None:
        said = draft_now(self._screen.session.settings, self._screen.status.loaded)
        self._screen.note(in_chat(said, self._screen.options.keymap))

    def show_stats(self) -> None:
        status, session = self._screen.status, self._screen.session
        shown = last_answer(session.conversation)
        if session.answering:
            shown = _answer_before(session.conversation)
            if shown is None:
                self._screen.note("The first answer is being written; its figures come with its end.")
                return
            self._screen.note("An answer is being written; these are the figures of the one before it.")
        course = status.course if shown and shown.stats is status.stats else None
        self._screen.transcript.tell(Figures(partial(explained, shown, course, status.levels)))

    def set_system(self, text: str | None) -> None:
        """Sets the system prompt ("none" for none), or shows it."""
        session = self._screen.session
        if text is not None:
            session.set_system("" if text == "none" else text)
        system = session.conversation.system
        self._screen.note(f"System prompt: {system}" if system else "There is no system prompt.")

    def show_theme(self) -> None:
        app = self._screen.app
        self._screen.note(f"The theme is {app.theme}; /theme NAME chooses one of {', '.join(THEMES)}.")

    def choose_theme(self, name: str) -> None:
        """
        Raises:
            CommandError: there is none of that name, or it could not be saved.
        """
        app = self._screen.app
        if name not in THEMES or name not in app.available_themes:
            raise CommandError(f"There is no theme called {name}; there are {', '.join(THEMES)}.")
        app.theme = name
        try:
            config_file.save(self._screen.options.config_file, {"theme": name})
        except EngineError as error:
            raise CommandError(f"The theme holds until you leave: {error}") from None

    def show_form(self) -> None:
        screen = self._screen
        chosen = Chosen(screen.session.settings, screen.session.conversation.system)
        save = partial(config_file.save, screen.options.config_file)
        longest = screen.status.loaded.n_ctx_trained if screen.status.loaded else None
        form = SettingsForm(chosen, self._defaults, screen.models.wanted is not None, longest, save)
        screen.app.push_screen(form, self._apply)

    def _apply(self, chosen: Chosen | None) -> None:
        if chosen is None:
            return
        session, settings = self._screen.session, chosen.settings
        before, session.settings = session.settings, settings
        session.set_system(chosen.system)
        if (settings.speculation, settings.gamma) != (before.speculation, before.gamma):
            session.adjust(settings.speculation, settings.gamma)
        self._screen.status.speculation = settings.speculation
        load = self._screen.models.with_context(settings.n_ctx)
        if load and settings.n_ctx != before.n_ctx:
            self._screen.loader.load(load)


def _answer_before(conversation: Conversation) -> Answer | None:
    """The answer with figures before the one that is being written: to the same prompt, else to the one before."""
    beside = siblings(conversation, conversation.turns[-1]) if conversation.turns else ()
    given = [turn.answer for turn in (*conversation.turns, *beside) if turn.answer and turn.answer.stats]
    return given[-1] if given else None

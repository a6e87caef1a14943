"""What the user does about models: choose, pull and load them."""

from typing import TYPE_CHECKING

from specchat.tui.commands import CommandError
from specchat.tui.screens.models import Models
from specchat.tui.widgets.pull_line import PullLine
from specengine.catalog import Entry
from specengine.errors import EngineError
from specengine.protocol import Load

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


class Loader:
    """Acts for a chat screen."""

    def __init__(self, screen: "TalkScreen", pulls: PullLine) -> None:
        self._screen = screen
        self._pulls = pulls

    def choose(self) -> None:
        screen = self._screen
        screen.app.push_screen(Models(screen.models, self._pulls, self.change, screen.options.offline))

    def change(self, model: str | None, draft: str | None) -> None:
        """Loads another model or draft, or pulls it first.

        Raises:
            CommandError: there is none of that name, or it can't be loaded; one sentence.
        """
        try:
            load = self._screen.models.change(model, draft)
        except EngineError as error:
            raise CommandError(str(error)) from None
        if load:
            self.load(load)

    def load(self, load: Load) -> None:
        screen = self._screen
        screen.models.chose(load)
        if screen.first_start:
            screen.first_start.remove()
        screen.session.load(load)
        screen.status.activity = "loading…"

    def load_again(self, model: str, draft: str | None) -> None:
        """Loads the model that a chat was left with, unless it is loaded already or would have to be pulled."""
        screen = self._screen
        try:
            gone = bool(screen.options.missing(model, draft))
            load = None if gone else screen.models.change(model, draft)
        except EngineError:
            gone, load = True, None
        if gone:
            screen.note(f"This chat was written with {model}, which is not here; /model chooses another.")
        elif load and load != screen.models.wanted:
            self.load(load)

    def fetched(self, entry: Entry) -> None:
        """A pull is done; loads it if that was wanted."""
        try:
            load = self._screen.models.fetched()
        except EngineError as error:
            self._screen.note(str(error), "error")
            return
        self._screen.note(f"{entry.title} is here now.")
        if load:
            self.load(load)

"""Fills the gap in some code, from the chat and beside it."""

from typing import TYPE_CHECKING

from specchat.chat import new_id
from specchat.complete.run import no_infill
from specchat.tui.commands import CommandError
from specchat.tui.fills import gap_in, request
from specchat.tui.screens.fill import Fill
from specengine.errors import EngineError

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen


def fill(screen: "TalkScreen", text: str) -> None:
    """Shows what belongs into the gap of `text`.

    Raises:
        CommandError: there is no gap, or no model that can fill it; one sentence.
    """
    session = screen.session
    loaded = session.engine.loaded
    if session.busy or loaded is None:
        raise CommandError("Nothing can be filled in while a model is loaded; try again in a moment.")
    if not loaded.infill:
        raise CommandError(no_infill(loaded.name))
    try:
        gap = gap_in(text)
    except EngineError as error:
        raise CommandError(str(error)) from None

    def filled(text: str | None) -> None:
        if text:
            screen.note(text.strip("\n"), "figures")

    screen.app.push_screen(Fill(session.engine, gap, request(new_id(), gap, session.settings)), filled)

"""The status bar: one line, what matters most first; the rest where there is room."""

import os
import sys

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from specchat.tui.course import Course, glyphs
from specchat.tui.figures import Piece, by_source, fitting, names, status
from specengine.protocol import Loaded
from specengine.settings import Speculation
from specengine.stats import Stats

_GAP = 3


class StatusBar(Static):
    loaded: reactive[Loaded | None] = reactive(None)
    stats: reactive[Stats | None] = reactive(None, always_update=True)
    live: reactive[bool] = reactive(False)
    speculation: reactive[Speculation] = reactive("auto")
    activity: reactive[str] = reactive("")
    """What goes on in place of figures: loading, reading the prompt."""

    def __init__(self) -> None:
        super().__init__()
        self.course = Course()
        """How the shown answer went."""
        self.levels = glyphs(os.environ, getattr(sys.__stderr__, "encoding", None))  # where Textual draws

    def watch_stats(self) -> None:
        self.tooltip = by_source(self.stats) or None

    def render(self) -> Content:
        pieces = status(self.loaded, self.stats, self.live, self.speculation, self.course, self.levels)
        if self.activity:
            model = [] if self.loaded is None else [Piece(names(self.loaded), 2)]
            pieces = [*model, Piece(self.activity, 1), pieces[-1]]
        shown = fitting(pieces, self.size.width, _GAP)
        room = self.size.width - sum(Content(piece.text).cell_length for piece in shown)
        gaps = [" " * _GAP] * (len(shown) - 1)
        if gaps:
            gaps[-1] = " " * max(_GAP, room - _GAP * (len(gaps) - 1))
        parts = [Content.styled(piece.text, _style(piece, first=piece is shown[0])) for piece in shown]
        return Content.assemble(*(part for pair in zip(parts, [*gaps, ""], strict=True) for part in pair))


def _style(piece: Piece, first: bool) -> str:
    match piece.style:
        case "spec-off":
            return "$text-warning bold"
        case "spec-on" | "spec-auto":
            return "$text-success bold"
        case _:
            return "$foreground" if first else "$foreground 60%"

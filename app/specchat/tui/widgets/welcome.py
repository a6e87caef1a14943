"""What an empty chat says: what this is, and which keys matter."""

from textual.content import Content

from specchat.tui.widgets.fitted import Fitted
from specchat.tui.wrapping import in_rows

_WHAT = "Chat with a model on this machine: faster by drafts that it checks itself."
_KEYS = (
    ("enter", "send"),
    ("ctrl+j", "new line"),
    ("esc", "stop"),
    ("ctrl+t", "speculation"),
    ("f1", "help"),
    ("ctrl+q", "quit"),
)


class Welcome(Fitted):
    def laid(self, width: int) -> Content:
        keys = [Content.assemble((key, "$text-accent"), " ", (does, "$foreground 60%")) for key, does in _KEYS]
        what = Content.assemble(("specchat", "bold $text-primary"), "\n", _WHAT, "\n\n")
        return what + in_rows(keys, " · ", width)

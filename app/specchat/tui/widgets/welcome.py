"""What an empty chat says: what this is, and which keys matter."""

from textual.content import Content
from textual.widgets import Static

_WHAT = "Chat with a model on this machine: faster by drafts that it checks itself."
_KEYS = (
    ("enter", "send"),
    ("ctrl+j", "new line"),
    ("esc", "stop"),
    ("ctrl+t", "speculation"),
    ("f1", "help"),
    ("ctrl+q", "quit"),
)


class Welcome(Static):
    def render(self) -> Content:
        keys = Content(" · ").join(
            Content.assemble((key, "$text-accent"), " ", (does, "$foreground 60%")) for key, does in _KEYS
        )
        return Content.assemble(("specchat", "bold $text-primary"), "\n", _WHAT, "\n\n", keys)

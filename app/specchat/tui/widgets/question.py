"""What the user said, as plain text; long pastes stay collapsed until they are clicked."""

from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 2000
_EXPANDED_CHARACTERS = 20_000
"""Most that is laid out at once, even expanded; the rest is in the chat all the same."""


class Question(Static):
    queued: reactive[bool] = reactive(False, layout=True, toggle_class="-queued")

    def __init__(self, prompt: str, shown: str) -> None:
        super().__init__()
        self.prompt = prompt
        self._collapsed = _collapsed(shown)
        self._expanded = False

    @property
    def text(self) -> str:
        """What is on the screen."""
        if not self._expanded:
            return self._collapsed
        rest = len(self.prompt) - _EXPANDED_CHARACTERS
        return self.prompt if rest <= 0 else f"{self.prompt[:_EXPANDED_CHARACTERS]}\n… {rest:,} more characters"

    def render(self) -> Content:
        waiting = Content.styled("\nqueued", "italic") if self.queued else ""
        return Content.assemble(Content(self.text), waiting)

    def on_click(self) -> None:
        if self.prompt != self._collapsed and not self.screen.get_selected_text():
            self._expanded = not self._expanded
            self.refresh(layout=True)


def _collapsed(shown: str) -> str:
    lines = shown.split("\n")
    head = "\n".join(lines[:_SHOWN_LINES])
    if len(head) > _SHOWN_CHARACTERS:
        return f"{head[:_SHOWN_CHARACTERS]}…\n… {len(shown) - _SHOWN_CHARACTERS:,} more characters, click to see them"
    if len(lines) > _SHOWN_LINES:
        return f"{head}\n… {len(lines) - _SHOWN_LINES:,} more lines, click to see them"
    return shown

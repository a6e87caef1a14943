"""What the keys of a screen do, in the order of its bindings and by the last words of their names; each can be clicked
too.
"""

from textual.binding import Binding
from textual.content import Content
from textual.style import Style

from specchat.tui.widgets.fitted import Fitted
from specchat.tui.wrapping import in_rows

_SHORT = {"escape": "esc", "delete": "del"}


class KeyLine(Fitted):
    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, str] = {}

    def tell(self, id: str, word: str) -> None:
        """What the key of the binding `id` does from now on, where that isn't what it is named after."""
        self._told[id] = word
        self.refresh(layout=True)

    def laid(self, width: int) -> Content:
        """Made anew each time: keys may have been given other places."""
        bindings = [binding for binding in self.screen.BINDINGS if isinstance(binding, Binding) and binding.show]
        keys: dict[str | None, list[str]] = {}
        for key, active in self.screen.active_bindings.items():
            keys.setdefault(active.binding.id, []).append(key)
        parts = []
        for binding in bindings:
            first = min(keys.get(binding.id, []), key=lambda key: _place(key, binding), default=None)
            if first:
                click = Style.from_meta({"@click": f"screen.{binding.action}"})
                shown = Content.styled(_SHORT.get(first, first), "$text-accent")
                word = self._told.get(str(binding.id)) or _words(binding)
                parts.append(Content.assemble(shown, f" {word}").stylize(click))
        return in_rows(parts, "  ", width)


def _words(binding: Binding) -> str:
    return str(binding.id).rpartition(".")[2].replace("_", " ")


def _place(key: str, binding: Binding) -> int:
    """Where the key stands among those that the binding came with; behind them if it is another one."""
    keys = binding.key.split(",")
    return keys.index(key) if key in keys else len(keys)

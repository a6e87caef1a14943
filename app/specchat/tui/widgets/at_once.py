"""What a key is bound to, done in the order in which keys arrive."""

from textual.events import Key
from textual.widget import Widget


async def acted(widget: Widget, event: Key) -> bool:
    """Does what the widget itself binds to a key, if anything. Left to itself the event goes up to the app first, and
    keys that waited behind it, on a busy screen, would be dealt with before it acts."""
    bound = widget.screen.active_bindings.get(event.key)
    if bound is None or bound.node is not widget or not await widget.app.run_action(bound.binding.action, widget):
        return False
    event.stop()
    event.prevent_default()
    return True

"""Work beside the screen that starts it."""

from collections.abc import Callable, Coroutine
from typing import Any

from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.worker import Worker


def begin(
    owner: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], group: str, *, exclusive: bool = False
) -> Worker[None]:
    """Starts work that ends with its owner; with `exclusive`, in place of what the group had begun before.

    It takes a function, so that work which is overtaken before its turn was never made.
    """

    async def until_closed() -> None:
        try:
            await work()
        except NoMatches:  # an owner that closes loses its parts before its work is ended
            if owner.is_running:
                raise

    worker: Worker[None] = owner.run_worker(until_closed, group=group, exclusive=exclusive)
    return worker

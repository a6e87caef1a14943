"""What may change while an answer runs."""

from dataclasses import dataclass

from specengine.settings import Speculation


@dataclass(slots=True)
class Controls:
    """Read at every round of the running answer, written by another thread: plain attributes, each set at once."""

    stop: bool = False
    speculation: Speculation = "auto"
    gamma: int | None = None

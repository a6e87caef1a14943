"""How often the screen follows a streaming answer."""

from typing import Final

REST_S: Final = 0.08
"""Shortest time between two updates."""
LONGEST_REST_S: Final = 1.0
REST_SHARE: Final = 16
"""Seconds of rest for each second of CPU that the last update took, layout and painting included: what the screen takes
from an engine that uses every core stays below a sixteenth of one of them."""


def rest_s(took_s: float) -> float:
    """Seconds to wait for the next update; more where the last one was dear, so that keys and the engine get their
    turn."""
    return min(max(REST_S, REST_SHARE * took_s), LONGEST_REST_S)

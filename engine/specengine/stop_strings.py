"""Finds the strings that end an answer, in text that arrives in parts."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """A stop string that completed."""

    end: int
    """Where it ends in the part pushed last, in characters."""
    length: int
    """Its length; it may have begun in an earlier part."""


class StopStrings:
    """The match that completes first wins; of several that complete with the same character, the longest.

    Each stop string is followed by its own automaton (Knuth, Morris and Pratt 1977), so a character costs the same
    however long the text before it is.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [(stop, _failures(stop)) for stop in stops]
        self._first = {stop[0] for stop in stops}
        self._matched = [0] * len(stops)

    @property
    def held(self) -> int:
        """Length of the longest end of the text so far that could still become a stop string."""
        return max(self._matched, default=0)

    def push(self, text: str) -> Match | None:
        """The first match that ends in `text`; nothing may be pushed after one."""
        if self.held == 0 and self._first.isdisjoint(text):
            return None
        for position, letter in enumerate(text):
            completed = 0
            for number, (stop, failures) in enumerate(self._stops):
                matched = self._matched[number]
                while matched and stop[matched] != letter:
                    matched = failures[matched - 1]
                if stop[matched] == letter:
                    matched += 1
                self._matched[number] = matched
                if matched == len(stop):
                    completed = max(completed, matched)
            if completed:
                return Match(position + 1, completed)
        return None


def _failures(stop: str) -> list[int]:
    """For each prefix of `stop`, the length of its longest proper prefix that is also its suffix."""
    failures = [0] * len(stop)
    matched = 0
    for position in range(1, len(stop)):
        while matched and stop[matched] != stop[position]:
            matched = failures[matched - 1]
        if stop[matched] == stop[position]:
            matched += 1
        failures[position] = matched
    return failures

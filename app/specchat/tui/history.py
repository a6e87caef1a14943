"""Earlier prompts, brought back with the arrow keys; what was being typed is kept meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    text: str
    pastes: Mapping[str, str]
    """What the chips in `text` stand for."""


@dataclass(slots=True)
class History:
    entries: list[Entry] = field(default_factory=list)
    _at: int | None = None
    _draft: Entry | None = None

    def add(self, entry: Entry) -> None:
        self._at = self._draft = None
        if not self.entries or self.entries[-1] != entry:
            self.entries.append(entry)

    def find(self, text: str) -> Entry | None:
        """The newest entry with this text."""
        return next((entry for entry in reversed(self.entries) if entry.text == text), None)

    def earlier(self, current: Entry) -> Entry | None:
        """The entry before the shown one; None at the first."""
        if self._at is None:
            self._at, self._draft = len(self.entries), current
        if self._at == 0:
            return None
        self._at -= 1
        return self.entries[self._at]

    def later(self) -> Entry | None:
        """The entry after the shown one, in the end what was being typed; None when that is shown."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self.entries):
            return self.entries[self._at]
        self._at, draft = None, self._draft
        return draft

"""Earlier prompts, brought back with the arrow keys or by a search; what was being typed is kept meanwhile."""

from dataclasses import dataclass, field

from specchat.tui.chips import plain
from specchat.tui.history_file import Entry, HistoryFile

__all__ = ["Entry", "History"]


@dataclass(slots=True)
class History:
    file: HistoryFile | None = None
    """Where prompts are kept between starts."""
    entries: list[Entry] = field(default_factory=list)
    _at: int | None = None
    _draft: Entry | None = None

    def __post_init__(self) -> None:
        if self.file is not None:
            self.entries = self.file.read()

    def add(self, entry: Entry) -> None:
        """Adds the newest one.

        Raises:
            EngineError: it can't be kept between starts; here it is all the same.
        """
        self._at = self._draft = None
        if not self.entries or self.entries[-1] != entry:
            self.entries.append(entry)
            if self.file is not None:
                self.file.append(entry)

    def shows(self, text: str) -> bool:
        """Whether this is the text of the entry that was brought back, as it was."""
        return self._at is not None and self._at < len(self.entries) and self.entries[self._at].text == text

    def find(self, text: str) -> Entry | None:
        """The newest entry with this text, its chips as they are shown elsewhere."""
        return next((entry for entry in reversed(self.entries) if plain(entry.text, entry.chips) == text), None)

    def search(self, words: str) -> list[Entry]:
        """The entries that hold all these words, the newest first, each text once, and no commands. Capitals make no
        difference."""
        wanted = words.lower().split()
        found: dict[str, Entry] = {}
        for entry in reversed(self.entries):
            text = entry.text.lower()
            if entry.text not in found and not _is_command(text) and all(word in text for word in wanted):
                found[entry.text] = entry
        return list(found.values())

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


def _is_command(text: str) -> bool:
    return text.startswith("/") and "\n" not in text

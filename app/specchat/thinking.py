"""Thinking blocks of reasoning models: `<think>…</think>` at the start of an answer, as Qwen3 and others write it."""

from typing import Final

_OPENS: Final = "<think>"
_CLOSES: Final = "</think>"


class Thinking:
    """Parts a streaming answer into its thinking block and what follows. The tags belong to neither."""

    def __init__(self) -> None:
        self.found = False
        """The answer began with a thinking block."""
        self.over = False
        """Whatever comes now belongs to the answer proper."""
        self._held = ""
        """Text that may be, or become, a tag."""

    def feed(self, text: str) -> tuple[str, str]:
        """What `text` adds to the thinking block, and what to the answer proper."""
        if self.over:
            return "", text
        self._held += text
        if not self.found:
            start = self._held.lstrip()
            if not start.startswith(_OPENS):
                self.over = not _OPENS.startswith(start)
                return "", self._release(len(self._held) if self.over else 0)
            self.found, self._held = True, start.removeprefix(_OPENS)
        thought, closes, rest = self._held.partition(_CLOSES)
        if closes:
            self.over, self._held = True, ""
            return thought, rest
        begun = next(length for length in range(len(_CLOSES) - 1, -1, -1) if thought.endswith(_CLOSES[:length]))
        return self._release(len(thought) - begun), ""

    def end(self) -> tuple[str, str]:
        """The same for what was held back, once no more text comes."""
        held = self._release(len(self._held))
        return (held, "") if self.found else ("", held)

    def _release(self, length: int) -> str:
        released, self._held = self._held[:length], self._held[length:]
        return released


def split(text: str) -> tuple[str | None, str]:
    """The thinking block of a whole answer, None where it has none, and the answer proper."""
    thinking = Thinking()
    (thought, rest), (last_thought, last_rest) = thinking.feed(text), thinking.end()
    return thought + last_thought if thinking.found else None, rest + last_rest

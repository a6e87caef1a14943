"""Keeps what people and models wrote from turning into special tokens on its way through a chat template."""

from collections.abc import Iterable, Iterator

from specengine.errors import EngineError
from specengine.language_model import Vocabulary
from specengine.special_strings import SpecialStrings, joined_tokens


class ContentMarks:
    """Marks for one prompt: single characters that occur in none of its texts, so no text can contain or forge one.

    Contents are handed to the template with a mark in every special look-alike. What is special in the rendered text
    was written by the template: there it is cut, the marks are removed, and each stretch is tokenised whole, so that a
    leading newline or indent merges with its surroundings as the model was trained on.
    """

    def __init__(self, vocabulary: Vocabulary, template: str, contents: Iterable[str]) -> None:
        self._vocabulary = vocabulary
        self._strings = SpecialStrings(vocabulary.special)
        self._sought = frozenset(
            text
            for text in self._strings.texts
            if text in template and vocabulary.special[text] not in vocabulary.control
        )
        self._free = _characters_outside(template, *contents)
        self._removed: dict[int, None] = {}
        self._cut = next(self._free)
        self._quote = self.new()
        self.edge = self.new()
        """To be put around contents, so that none becomes special together with what the template puts beside it."""

    def new(self) -> str:
        """One more mark; it leaves no trace in the tokens."""
        mark = next(self._free)
        self._removed[ord(mark)] = None
        return mark

    def broken(self, text: str, *, in_answer: bool = False) -> str:
        """The text with a mark in each look-alike.

        In answers, those stay whole that the template itself names (`</think>`, say, to split at); a mark before them
        says that they are content.
        """
        spared = self._sought if in_answer else frozenset[str]()
        marks = [(place, self._cut) for place in self._strings.cuts(text, spared)]
        if spared:
            marks += [
                (start, self._quote) for start, end in self._strings.occurrences(text) if text[start:end] in spared
            ]
        return _inserted(text, sorted(marks))

    def tokens(self, rendered: str, *, inside: bool) -> list[int]:
        """Ids of rendered text; if `inside`, it goes on from earlier tokens."""
        text = self._unquoted(rendered)
        ids: list[int] = []
        reached = 0
        for start, end in self._strings.apart(text):
            ids += self._plain(text[reached:start], inside)
            ids.append(self._vocabulary.special[text[start:end]])
            inside, reached = False, end
        return ids + self._plain(text[reached:], inside)

    def _unquoted(self, text: str) -> str:
        """Breaks the look-alikes that were left whole for the template to see."""
        first, *rest = text.split(self._quote)
        for number, part in enumerate(rest):
            length = max((len(sought) for sought in self._sought if part.startswith(sought)), default=0)
            if length:
                rest[number] = _inserted(part, [(length - 1, self._cut)])
        return self.edge.join([first, *rest])

    def _plain(self, text: str, inside: bool) -> list[int]:
        return joined_tokens(self._vocabulary, text.translate(self._removed).split(self._cut), inside=inside)


def _characters_outside(*texts: str) -> Iterator[str]:
    """Unassigned and private characters that none of the texts has; jinja's filters leave them alone."""
    taken = set[str]().union(*texts)
    for number in range(0x40000, 0x110000):
        if chr(number) not in taken:
            yield chr(number)
    raise EngineError("The conversation uses every character that Unicode leaves free; remove the binary data from it.")


def _inserted(text: str, marks: list[tuple[int, str]]) -> str:
    """The text with each mark before the character at its place; places ascend."""
    parts: list[str] = []
    reached = 0
    for place, mark in marks:
        parts += (text[reached:place], mark)
        reached = place
    return "".join(parts) + text[reached:]

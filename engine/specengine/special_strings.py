"""Where a text spells special tokens, and how to tokenise it so that it stays text."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Final

from specengine.language_model import Vocabulary, spelled


class SpecialStrings:
    """The texts of a vocabulary's special tokens.

    Runs of whitespace and single characters, which some vocabularies list as user-defined tokens, are no marks: they
    mean the same as text and as a token, and are left to the tokenizer.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = frozenset(text for text in texts if len(text) > 1 and text.strip(_BLANK))
        starts = groupby(sorted(self.texts), key=lambda text: text[:_START])
        self._lengths = {start: sorted({len(text) for text in group}, reverse=True) for start, group in starts}
        self._starts = re.compile(f"(?={'|'.join(map(re.escape, self._lengths))})" if self._lengths else "(?!)")

    def occurrences(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of every special string, overlapping ones too; by start, the longest first."""
        for found in self._starts.finditer(text):
            start = found.start()
            for length in self._lengths[text[start : start + _START]]:
                end = start + length
                if end <= len(text) and text[start:end] in self.texts:
                    yield start, end

    def apart(self, text: str) -> Iterator[tuple[int, int]]:
        """The occurrences from left to right that don't overlap, the longest at each place."""
        reached = 0
        for start, end in self.occurrences(text):
            if start >= reached:
                yield start, end
                reached = end

    def cuts(self, text: str, spared: frozenset[str] = frozenset()) -> list[int]:
        """The fewest places to cut `text` at, so that no special string is left whole but the spared ones."""
        places: list[int] = []
        for start, end in sorted(self.occurrences(text), key=lambda occurrence: occurrence[1]):
            if text[start:end] not in spared and (not places or places[-1] <= start):
                places.append(end - 1)
        return places


def plain_tokens(vocabulary: Vocabulary, strings: SpecialStrings, text: str, *, inside: bool = False) -> list[int]:
    """Ids of `text`, none of them special, whatever it spells; they spell `text` again. With `inside`, it goes on from
    earlier tokens."""
    cuts = strings.cuts(text)
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    return joined_tokens(vocabulary, pieces, inside=inside)


def joined_tokens(vocabulary: Vocabulary, pieces: Iterable[str], *, inside: bool = False) -> list[int]:
    """Ids of pieces of one text, each tokenised for itself; with `inside`, the first goes on from earlier tokens."""
    ids: list[int] = []
    for piece in pieces:
        if piece:
            ids += _continued(vocabulary, piece) if inside else vocabulary.tokenize(piece)
            inside = True
    return ids


def _continued(vocabulary: Vocabulary, text: str) -> list[int]:
    """Ids of a text that goes on: some SentencePiece tokenizers put a space before whatever they are given."""
    ids = vocabulary.tokenize(text)
    if spelled(vocabulary, ids) == text.encode():
        return ids
    # A newline takes that space; being a token of its own there, it is cut off again.
    ids = vocabulary.tokenize("\n" + text)
    newline = next(place for place, token in enumerate(ids) if vocabulary.piece(token).endswith(b"\n"))
    return ids[newline + 1 :]


_START: Final = 2
_BLANK: Final = " \t\n\r▁"

"""Chips: short labels in the prompt that stand for pasted texts and attached files."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from specchat import prompt_text
from specchat.tui.attachments import Attachment

Chips = Mapping[str, str | Attachment]
"""Label → the text that was pasted, or the file."""

_BOUND = "\N{NO-BREAK SPACE}"
"""Stands for every space of a label, so that the same words typed by hand are never taken for a chip."""


def pasted_label(number: int, text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
    return f"[Pasted #{number}: {size}]".replace(" ", _BOUND)


def file_label(file: Attachment) -> str:
    return f"[@{file.name}: {file.size_in_words}]".replace(" ", _BOUND)


def number_of(label: str) -> int:
    """The number of a pasted chip; 0 for a file's."""
    found = re.match(r"\[Pasted.#(\d+)", label)
    return int(found[1]) if found else 0


def spans(text: str, chips: Chips) -> Iterator[tuple[int, int]]:
    """Start and end of every chip in `text`."""
    if chips:
        longest_first = sorted(chips, key=len, reverse=True)
        for found in re.finditer("|".join(map(re.escape, longest_first)), text):
            yield found.span()


def used(text: str, chips: Chips) -> dict[str, str | Attachment]:
    """The chips that `text` holds, in its order."""
    labels = (text[start:end] for start, end in spans(text, chips))
    return {label: chips[label] for label in labels}


def inside(line: str, column: int, chips: Chips) -> tuple[int, int] | None:
    """Start and end of the chip that `column` lies strictly inside of."""
    return next(((start, end) for start, end in spans(line, chips) if start < column < end), None)


def touching(line: str, column: int, chips: Chips) -> tuple[int, int] | None:
    """Start and end of the chip that ends at `column`, else of the one that begins there."""
    found = [(start, end) for start, end in spans(line, chips) if column in (start, end)]
    return next((span for span in found if span[1] == column), found[0] if found else None)


def plain(text: str, chips: Chips) -> str:
    """`text` with its labels as ordinary words, to be shown where they can't be opened."""
    return _replaced(text, chips, lambda label: label.replace(_BOUND, " "))


def spelled_out(text: str, chips: Chips) -> str:
    """`text` with pasted texts in the places of their chips; files keep theirs. Chips inside pasted text stay text."""
    return _replaced(text, chips, lambda label: _pasted(label, chips))


def prompt_of(text: str, chips: Chips, contents: Mapping[Path, str]) -> str:
    """What the model gets: `contents` of the attached files, each in a fence below its name, above the words, which
    call them by these names."""
    files = {file.path: file for file in used(text, chips).values() if isinstance(file, Attachment)}
    words = _replaced(text, chips, lambda label: _named(label, chips))
    if not files:
        return words
    fences = [prompt_text.fenced(file.name, contents[path]) for path, file in files.items()]
    return prompt_text.joined([*fences, words])


def command_of(text: str, chips: Chips, contents: Mapping[Path, str]) -> str:
    """What a command gets: pasted texts and files alike in the places of their chips."""

    def content(label: str) -> str:
        stands_for = chips[label]
        return contents[stands_for.path] if isinstance(stands_for, Attachment) else stands_for

    return _replaced(text, chips, content)


def _pasted(label: str, chips: Chips) -> str:
    stands_for = chips[label]
    return label if isinstance(stands_for, Attachment) else stands_for


def _named(label: str, chips: Chips) -> str:
    stands_for = chips[label]
    return stands_for.name if isinstance(stands_for, Attachment) else stands_for


def _replaced(text: str, chips: Chips, by: Callable[[str], str]) -> str:
    parts, reached = [], 0
    for start, end in spans(text, chips):
        parts += [text[reached:start], by(text[start:end])]
        reached = end
    return "".join([*parts, text[reached:]])

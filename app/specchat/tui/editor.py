"""The user's own editor on the prompt: chips are opened for it, and closed again afterwards."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from specchat.tui.attachments import Attachment
from specchat.tui.chips import Chips, spans
from specengine.errors import EngineError

_USUAL = ("nano", "vim", "vi", "notepad")
"""Taken in this order where the user named none."""


def command(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The editor's command line: $VISUAL, $EDITOR, or a usual one that is here.

    Raises:
        EngineError: there is none; one sentence.
    """
    named = environment.get("VISUAL", "").strip() or environment.get("EDITOR", "").strip()
    if not named:
        found = next((name for name in _USUAL if shutil.which(name)), None)
        if found is None:
            raise EngineError("There is no editor: set VISUAL or EDITOR to the one you use.")
        return [found]
    try:
        words = shlex.split(named, posix=os.name != "nt")
    except ValueError:
        words = []
    if not words or shutil.which(words[0].strip('"')) is None:
        raise EngineError(f"The editor {named!r} is not there: set VISUAL or EDITOR to one that is.")
    return [words[0].strip('"'), *words[1:]]


def edited(text: str, editor: list[str]) -> str:
    """`text` as the user left it in the editor, which takes over the terminal meanwhile. Blocks.

    Raises:
        EngineError: the editor failed, so that nothing counts that it may have written; one sentence.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="specchat-") as folder:
            file = Path(folder) / "prompt.md"
            file.write_text(text, encoding="utf-8", errors="surrogatepass", newline="\n")
            status = subprocess.run([*editor, str(file)], check=False).returncode
            if status:
                raise EngineError(f"{editor[0]} ended with exit status {status}, so the prompt stays as it was.")
            written = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise EngineError(f"{editor[0]} could not be used: {error.strerror or error}; the prompt stays.") from None
    return written if text.endswith("\n") else written.removesuffix("\n")


def closed(written: str, text: str, chips: Chips) -> list[str | tuple[str, str]]:
    """What the user wrote, with chips closed again. `text` is the prompt as it was, with its `chips`.

    Gives literal text, and pairs of a label and what it stands for now: pasted texts that the user left alone, in the
    order of their chips, and what became of those that were changed. Where words around a changed text were changed
    too, they count as part of it. The labels of files are text here, and still work where they stay whole.
    """
    parts: list[str | tuple[str, str]] = []
    rest, head, lost, tail = written, "", "", ""
    for piece in _pieces(text, chips):
        if isinstance(piece, str):
            head, tail = (head, piece) if lost else (piece, "")
            continue
        label, pasted = piece
        place = rest.find(pasted)
        if place < 0:
            lost = lost or label
            continue
        parts += [*_between(rest[:place], head, lost, tail), piece]
        rest, head, lost, tail = rest[place + len(pasted) :], "", "", ""
    return [*parts, *_between(rest, head, lost, tail)]


def _pieces(text: str, chips: Chips) -> Iterator[str | tuple[str, str]]:
    """The prompt in literal texts and pasted chips, in turns."""
    reached = 0
    for start, end in spans(text, chips):
        stands_for = chips[text[start:end]]
        if not isinstance(stands_for, Attachment):
            yield text[reached:start]
            yield text[start:end], stands_for
            reached = end
    yield text[reached:]


def _between(written: str, head: str, lost: str, tail: str) -> list[str | tuple[str, str]]:
    """What was written where the chip `lost` (none if empty) stood between the words `head` and `tail`."""
    if not lost:
        return [written] if written else []
    head = head if written.startswith(head) else ""
    written = written[len(head) :]
    tail = tail if written.endswith(tail) else ""
    middle = written[: len(written) - len(tail)]
    found: list[str | tuple[str, str]] = [head, (lost, middle) if middle else "", tail]
    return [part for part in found if part]

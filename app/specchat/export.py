"""A chat as a Markdown or JSON document."""

import json
import re
import secrets
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from specchat.chat import Answer, Turn
from specchat.store.chats import Kept
from specchat.title import file_name
from specengine.errors import EngineError

Format = Literal["md", "json"]
_FORMAT: Final = 1
"""Goes up when a reader of the JSON would have to change."""


def exported(kept: Kept, form: Format) -> str:
    """The chat as a document: the branch that is shown as Markdown, or all there is as JSON."""
    return markdown(kept) if form == "md" else json.dumps(as_json(kept), ensure_ascii=False, indent=2) + "\n"


def default_name(kept: Kept, form: Format) -> str:
    return file_name(kept.listed.title, f".{form}")


def written(text: str, file: Path, *, replace: bool = False) -> Path:
    """Writes a document, whole or not at all, or into a pipe or a device; returns where it is now.

    Raises:
        EngineError: there is such a file already and `replace` was not said, or it can't be written; or it is called
            "-", which is not meant as a name.
    """
    if file == Path("-"):
        raise EngineError("- stands for no file here; choose another name.")
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            with file.open("w", encoding="utf-8", newline="\n") as out:
                out.write(text)
        elif replace:
            whole = file.resolve()  # a link stays one
            part = whole.with_name(f".{whole.name}.{secrets.token_hex(4)}")
            _fill(part, text)
            part.replace(whole)
        else:
            _fill(file, text)
    except FileExistsError:
        raise EngineError(f"{file} is there already; choose another name.") from None
    except OSError as error:
        raise EngineError(f"{file} can't be written: {error.strerror or error}; choose another place.") from None
    return file.absolute()


def _fill(file: Path, text: str) -> None:
    """Makes a new file; what there is of it goes if it can't be filled."""
    with file.open("x", encoding="utf-8", newline="\n") as out:
        try:
            out.write(text)
            out.flush()
        except OSError:
            file.unlink()
            raise


def markdown(kept: Kept) -> str:
    """The branch that is shown, as a document with front matter.

    What the user and the model wrote stands there as it is; a code fence that was left open is closed, so that it
    doesn't swallow what follows.
    """
    listed = kept.listed
    models = dict.fromkeys(turn.answer.model for turn in kept.conversation.turns if turn.answer and turn.answer.model)
    front = [
        "---",
        f"title: {json.dumps(listed.title, ensure_ascii=False)}",
        f"model: {json.dumps(', '.join(models) or kept.model, ensure_ascii=False)}",
        f"date: {_when(listed.created_s)}",
        "---",
        "",
        f"# {listed.title}",
        "",
    ]
    parts = ["\n".join(front)]
    if kept.conversation.system:
        parts.append(f"## System\n\n{closed(kept.conversation.system)}\n")
    for turn in (*kept.conversation.turns, *kept.unanswered):
        parts.append(f"## You\n\n{closed(turn.prompt)}\n")
        if turn.answer:
            parts.append(f"## {turn.answer.model or 'Answer'}\n\n{closed(turn.answer.text)}\n")
            if (ending := _ENDINGS.get(turn.answer.ending)) is not None:
                parts.append(f"*({ending})*\n")
    return "\n".join(parts)


def as_json(kept: Kept) -> dict[str, Any]:
    """All branches, with everything that is known of each answer."""
    listed, shown = kept.listed, (*kept.conversation.turns, *kept.unanswered)
    return {
        "format": _FORMAT,
        "id": listed.id,
        "title": listed.title,
        "created": _when(listed.created_s),
        "updated": _when(listed.updated_s),
        "system": kept.conversation.system,
        "model": kept.model,
        "draft": kept.draft,
        "settings": msgspec.to_builtins(kept.settings),
        "branch": [turn.id for turn in shown],
        "turns": [_turn(turn) for turn in sorted((*shown, *kept.conversation.others), key=lambda turn: turn.asked_s)],
    }


def closed(text: str) -> str:
    """The text without blank lines at its ends, and with the code fence closed that it leaves open."""
    text = text.strip("\n")
    fence = open_fence(text)
    return f"{text}\n{fence}" if fence else text


def open_fence(text: str) -> str:
    """The fence that is still open at the end of Markdown; empty where none is."""
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not found:
            continue
        mark, rest = found.groups()
        if not fence:
            if mark[0] == "~" or "`" not in rest:
                fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip():
            fence = ""
    return fence


_FENCE: Final = re.compile(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)]) {1,4})?\s*(`{3,}|~{3,})(.*)$")
_ENDINGS: Final = {
    "stopped": "stopped",
    "length": "cut at the longest length that was allowed",
    "context": "cut where the context was full",
    "failed": "broken off",
}
"""What a reader should know of how an answer ended."""


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "parent": turn.parent,
        "asked": _when(turn.asked_s),
        "prompt": turn.prompt,
        "shown": turn.shown,
        "answer": None if turn.answer is None else _answer(turn.answer),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "text": answer.text,
        "ending": answer.ending,
        "ended": _when(answer.ended_s) if answer.ended_s else None,
        "model": answer.model,
        "draft": answer.draft,
        "settings": msgspec.to_builtins(answer.settings),
        "stats": msgspec.to_builtins(answer.stats),
        "runs": msgspec.to_builtins(answer.runs),
        "tokens": answer.tokens,
    }


def _when(seconds: float) -> str:
    """Local time with its offset, to the second."""
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")

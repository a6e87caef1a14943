"""`specchat chats`: what was said before, listed, shown, exported and deleted."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from specchat.folding import columns, say
from specchat.table import Column, table
from specchat.title import ending_with
from specengine.errors import EngineError

if TYPE_CHECKING:
    from specchat.store.chats import Listed, Store


@click.group(name="chats")
def chats() -> None:
    """Lists, shows, exports and deletes chats. The beginning of an ID is enough.

    \b
    specchat chats list
    specchat chats list --search "kv cache"
    specchat chats show k3mzq
    specchat chats export k3mzq -o cache.md
    specchat chats rm k3mzq
    """


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SHOWN: Final = (
    *(Column("ID"), Column("last used"), Column("turns", right=True, spare=2), Column("model", spare=1)),
    Column("title", least=30, cut=True),
)


@chats.command(name="list")
@click.option("--search", "words", metavar="TEXT", help="Only chats that hold all these words.")
@click.option("--deleted", is_flag=True, help="Those that `restore` brings back.")
@_json
def list_chats(words: str | None, deleted: bool, as_json: bool) -> None:
    """Shows all chats, the one used last first."""
    from specchat.store import search

    with _store() as store:
        listed = store.listed(deleted) if store else []
        others = bool(store and not deleted and store.listed(deleted=True))
        if words is not None and store:
            found = {find.chat for find in search.find(store, words)}
            listed = [chat for chat in listed if chat.id in found]
    if as_json:
        click.echo(json.dumps({"chats": [_row(chat) for chat in listed]}, ensure_ascii=False, indent=2))
        return
    if not listed:
        say("No chat holds these words." if words else _nothing(deleted, others))
    for line in table(_SHOWN, [_cells(chat) for chat in listed], columns(sys.stdout)):
        click.echo(line)


def _nothing(deleted: bool, others: bool) -> str:
    if deleted:
        return "No chat was deleted."
    if others:
        return "There are no chats; `specchat chats list --deleted` shows those that were deleted."
    return "There are no chats yet."


@chats.command()
@click.argument("id")
@_json
def show(id: str, as_json: bool) -> None:
    """Prints a chat."""
    from specchat import export

    with _store() as store:
        kept = _existing(store, id).kept(_found(store, id))
    form: Literal["md", "json"] = "json" if as_json else "md"
    text = export.exported(kept, form)
    click.echo(text if as_json else _printable(text), nl=False)


@chats.command(name="export", short_help="Writes a chat as Markdown or JSON.")
@click.argument("id")
@click.option("--format", "form", type=click.Choice(["md", "json"]), help="Markdown (the default) or JSON.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write; stdout by default, or for -.")
@click.option("--yes", "-y", is_flag=True, help="Replace the file if there is one.")
@_json
def export_chat(id: str, form: Literal["md", "json"] | None, output: Path | None, yes: bool, as_json: bool) -> None:
    """Writes a chat as Markdown (the branch that is shown) or JSON (all there is).

    Without -o the document goes to stdout. With --json, the JSON document does, or, with -o, where it was written.
    """
    from specchat import export

    if output == Path("-"):
        output = None
    with _store() as store:
        kept = _existing(store, id).kept(_found(store, id))
    by_name: Literal["md", "json"] = "json" if output and output.suffix == ".json" else "md"
    text = export.exported(kept, form or ("json" if as_json and not output else by_name))
    if output is None:
        click.echo(text, nl=False)
        return
    replace = yes or (output.is_file() and _confirmed(f"Replace {output}?"))
    file = export.written(text, output, replace=replace)
    click.echo(json.dumps({"id": kept.listed.id, "file": str(file)}) if as_json else file)


@chats.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--now", is_flag=True, help="For good, not for `restore` to bring back.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@_json
def rm(ids: Sequence[str], now: bool, yes: bool, as_json: bool) -> None:
    """Deletes chats. They can be brought back for 30 days."""
    from specchat.store.open_chats import is_open

    with _store() as store:
        found = [_found(store, id) for id in ids]
        titles = {id: _existing(store, id).kept(id).listed.title for id in found}
        names = ", ".join(_printable(title) for title in titles.values())
        elsewhere = {id for id in found if store and is_open(store.path, id)}
        if now and elsewhere:
            which = ", ".join(_printable(titles[id]) for id in titles if id in elsewhere)
            raise EngineError(f"Nothing was deleted: a window has {which} open; close it first, or leave out --now.")
        if now and not (yes or _confirmed(f"Delete for good: {names}?")):
            raise EngineError("Nothing was deleted; -y deletes without a question.")
        assert store is not None
        with store.writing():
            for id in found:
                store.delete(id, 0.0 if now else time.time())
            if now:
                store.purge(1.0)
    if as_json:
        click.echo(json.dumps({"deleted": found, "for_good": now}))
        return
    for id, title in titles.items():
        back = "" if now else f" `specchat chats restore {id}` brings it back within 30 days."
        back += " It is open in a window, and comes back if it goes on there." if id in elsewhere else ""
        say(f"Deleted: {ending_with(_printable(title))}{back}")


@chats.command()
@click.argument("id")
@_json
def restore(id: str, as_json: bool) -> None:
    """Brings a deleted chat back."""
    with _store() as store:
        found = _found(store, id, deleted=True)
        assert store is not None
        with store.writing():
            store.restore(found)
        title = store.kept(found).listed.title
    if as_json:
        click.echo(json.dumps({"restored": found}))
    else:
        say(f"Back again: {ending_with(_printable(title))}")


@contextmanager
def _store() -> "Iterator[Store | None]":
    """The store, open; None where nothing was ever kept."""
    from specchat import paths
    from specchat.store.chats import Store

    if not paths.chats_file().exists():
        yield None
        return
    with Store(paths.chats_file()) as store:
        yield store


def _existing(store: "Store | None", id: str) -> "Store":
    if store is None:
        raise EngineError(f"There is no chat {id!r}; none was kept yet.")
    return store


def _found(store: "Store | None", id: str, deleted: bool = False) -> str:
    return _existing(store, id).find(id, deleted)


def _cells(chat: "Listed") -> tuple[str, ...]:
    when = datetime.fromtimestamp(chat.updated_s).strftime("%Y-%m-%d %H:%M")
    return chat.id, when, _turns(chat.turns), chat.model, _printable(chat.title)


def _row(chat: "Listed") -> dict[str, Any]:
    return {
        "id": chat.id,
        "title": chat.title,
        "created": _iso(chat.created_s),
        "updated": _iso(chat.updated_s),
        "deleted": None if chat.deleted_s is None else _iso(chat.deleted_s),
        "model": chat.model,
        "turns": chat.turns,
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


def _turns(count: int) -> str:
    return f"{count} turn" if count == 1 else f"{count} turns"


def _printable(text: str) -> str:
    """Without what a terminal would obey: prompts may hold whatever was pasted."""
    from specengine.clean_text import clean

    return clean(text.encode("utf-8", "replace"))


def _confirmed(question: str) -> bool:
    return sys.stdin.isatty() and click.confirm(question, err=True)

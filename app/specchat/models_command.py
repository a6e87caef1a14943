"""`specchat models`: what there is, what is here, and how to get it."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import click

from specengine.errors import EngineError

if TYPE_CHECKING:
    from specengine.catalog import Catalog, Entry
    from specengine.hardware import Hardware
    from specengine.transfer import PullProgress


@click.group(name="models")
def models() -> None:
    """Lists, fetches and removes models.

    \b
    specchat models list
    specchat models pull qwen2.5-coder-1.5b
    specchat models rm qwen2.5-coder-1.5b
    """


_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@models.command(name="list")
@_json
def list_models(as_json: bool) -> None:
    """Shows all models of the catalogue: what is here, and what suits this machine."""
    from specchat import paths
    from specengine import hardware

    with _one_sentence():
        catalog = _catalog()
        machine = hardware.detect(paths.models_dir())
        rows = [_row(catalog, entry, machine) for entry in catalog.models.values()]
        best = hardware.best_fit(catalog, machine).entry.name
    if as_json:
        click.echo(json.dumps({"models": rows, "best": best, "default": catalog.default}, indent=2))
        return
    for row in rows:
        state = "here" if row["path"] else "fits" if row["fits"] else "too large"
        marks = " (best for this machine)" if row["name"] == best else ""
        draft = f"  draft {row['draft']}" if row["draft"] else ""
        click.echo(
            f"{row['name']:<20} {_size(row['size']):>8}  {state:<9}  {row['licence']:<19}{draft}{marks}".rstrip()
        )


@models.command()
@click.argument("name")
@click.option(
    "--offline",
    is_flag=True,
    envvar="SPECCHAT_OFFLINE",
    help="Use no network; only a model that is here already will do.",
)
@_json
def pull(name: str, offline: bool, as_json: bool) -> None:
    """Fetches a model and prints the path of its file. Goes on where an earlier pull ended."""
    from specchat import paths
    from specengine import download

    with _one_sentence(), _interruptible() as interrupted:
        entry = _catalog().find(name)
        progress = ProgressLine(entry.name)
        try:
            path = download.pull(
                entry,
                paths.models_dir(),
                progress=progress,
                cancelled=interrupted.is_set,
                offline=offline,
            )
        except download.PullCancelled:
            progress.end()
            click.echo("Stopped. What arrived is kept; pull again to go on.", err=True)
            sys.exit(130)
        finally:
            progress.end()
    click.echo(json.dumps({"name": entry.name, "path": str(path)}) if as_json else path)


@models.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@_json
def rm(name: str, yes: bool, as_json: bool) -> None:
    """Deletes a model's file, and what there is of an unfinished pull."""
    from specchat import paths
    from specengine import download

    with _one_sentence():
        entry = _catalog().find(name)
        here = download.installed(entry, paths.models_dir())
        if here and not (yes or _confirmed(f"Delete {here}?")):
            raise EngineError(f"{here} stays where it is; -y deletes it without a question.")
        freed = download.remove(entry, paths.models_dir())
    if as_json:
        click.echo(json.dumps({"name": entry.name, "freed": freed}))
    else:
        click.echo(f"{entry.name}: {_size(freed)} freed." if freed else f"{entry.name} is not here.", err=True)


@models.command()
@click.argument("name")
@_json
def path(name: str, as_json: bool) -> None:
    """Prints the path of a model's file."""
    from specchat import paths
    from specengine import download

    with _one_sentence():
        entry = _catalog().find(name)
        here = download.installed(entry, paths.models_dir())
        if here is None:
            raise EngineError(f"{entry.name} is not here; `specchat models pull {entry.name}` fetches it.")
    click.echo(json.dumps({"name": entry.name, "path": str(here)}) if as_json else here)


def _confirmed(question: str) -> bool:
    """Asks on stderr. Input that ends without an answer is a no; Ctrl+C stays an interruption."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        return False


@dataclass
class ProgressLine:
    """Shows a pull on stderr: one line rewritten in place on a terminal, else a plain line every tenth of the file."""

    name: str
    stream: IO[str] = field(default_factory=lambda: sys.stderr)
    _said: tuple[object, ...] = ()
    _width: int = 0

    def __call__(self, progress: "PullProgress") -> None:
        if self.stream.isatty():
            text = self._text(progress)[: _columns() - 1]
            self.stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
            self.stream.flush()
            return
        tenth = progress.done * 10 // progress.total if progress.total else progress.done >> 26
        now = (progress.phase, progress.source, tenth if progress.phase == "downloading" else 0, progress.stalled)
        if now != self._said:
            self._said = now
            self.stream.write(self._text(progress) + "\n")
            self.stream.flush()

    def end(self) -> None:
        """Leaves the cursor on a fresh line."""
        if self._width:
            self.stream.write("\r" + " " * self._width + "\r")
            self.stream.flush()
            self._width = 0

    def _text(self, progress: "PullProgress") -> str:
        match progress.phase:
            case "waiting":
                return f"{self.name}: waiting for another pull of it"
            case "connecting":
                return f"{self.name}: asking {progress.source}"
            case "checking":
                return f"{self.name}: checking {_percent(progress)}"
        parts = [f"{self.name}: {_percent(progress)} {_size(progress.done)}"]
        if progress.total:
            parts[0] += f" of {_size(progress.total)}"
        if progress.stalled:
            parts.append("stalled")
        elif progress.rate:
            parts.append(f"{progress.rate / 1e6:.1f} MB/s")
            if progress.total:
                parts.append(_left((progress.total - progress.done) / progress.rate))
        return ", ".join([*parts, f"from {progress.source}"])


def _catalog() -> "Catalog":
    from specchat import paths
    from specengine import catalog

    return catalog.load(paths.models_overlays())


def _row(catalog: "Catalog", entry: "Entry", machine: "Hardware") -> dict[str, Any]:
    from specchat import paths
    from specengine import download, hardware

    fit = hardware.fits(entry, machine, draft=catalog.draft_of(entry))
    here = download.installed(entry, paths.models_dir())
    return {
        "name": entry.name,
        "title": entry.title,
        "parameters_billions": entry.parameters,
        "licence": entry.licence,
        "context": entry.context,
        "draft": entry.draft,
        "file": entry.gguf.file,
        "size": here.stat().st_size if here else entry.gguf.size or entry.gguf.approx_size,
        "path": str(here) if here else None,
        "fits": fit.fits,
        "memory_needed_estimate": fit.needed,
        "tokens_per_s_estimate": round(fit.tokens_per_s, 1) if fit.tokens_per_s else None,
    }


@contextmanager
def _one_sentence() -> Iterator[None]:
    """An error of the engine becomes its sentence on stderr and exit code 1."""

    try:
        yield
    except EngineError as error:
        click.echo(str(error), err=True)
        sys.exit(1)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Ctrl+C sets the event instead of breaking in anywhere."""
    interrupted = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _size(count: int | None) -> str:
    if count is None:
        return "?"
    return f"{count / 1e9:.2f} GB" if count >= 10**9 else f"{count / 1e6:.0f} MB"


def _percent(progress: "PullProgress") -> str:
    return f"{progress.done * 100 // progress.total}%" if progress.total else "…"


def _left(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 5400 else f"{seconds / 3600:.1f} h left"


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 80

"""`specchat models`: what there is, what is here, and how to get it."""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import click

from specchat.folding import columns, folded, say
from specchat.pull_words import progressed, stopped
from specchat.table import Column, table
from specengine.errors import EngineError
from specengine.transfer import megabytes

if TYPE_CHECKING:
    from specchat.model_facts import ModelFacts
    from specengine.catalog import Catalog, Entry
    from specengine.transfer import PullProgress


@click.group(name="models")
def models() -> None:
    """Lists, fetches and removes models.

    \b
    specchat models list
    specchat models pull qwen2.5-coder-1.5b
    specchat models rm qwen2.5-coder-1.5b
    """


_engine = click.option(
    "--engine",
    type=click.Choice(["llamacpp", "torch"]),
    default="llamacpp",
    show_default=True,
    help="Which engine's files: one GGUF file for llama.cpp, a folder of safetensors for torch.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_SHOWN: Final = (
    *(Column("name"), Column("size", right=True), Column("here or fitting"), Column("speed", spare=4)),
    *(Column("parameters and quantisation", spare=2), Column("licence", spare=3), Column("draft model", spare=1)),
    Column("which is best"),
)


@models.command(name="list", short_help="Shows what there is, what is here and what fits.")
@_json
def list_models(as_json: bool) -> None:
    """Shows the catalogue's models and the files beside them: what is here, and what suits this machine."""
    from specchat import config, paths
    from specchat.model_facts import survey
    from specengine import hardware

    with _one_sentence():
        catalog = _catalog()
        settings = config.read(paths.config_file())
        machine = hardware.detect(paths.models_dir(), paths.memory_speed_file())
        found = survey(
            catalog,
            paths.models_dir(),
            machine,
            paths.noise_file(),
            n_ctx=settings.ctx,
            exact=settings.exact or False,
        )
        best = hardware.best_fit(catalog, machine, settings.ctx).entry.name
    if as_json:
        rows = [_row(facts) for facts in found]
        click.echo(json.dumps({"models": rows, "best": best, "default": catalog.default}, indent=2))
        return
    width = columns(sys.stdout)
    for line in table(_SHOWN, [_cells(facts, best if width is None else "") for facts in found], width):
        click.echo(line)
    if width is not None:
        click.echo(folded(f"\n{best} is the best for this machine.", width))


@models.command()
@click.argument("name")
@click.option(
    "--offline",
    is_flag=True,
    envvar="SPECCHAT_OFFLINE",
    help="Use no network; only a model that is here already will do.",
)
@_engine
@_json
def pull(name: str, offline: bool, engine: str, as_json: bool) -> None:
    """Fetches a model and prints the path of its file. Goes on where an earlier pull ended."""
    from specchat import paths
    from specchat.other_ways import other_ways
    from specengine import download, weights_download

    with _one_sentence(), _interruptible() as interrupted:
        entry = _found(name)
        progress = ProgressLine(entry.name)
        try:
            fetch = weights_download.pull_weights if engine == "torch" else download.pull
            path = fetch(
                entry,
                paths.models_dir(),
                progress=progress,
                cancelled=interrupted.is_set,
                offline=offline,
            )
        except download.NotFetched as error:
            raise EngineError(f"{error} {other_ways(entry, _catalog(), paths.models_dir())}") from None
        except download.PullCancelled:
            progress.end()
            say(stopped(entry.name, download.held(entry, paths.models_dir())))
            sys.exit(130)
        finally:
            progress.end()
    click.echo(json.dumps({"name": entry.name, "path": str(path)}) if as_json else path)


@models.command()
@click.argument("name")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@_engine
@_json
def rm(name: str, yes: bool, engine: str, as_json: bool) -> None:
    """Deletes a model's file, and what there is of an unfinished pull."""
    from specchat import paths
    from specengine import download, weights_download

    with _one_sentence():
        entry = _found(name)
        torch = engine == "torch"
        here = (download.installed_weights if torch else download.installed)(entry, paths.models_dir())
        if here and not (yes or _confirmed(f"Delete {here}?")):
            raise EngineError(f"{here} stays where it is; -y deletes it without a question.")
        freed = (weights_download.remove_weights if torch else download.remove)(entry, paths.models_dir())
    if as_json:
        click.echo(json.dumps({"name": entry.name, "freed": freed}))
    else:
        say(f"{entry.name}: {megabytes(freed)} freed." if freed else f"{entry.name} is not here.")


@models.command()
@click.argument("name")
@_engine
@_json
def path(name: str, engine: str, as_json: bool) -> None:
    """Prints the path of a model's file."""
    from specchat import choice, paths
    from specchat.config import Config
    from specengine import download

    with _one_sentence():
        entry = _found(name)
        torch = engine == "torch"
        here = (download.installed_weights if torch else download.installed)(entry, paths.models_dir())
        if here is None:
            pull = f"specchat models pull {entry.name}" + (" --engine torch" if torch else "")
            raise EngineError(f"{entry.name} is not here; `{pull}` fetches it{choice.once_on(Config())}.")
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
            text = progressed(self.name, progress)[: (columns(self.stream) or 80) - 1]
            self.stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
            self.stream.flush()
            return
        tenth = progress.done * 10 // progress.total if progress.total else progress.done >> 26
        now = (progress.phase, progress.source, tenth if progress.phase == "downloading" else 0, progress.stalled)
        if now != self._said:
            self._said = now
            self.stream.write(progressed(self.name, progress) + "\n")
            self.stream.flush()

    def end(self) -> None:
        """Leaves the cursor on a fresh line."""
        if self._width:
            self.stream.write("\r" + " " * self._width + "\r")
            self.stream.flush()
            self._width = 0


def _catalog() -> "Catalog":
    from specchat import paths
    from specengine import catalog

    return catalog.load(paths.models_overlays())


def _found(name: str) -> "Entry":
    from specchat import choice, paths

    return choice.find(name, _catalog(), paths.models_dir())


def _cells(facts: "ModelFacts", best: str) -> tuple[str, ...]:
    entry = facts.entry
    size = megabytes(facts.size) if facts.size else "?"
    draft = f"draft {entry.draft}" if entry.draft else ""
    about_it = (facts.state, facts.speed, entry.kind, entry.licence, draft)
    return entry.name, size, *about_it, "(best for this machine)" if entry.name == best else ""


def _row(facts: "ModelFacts") -> dict[str, Any]:
    entry, fit, noise = facts.entry, facts.fit, facts.noise
    return {
        "name": entry.name,
        "title": entry.title,
        "parameters_billions": entry.parameters,
        "quantisation": entry.quantisation or None,
        "licence": entry.licence,
        "context": entry.context,
        "draft": entry.draft,
        "file": entry.gguf.file,
        "size": facts.size,
        "path": str(facts.path) if facts.path else None,
        "safetensors": str(facts.weights) if facts.weights else None,
        "kept": facts.kept,
        "digest_checked_against": facts.digest or None,
        "trouble": facts.trouble or None,
        "fits": fit.fits,
        "memory_needed_estimate": fit.needed,
        "memory_free": fit.available,
        "tokens_per_s_estimate": round(fit.tokens_per_s, 1) if fit.tokens_per_s else None,
        "width_noise": {
            "identical_text_expected": noise.noise.identical_text_expected,
            "max_difference": noise.noise.max_difference,
            "rms_difference": noise.noise.rms_difference,
            "device": noise.device,
        }
        if noise
        else None,
    }


@contextmanager
def _one_sentence() -> Iterator[None]:
    """An error of the engine becomes its sentence on stderr and exit code 1."""

    try:
        yield
    except EngineError as error:
        say(str(error))
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

"""From a command line to what happens: settings and model are settled, then the chat opens or one answer is given."""

import functools
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from specchat import choice, config, looks, oneshot, paths, prompt_text, resumed
from specchat.config import Config
from specchat.folding import say
from specchat.host import Host
from specchat.store.chats import Kept
from specengine import catalog, hub
from specengine.catalog import Catalog, Entry
from specengine.errors import EngineError
from specengine.protocol import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What the command line said."""

    words: str | None
    """The prompt."""
    files: tuple[Path, ...]
    piped: bytes | None
    """What came by stdin; None where it is a terminal."""
    once: bool
    """One answer on stdout instead of the chat."""
    stats: bool
    json: bool
    settings: Config
    resume: str | None = None
    """The chat to go on with: the beginning of its ID, LAST, or CHOOSE."""


LAST = resumed.LAST
CHOOSE = "?"


def start(said: Invocation) -> int:
    """Runs the chat or gives one answer; returns the exit code.

    Raises:
        EngineError: one sentence for the user.
        click.UsageError: there is nothing to answer.
    """
    text = _prompt(said)
    if said.once and not text:
        raise click.UsageError(_nothing_to_answer(said))
    if said.once and said.resume == CHOOSE:
        raise click.UsageError("Say which chat is to answer: --resume ID, as `specchat chats list` shows it, or -c.")
    models = catalog.load(paths.models_overlays())
    kept = None if said.resume in (None, CHOOSE) else resumed.opened(paths.chats_file(), said.resume or LAST)
    flags = said.settings
    if kept is not None:
        flags = flags.over(_still_here(resumed.settings_of(kept), flags, models))
    settings = config.read(paths.config_file(), flags=flags)
    if said.once:
        return _once(said, text, settings, models, kept)
    return _chat(text, settings, models, kept, choose=said.resume == CHOOSE)


def _still_here(settings: Config, flags: Config, models: Catalog) -> Config:
    """A chat's own settings, without its model where that can't be had any more; that is said on stderr."""
    if flags.model is not None or settings.model is None:
        return settings
    try:
        entry = choice.find(settings.model, models, paths.models_dir())
        choice.load_of(entry, choice.NO_DRAFT, settings, models, paths.models_dir(), paths.costs_file())
    except EngineError:
        say(f"This chat was written with {settings.model}, which is not here; another model goes on.")
        return msgspec.structs.replace(settings, model=None, draft=None)
    return settings


def _prompt(said: Invocation) -> str:
    """Files, then piped text, then the words; what could not be read of them is said on stderr."""
    parts = [prompt_text.attached(file) for file in said.files]
    if said.piped:
        parts.append(prompt_text.decoded(said.piped, "The piped text"))
    for _, complaint in parts:
        if complaint:
            say(complaint)
    return prompt_text.joined([part for part, _ in parts] + [said.words or ""])


def _nothing_to_answer(said: Invocation) -> str:
    if said.piped is None and said.words is None:
        return "There is nothing to answer: give a prompt with -p TEXT, or pipe text in."
    return "There is nothing to answer: the input is empty."


def _once(said: Invocation, text: str, settings: Config, models: Catalog, kept: Kept | None) -> int:
    entry = choice.chosen(settings, models, paths.models_dir())
    if entry is None:
        from specchat.fetch import fetch_default

        entry = fetch_default(models, paths.models_dir(), settings.offline or False)
    load = choice.load_of(entry, settings.draft, settings, models, paths.models_dir(), paths.costs_file())
    if load.draft is None and settings.draft is None:
        # Nobody asked for the catalogue's draft model, so a pipe needs no word about its absence.
        load = choice.without_draft(load)
    question = oneshot.Question(
        text=text,
        system=settings.system or "",
        load=load,
        sampling=settings.sampling(_any_seed()),
        limits=settings.limits(),
        speculation=settings.spec or "auto",
        gamma=settings.gamma,
        lookup=settings.lookup is not False,
        kept=kept,
        chats_file=None if settings.save is False else paths.chats_file(),
    )
    return oneshot.answer(question, oneshot.Output(json=said.json, stats=said.stats))


def _chat(text: str, settings: Config, models: Catalog, kept: Kept | None, choose: bool) -> int:
    if not sys.stderr.isatty():  # where Textual draws
        raise click.UsageError("The chat is drawn on stderr, which is no terminal here; use -p TEXT for one answer.")
    from specchat.tui.app import run
    from specchat.tui.options import TuiOptions
    from specchat.tui.pastes import CHIP_LINES

    def load_of(name: str, draft: str | None) -> Load:
        entry = choice.find(name, models, paths.models_dir())
        return choice.load_of(entry, draft, settings, models, paths.models_dir(), paths.costs_file())

    def missing(name: str, draft: str | None) -> tuple[Entry, ...]:
        entry = choice.find(name, models, paths.models_dir())
        return choice.missing(entry, draft, settings, models, paths.models_dir())

    entry = choice.chosen(settings, models, paths.models_dir())
    load = None
    if entry is not None:
        load = choice.load_of(entry, settings.draft, settings, models, paths.models_dir(), paths.costs_file())
    return run(
        TuiOptions(
            make_host=functools.partial(Host, paths.log_file()),
            make_load=load_of,
            missing=missing,
            models_dir=paths.models_dir(),
            noise_file=paths.noise_file(),
            speed_file=paths.memory_speed_file(),
            config_file=paths.config_file(),
            load=load,
            prompt=text or None,
            system=settings.system or "",
            sampling=settings.sampling(_any_seed()),
            limits=settings.limits(),
            speculation=settings.spec or "auto",
            gamma=settings.gamma,
            lookup=settings.lookup is not False,
            draft=settings.draft != choice.NO_DRAFT,
            n_ctx=settings.ctx,
            offline=settings.offline or hub.offline(),
            history_file=None if False in (settings.prompt_history, settings.save) else paths.history_file(),
            paste_lines=CHIP_LINES if settings.paste_lines is None else settings.paste_lines,
            overlays=paths.models_overlays(),
            theme=settings.theme or looks.DARK,
            mouse=settings.mouse is not False,
            animations=settings.animations is not False,
            keymap=settings.keymap or {},
            chats_file=None if settings.save is False else paths.chats_file(),
            resume=kept,
            choose_chat=choose,
        )
    )


def _any_seed() -> int:
    return random.SystemRandom().getrandbits(32)

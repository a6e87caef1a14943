"""`specchat bench`: from the command line to a loaded engine, and from records to what is printed."""

import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import get_args

import click
import msgspec

from specchat import choice, config, paths
from specchat.bench import machine, report
from specchat.bench.native_lines import native_lines_in
from specchat.bench.progress import Progress
from specchat.bench.results import results
from specchat.bench.run import Mode, Plan, Record, measure, possible_modes
from specchat.bench.workloads import NAMES, workload
from specchat.cli import INTERRUPTED
from specchat.config import Config
from specchat.engine_log import EngineLog
from specengine import catalog
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.protocol import Load, Loaded


def _names(known: Sequence[str]) -> Callable[[click.Context, click.Parameter, str | None], tuple[str, ...] | None]:
    """Reads names of a list, separated by commas."""

    def read(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
        for name in names:
            if name not in known:
                raise click.BadParameter(f"there is no {name!r}; choose from {', '.join(known)}.", context, option)
        return names

    return read


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("-m", "--model", metavar="NAME", help="A model of `specchat models list`, or the path of a .gguf file.")
@click.option("--draft", metavar="NAME|none", help="The draft model; by default the one the catalogue names.")
@click.option("--modes", callback=_names(get_args(Mode)), metavar="LIST", help="By default all that the model can do.")
@click.option("--workloads", callback=_names(NAMES), metavar="LIST", help=f"By default {','.join(NAMES)}.")
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True, help="Most tokens of a run.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each mode.")
@click.option("--temperature", type=float, default=0.0, show_default=True, metavar="T", help="0 is greedy.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="For temperatures above 0.")
@click.option("--gamma", type=click.IntRange(1), metavar="N", help="A fixed draft length, where one is chosen else.")
@click.option("--ctx", type=int, metavar="N", help="Context size in tokens.")
@click.option("--threads", type=int, metavar="N", help="CPU threads; by default the physical cores.")
@click.option("--exact", is_flag=True, default=None, help="Identical text in all modes, at some cost.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the table.")
def bench(
    modes: tuple[Mode, ...] | None,
    workloads: tuple[str, ...] | None,
    max_tokens: int,
    rounds: int,
    gamma: int | None,
    as_json: bool,
    **flags: object,
) -> int:
    """Measures what speculation gains on this machine, with one model.

    \b
    Workloads: edit     rename a variable in pasted code and give it all back
               explain  how a hash table works
               story    of a lighthouse keeper
    Modes:     plain    no speculation
               lookup   drafts by prompt lookup
               draft    drafts by the draft model
               auto     both, as in the chat

    How it is measured: pass costs are measured anew when the model is loaded. Each workload is answered once from
    empty caches; the time to its first token stands in the row of the first mode. Then every mode answers once in
    every round, and each round begins with another mode. A run finds the prompt in the target's KV cache and nothing
    else: no lookup index, no acceptance estimates, an empty cache in the draft model, whose reading of the prompt
    counts as decoding time. Ratios to plain are taken within each round. Shown are medians and, in brackets, the range
    over the rounds; counters are sums over them.

    To reproduce a result: same model, flags and Python version (the code in the prompts is that of its standard
    library), on a machine with nothing else to do.

    \b
    specchat bench --model qwen2.5-coder-1.5b
    specchat bench --model qwen2.5-coder-1.5b --max-tokens 512 --json > bench.json
    specchat bench --modes plain,draft --gamma 3

    Ctrl+C ends it; what was finished is printed.
    """
    try:
        given = config.from_flags(flags)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    load = _load_request(given.over(config.read(paths.config_file())))
    chosen = tuple(workload(name) for name in workloads or NAMES)

    def plan(loaded: Loaded) -> Plan:
        return Plan(
            workloads=chosen,
            modes=_modes(modes, loaded),
            rounds=rounds,
            max_tokens=max_tokens,
            sampling=given.sampling(0),
            gamma=gamma,
        )

    with _interruptible() as controls:
        try:
            engine = _load(load, controls)
        except Stopped:
            return INTERRUPTED
        try:
            _measure(engine, plan(engine.loaded), load, controls, as_json)
        finally:
            engine.close()
        return INTERRUPTED if controls.stop else 0


def _load_request(settings: Config) -> Load:
    """What to load; its pass costs are to be measured now, not to be read from an earlier start's file."""
    models, folder = catalog.load(paths.models_overlays()), paths.models_dir()
    entry = choice.chosen(settings, models, folder)
    if entry is None:
        raise EngineError(
            f"There is no model to measure yet; `specchat models pull {models.default}` fetches a small one."
        )
    load = choice.load_of(entry, settings.draft, settings, models, folder, paths.costs_file())
    if load.draft_name and load.draft is None and settings.draft is not None:
        raise EngineError(f"{load.draft_name} is not installed; `specchat models pull {load.draft_name}` fetches it.")
    return msgspec.structs.replace(load, costs_file=None)


def _modes(wanted: tuple[Mode, ...] | None, loaded: Loaded) -> tuple[Mode, ...]:
    """The modes to run.

    Raises:
        EngineError: this model can't be run in one that was asked for.
    """
    possible = possible_modes(loaded)
    for mode in wanted or ():
        if mode not in possible:
            reason = (
                loaded.speculation_refused or loaded.draft_refused or "No draft model is loaded; name one with --draft."
            )
            raise EngineError(f"The mode {mode} can't be measured: {reason}")
    return wanted or possible


def _load(load: Load, controls: Controls) -> Engine:
    """The loaded engine, with progress on stderr.

    Raises:
        EngineError: the model can't be loaded.
        Stopped: `controls.stop` was set meanwhile.
    """
    with EngineLog(paths.log_file()).opened() as log, native_lines_in(log) as stderr:
        from specengine import loading  # brings llama.cpp, which may print when it is loaded

        progress = Progress(stderr)
        try:
            return loading.load(load, lambda what, done: progress.tell(what, f"{done:.0%}"), lambda: controls.stop)
        finally:
            progress.end()


def _measure(engine: Engine, plan: Plan, load: Load, controls: Controls, as_json: bool) -> None:
    """Runs the plan and prints what was finished, also where an error ends it."""
    progress = Progress(sys.stderr)
    for notice in _notices(load, engine.loaded):
        progress.say(notice)
    records: list[Record] = []
    try:
        for record in measure(engine, plan, controls, progress.tell):
            records.append(record)
    finally:
        progress.end()
        found = results(records, plan)
        if found or controls.stop:
            if as_json:
                found_on = machine.described(engine.loaded, engine.gamma.costs, paths.models_dir())
                click.echo(json.dumps(report.as_json(found, plan, engine.loaded, found_on, load.exact), indent=2))
            else:
                click.echo(report.in_words(found, plan, engine.loaded))


def _notices(load: Load, loaded: Loaded) -> Iterator[str]:
    if load.draft_name and load.draft is None:
        yield f"{load.draft_name} is not installed: prompt lookup drafts alone."
    for notice in (loaded.draft_refused, loaded.speculation_refused, *loaded.notices):
        if notice:
            yield notice


@contextlib.contextmanager
def _interruptible() -> Iterator[Controls]:
    """Ctrl+C sets `stop`, so that nothing breaks off in the middle; a second one ends everything."""
    controls = Controls()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if controls.stop:
            raise KeyboardInterrupt
        controls.stop = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield controls
    finally:
        signal.signal(signal.SIGINT, before)

"""`specchat bench`: from the command line to a loaded engine, and from records to what is printed."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import click

from specchat import config, paths
from specchat.bench import machine, report
from specchat.bench.help import HELP
from specchat.bench.loading import load_engine, load_request, notices
from specchat.bench.modes import MOST_GAMMA, mode, possible, refusal, sweep
from specchat.bench.page.page import Bench, page
from specchat.bench.progress import Progress, Remaining
from specchat.bench.records import ContestRun, Plan, Record, Run
from specchat.bench.repeat import command_line
from specchat.bench.replay import OWN, told_again
from specchat.bench.results import results
from specchat.bench.rivals.chosen import check, rivals
from specchat.bench.rivals.contest import Contestant, contestants, rival_results
from specchat.bench.rivals.contract import Rival
from specchat.bench.run import measure
from specchat.bench.workloads import NAMES, Workload, workload
from specchat.cli import INTERRUPTED
from specchat.folding import columns
from specengine.advice import advise
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.protocol import Load, Loaded
from specengine.trace import write_traces


def _list(
    context: click.Context, option: click.Parameter, value: str | None, read: Callable[[str], str]
) -> tuple[str, ...] | None:
    """Entries separated by commas, each once."""
    if value is None:
        return None
    try:
        return tuple(dict.fromkeys(read(entry.strip()) for entry in value.split(",")))
    except ValueError as error:
        raise click.BadParameter(str(error), context, option) from None


def _modes(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return _list(context, option, value, lambda name: mode(name).name)


def _workloads(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    def known(name: str) -> str:
        if name not in NAMES:
            raise ValueError(f"there is no {name!r}; choose from {', '.join(NAMES)}.")
        return name

    return _list(context, option, value, known)


def _lengths(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    def length(text: str) -> str:
        return mode(f"lookup:{text}").name.partition(":")[2]

    try:
        return _list(context, option, value, length)
    except click.BadParameter:
        raise click.BadParameter(
            f"{value!r} is no list of draft lengths from 1 to {MOST_GAMMA}, such as 3,5,8,10.", context, option
        ) from None


def _words(context: click.Context, option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return _list(context, option, value, str)


def _output(context: click.Context, option: click.Parameter, value: Path | None) -> Path | None:
    """A file that can be written, found out before anything is measured."""
    if value == Path("-"):
        raise click.BadParameter("stdout is for the tables or --json; name a file.", context, option)
    if value is not None:
        folder = value.absolute().parent
        if value.is_dir() or not folder.is_dir() or not os.access(value if value.exists() else folder, os.W_OK):
            raise click.BadParameter(f"{value} can't be written; name a file in a folder of yours.", context, option)
    return value


_FILE = click.Path(path_type=Path)


@click.command(help=HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "-m", "--model", metavar="NAME", help="A model of `specchat models list`, or the path of its file or folder."
)
@click.option("--draft", metavar="NAME|self|none", help="The draft model; else the catalogue's. self: its own layers.")
@click.option("--modes", callback=_modes, metavar="LIST", help="By default plain, lookup, auto and, if it can, draft.")
@click.option("--sweep", callback=_lengths, metavar="LIST", help="Adds modes of these fixed draft lengths: 3,5,8,10.")
@click.option("--workloads", callback=_workloads, metavar="LIST", help=f"By default {', '.join(NAMES)}.")
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True, help="Most tokens of an answer.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Runs of each mode.")
@click.option("--temperature", type=float, metavar="T", help="0 is greedy; by default 1 for story and 0 for the rest.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="For temperatures above 0.")
@click.option(
    "--gamma", type=click.IntRange(1, MOST_GAMMA), metavar="N", help="A fixed draft length, where one is chosen else."
)
@click.option("--ctx", type=int, metavar="N", help="Context size in tokens.")
@click.option(
    "--engine", type=click.Choice(["auto", "torch", "llamacpp"]), help="What runs the model; auto by default."
)
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), help="Where it runs; auto by default.")
@click.option("--threads", type=int, metavar="N", help="CPU threads; by default the physical cores.")
@click.option("--exact", is_flag=True, default=None, help="Identical text in all modes, at some cost.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of the tables.")
@click.option(
    "--trace", type=_FILE, callback=_output, metavar="FILE", help="Write every round of every run, as JSON lines."
)
@click.option("--html", type=_FILE, callback=_output, metavar="FILE", help="Write a page with plots of everything.")
@click.option("--replay", type=_FILE, metavar="FILE", help="Tell a --trace file's answers again, without a model.")
@click.option("--costs", metavar="NAME", help="The replay's cost table; by default the one of the trace.")
@click.option("--against", callback=_words, metavar="LIST", help="Other engines to measure in the same rounds.")
@click.option("--against-modes", callback=_words, metavar="LIST", help="Their modes; by default the usual ones.")
def bench(
    modes: tuple[str, ...] | None,
    sweep: tuple[str, ...] | None,
    workloads: tuple[str, ...] | None,
    max_tokens: int,
    rounds: int,
    gamma: int | None,
    as_json: bool,
    trace: Path | None,
    html: Path | None,
    replay: Path | None,
    costs: str | None,
    against: tuple[str, ...] | None,
    against_modes: tuple[str, ...] | None,
    **flags: object,
) -> int:
    if replay is not None:
        click.echo(told_again(replay, costs or OWN, as_json, columns(sys.stdout)))
        return 0
    if costs is not None:
        raise click.UsageError("--costs names a table for --replay FILE.")
    if against_modes and not against:
        raise click.UsageError("--against-modes needs --against: it names the modes of other engines.")
    try:
        given = config.from_flags(flags)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    check(against or (), against_modes)
    settings = config.read(paths.config_file(), flags=given)
    load = load_request(settings)
    chosen = _chosen(workloads or NAMES, given.temperature)

    def plan(loaded: Loaded) -> Plan:
        return Plan(
            workloads=chosen,
            modes=_wanted(modes, sweep, loaded),
            rounds=rounds,
            max_tokens=max_tokens,
            sampling=replace(given.sampling(0), temperature=given.temperature or 0.0),
            gamma=gamma,
            along=trace is not None,
        )

    context = click.get_current_context()
    with _interruptible() as controls:
        try:
            engine = load_engine(load, controls)
        except Stopped:
            return INTERRUPTED
        try:
            outputs = _Outputs(as_json, trace, html, command_line(context, settings, load, engine.loaded))
            asked = (against or (), against_modes, load, engine.loaded)
            with rivals(*asked, paths.rivals_log(), lambda: controls.stop) as others:
                _measure(engine, plan(engine.loaded), load, controls, outputs, others)
        except Stopped:
            return INTERRUPTED
        finally:
            engine.close()
        return INTERRUPTED if controls.stop else 0


def _chosen(names: Sequence[str], temperature: float | None) -> tuple[Workload, ...]:
    """The workloads; a temperature that the user gave takes the place of their own."""
    chosen = tuple(workload(name) for name in names)
    return chosen if temperature is None else tuple(replace(one, temperature=None) for one in chosen)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """What becomes of the records."""

    as_json: bool
    trace: Path | None
    html: Path | None
    command: str
    """Measures the same again."""


def _wanted(names: tuple[str, ...] | None, lengths: Sequence[str] | None, loaded: Loaded) -> tuple[str, ...]:
    """The modes to run.

    Raises:
        EngineError: this model can't be run in one that was asked for.
    """
    for name in names or ():
        if reason := refusal(name, loaded):
            raise EngineError(f"The mode {name} can't be measured: {reason}")
    swept = sweep([int(length) for length in lengths or ()], loaded)
    return tuple(dict.fromkeys((*(names or possible(loaded)), *swept)))


def _measure(
    engine: Engine, plan: Plan, load: Load, controls: Controls, outputs: _Outputs, others: Sequence[Rival]
) -> None:
    """Runs the plan; prints and writes what was finished, also where an error ends it."""
    progress = Progress(sys.stderr)
    for notice in (*notices(load, engine.loaded), *(notice for rival in others for notice in rival.notices)):
        progress.say(notice)
    records: list[Record] = []
    field = contestants(others, engine.loaded.n_ctx, progress.say)
    remaining = Remaining(len(plan.workloads) * plan.rounds * (len(plan.modes) + len(field)))

    def tell(stage: str, at: str) -> None:
        progress.tell(stage, f"{at}; {remaining}")

    try:
        for record in measure(engine, plan, controls, tell, field):
            records.append(record)
            if isinstance(record, Run | ContestRun):
                remaining.finished()
    finally:
        progress.end()
        if controls.stop or any(isinstance(record, Run) for record in records):
            _put_out(records, plan, engine, load, outputs, field)


def _put_out(
    records: Sequence[Record],
    plan: Plan,
    engine: Engine,
    load: Load,
    outputs: _Outputs,
    field: Sequence[Contestant],
) -> None:
    found, loaded, costs = results(records, plan), engine.loaded, engine.gamma.costs
    theirs = rival_results(records, field, plan)
    found_on = machine.described(loaded, costs, paths.models_dir())
    advice = None if loaded.speculation_refused else advise(costs, loaded.draft)
    if outputs.as_json:
        told = report.as_json(found, plan, loaded, found_on, load.exact, advice, outputs.command, theirs, field)
        click.echo(report.as_text(told))
    else:
        click.echo(report.in_words(found, plan, loaded, advice, theirs, columns(sys.stdout)))
    if found and outputs.trace is not None:
        write_traces(outputs.trace, (trace for one in records if isinstance(one, Run) for trace in one.traces))
    if found and outputs.html is not None:
        shown = Bench(
            records=records,
            results=found,
            plan=plan,
            loaded=loaded,
            costs=costs,
            machine=found_on,
            advice=advice,
            command=outputs.command,
            theirs=theirs,
            versions={one.rival.name: one.rival.version for one in field},
        )
        try:
            outputs.html.write_text(page(shown), encoding="utf-8")
        except OSError as error:
            reason = error.strerror or str(error)
            raise EngineError(f"{outputs.html} can't be written: {reason}; choose another place.") from None


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

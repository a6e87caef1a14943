"""`specchat complete FILE:LINE[:COL]`."""

import random

import click

from specchat import choice, config, paths
from specchat.complete import document as documents
from specchat.complete import run
from specchat.complete.ending import Until
from specchat.complete.place import MARK, STDIN, gap, parsed
from specchat.config import Config
from specengine import catalog
from specengine.errors import EngineError
from specengine.protocol import Load
from specengine.settings import Limits

_HELP = f"""Completes code (or any text) at a place in a file: prints what belongs there, and nothing else.

LINE and COL count from 1; without COL, the place is the end of the line. Without LINE, it is where {MARK} stands in the
text. For FILE, - reads the text from a pipe; the place is then its end, if nothing else is said.

The file is only changed with --apply: at once or not at all, with its line ends, encoding and permissions kept, and not
if it changed meanwhile.

\b
Examples:
  specchat complete app.py:12              what follows the end of line 12
  specchat complete app.py:12:9 --apply    the same at column 9, written into the file
  specchat complete app.py:12 --until line
  head -12 app.py | specchat complete -
"""


class _Command(click.Command):
    """Knows that -:LINE is a place and no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        places = [argument for argument in args if argument.startswith(f"{STDIN}:")]
        rest = [argument for argument in args if argument not in places]
        return super().parse_args(ctx, [*rest, "--", *places] if places else rest)


@click.command(cls=_Command, help=_HELP, context_settings={"max_content_width": 110})
@click.argument("place", metavar="FILE[:LINE[:COL]]")
@click.option("--apply", is_flag=True, help="Write the completion into the file.")
@click.option(
    "--until",
    type=click.Choice(["end", "line", "blank", "block"]),
    default="block",
    help="Where it ends: with the indented block (the default), where the model ends it, or at the end of a line or "
    "before a blank one. The model may end it earlier.",
)
@click.option("-m", "--model", metavar="NAME", help="A model that can fill in gaps; the largest code model here.")
@click.option("--draft", metavar="NAME|self|none", help="The draft model; else the catalogue's. self: its own layers.")
@click.option("--spec", type=click.Choice(["on", "off", "auto"]), help="Speculation; auto by default.")
@click.option("--temperature", type=float, metavar="T", default=0.0, help="0, the default, is greedy.")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same text; random by default.")
@click.option(
    "--max-tokens", type=int, metavar="N", default=run.MAX_TOKENS, help=f"Most tokens; {run.MAX_TOKENS} by default."
)
@click.option("--ctx", type=int, metavar="N", help="Context size in tokens.")
@click.option("--threads", type=int, metavar="N", help="CPU threads; by default the physical cores.")
@click.option("--stats", is_flag=True, help="Figures on stderr.")
@click.option("--json", "as_json", is_flag=True, help='{"text": …, "applied": …, "stats": {…}} on stdout.')
def complete(place: str, apply: bool, until: Until, stats: bool, as_json: bool, **flags: object) -> int:
    where = parsed(place)
    if apply and where.file == STDIN:
        raise click.UsageError("--apply needs a file; piped text can't be changed.")
    try:
        given = config.from_flags(flags)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    settings = config.read(paths.config_file(), flags=given)
    document = documents.read(where.file)
    if where.file == STDIN and not document.text:
        raise EngineError("The piped text is empty; pipe in what is to be completed.")
    if apply:
        documents.check_writable(document)
    asked = run.Completing(
        document=document,
        place=where,
        gap=gap(document.text, where),
        load=_load(settings),
        sampling=settings.sampling(random.SystemRandom().getrandbits(32)),
        limits=Limits(settings.max_tokens),
        until=until,
        speculation=settings.spec or "auto",
        gamma=settings.gamma,
        lookup=settings.lookup is not False,
    )
    return run.complete(asked, run.Output(apply=apply, json=as_json, stats=stats))


def _load(settings: Config) -> Load:
    """The model that the user named, else the largest code model on this machine."""
    models, folder = catalog.load(paths.models_overlays()), paths.models_dir()
    entry = choice.chosen(settings, models, folder, suits=lambda entry: "coder" in entry.name)
    if entry is None:
        raise EngineError(
            f"There is no code model on this machine: `specchat models pull {run.CODER}` fetches a small one"
            f"{choice.once_on(settings)}, and -m takes any model file that can fill in gaps."
        )
    load = choice.load_of(entry, settings.draft, settings, models, folder, paths.costs_file())
    # Nobody asked for the catalogue's draft model, so a pipe needs no word about its absence.
    return choice.without_draft(load) if load.draft is None and settings.draft is None else load

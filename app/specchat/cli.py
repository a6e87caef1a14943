"""The command `specchat`: a chat in the terminal, or one answer on stdout. Heavy imports wait until they are needed."""

import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import click

from specchat import paths
from specengine import __version__
from specengine.errors import EngineError

INTERRUPTED = 130
HELP_OPTIONS = ("-h", "--help")

SUBCOMMANDS = {
    "models": ("specchat.models_command:models", "List, fetch and remove models."),
    "chats": ("specchat.chats_command:chats", "List, show, export and delete chats."),
    "complete": ("specchat.complete.command:complete", "Complete code at a place in a file."),
    "bench": ("specchat.bench.command:bench", "Measure what speculation gains on this machine."),
    "doctor": ("specchat.doctor:doctor", "Check this installation and machine."),
    "config": ("specchat.config_command:config_command", "Show and change settings."),
    "paths": ("specchat.paths_command:paths_command", "Show where specchat keeps its files."),
    "help": ("specchat.help_command:help_command", "Explain the commands of the chat (help commands)."),
}
"""Name → where the command is, and what it is for."""

_HELP = """Chats with a language model on this machine, in the terminal.

With a PROMPT it is the chat's first message. With -p, or with text piped in, the answer goes to stdout and nothing
else does; piped text and files stand above the prompt.

\b
Examples:
  specchat                                   start a chat
  specchat "What is a KV cache?"             start it with a question
  specchat -p "Say hello in Finnish"         one answer on stdout
  git diff | specchat -p "Review this"       piped text, then the prompt
  specchat -f app.py -p "Rename x to width"  a file, then the prompt
  specchat -m qwen2.5-coder-1.5b --draft qwen2.5-coder-0.5b
  specchat -p "Tell a story" --stats         figures on stderr
  specchat -c                                go on with the last chat
  specchat -c -p "Shorter, please"           one more answer in it, on stdout
  specchat --resume                          choose from all chats
  specchat -- models                         a prompt that is also a command's name

\b
Commands (specchat COMMAND --help):
{commands}

Every setting may also be made in config.toml (`specchat paths` says where), or as SPECCHAT_TEMPERATURE=0 and so on.
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and exits: 0 done, 1 a sentence on stderr, 2 wrong usage, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _fill_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a console of another encoding still shows what it can
            stream.reconfigure(errors="replace")
    sys.exit(_guarded(lambda: _run(given)))


def _fill_closed_streams() -> None:
    """Puts nothing where stdin, stdout or stderr were closed, so that no file opened later is taken for them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def subcommand(name: str) -> click.Command:
    """The command of this name, imported only now."""
    module, _, attribute = SUBCOMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    return command


def _run(given: list[str]) -> int:
    """The first word decides, so that `specchat -- models` and `specchat -p models` are prompts."""
    given = _asked_about(given)
    if given and (given[0] in SUBCOMMANDS or not set(HELP_OPTIONS).isdisjoint(given)):
        from specchat.help_text import HelpFormatter

        click.Context.formatter_class = HelpFormatter
    if given and given[0] in SUBCOMMANDS:
        command, name, given = subcommand(given[0]), f"specchat {given[0]}", given[1:]
    else:
        command, name = chat, "specchat"
        _refuse_commands(given)
    try:
        code = command.main(given, prog_name=name, standalone_mode=False, help_option_names=list(HELP_OPTIONS))
    except click.UsageError as error:
        if command is not chat:
            from specchat.mistyped import explained

            raise explained(error, command, given) from None
        raise
    return code if isinstance(code, int) else 0


def _asked_about(given: list[str]) -> list[str]:
    """`help COMMAND`, and `help COMMAND COMMAND`, as that command's --help; all else as it is."""
    names = given[1:]
    if given[:1] != ["help"] or not names or names[0] not in SUBCOMMANDS:
        return given
    command = subcommand(names[0])
    inner = command.commands if isinstance(command, click.Group) else {}
    return [*names, "--help"] if not names[1:] or (len(names) == 2 and names[1] in inner) else given


def _refuse_commands(given: list[str]) -> None:
    """
    Raises:
        click.UsageError: a command was mistyped, or stands behind its options; without this it would be a prompt.
    """
    context = click.Context(chat, info_name="specchat", help_option_names=list(HELP_OPTIONS))
    try:
        words = chat.make_parser(context).parse_args(list(given))[0].get("prompt")
    except click.UsageError:
        words = given[:1] if not given[0].startswith("-") else None
    if isinstance(words, list | tuple) and words and "--" not in given:
        from specchat.mistyped import refusal

        if said := refusal(given, words, SUBCOMMANDS, subcommand):
            raise click.UsageError(said, context)


def _guarded(run: Callable[[], int]) -> int:
    """Turns every way to fail into a sentence and an exit code."""
    try:
        return run()
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except EngineError as error:
        return _sentence(str(error))
    except OSError as error:
        return _sentence(
            f"{error.filename or 'The output'} can't be used: {error.strerror or error}; try another place."
        )
    except Exception as error:
        return _sentence(f"specchat met an unexpected error ({type(error).__name__}: {error}){_logged()}.")


def _show(error: click.ClickException) -> None:
    from specchat.folding import say

    if not isinstance(error, click.UsageError) or type(error).show is not click.UsageError.show:
        error.show()  # the help of a command that needs a further word
        return
    if error.ctx is not None:
        say(f"{error.ctx.get_usage()}\nTry `{error.ctx.command_path} --help` for help.\n")
    say(f"Error: {error.format_message()}")


def _sentence(text: str) -> int:
    from specchat.folding import say

    say(text)
    return 1


def _logged() -> str:
    """Writes the current exception down; says where."""
    try:
        with (paths.ensure(paths.state_dir()) / "specchat.log").open("a", encoding="utf-8") as log:
            traceback.print_exc(file=log)
            return f"; the details are in {log.name}"
    except OSError:
        return ""


def _commands() -> str:
    return "\n".join(f"  {name:<8} {purpose}" for name, (_, purpose) in SUBCOMMANDS.items())


@click.command(
    help=_HELP.format(commands=_commands()),
    context_settings={"max_content_width": 110},
)
@click.argument("prompt", nargs=-1)
@click.option("-p", "--prompt", "text", metavar="TEXT", help="Answer this on stdout and exit.")
@click.option(
    "-m", "--model", metavar="NAME", help="A model of `specchat models list`, or the path of its file or folder."
)
@click.option("--draft", metavar="NAME|self|none", help="The draft model; else the catalogue's. self: its own layers.")
@click.option("--spec", type=click.Choice(["on", "off", "auto"]), help="Speculation; auto by default.")
@click.option("--lookup/--no-lookup", default=None, help="Draft by prompt lookup; on by default.")
@click.option("--gamma", type=int, metavar="N", help="A fixed draft length, 0 to 127 tokens.")
@click.option("--temperature", type=float, metavar="T", help="0 is greedy.")
@click.option("--top-k", type=int, metavar="K", help="Keep the K most likely tokens; 0 keeps all.")
@click.option("--top-p", type=float, metavar="P", help="Keep the most likely tokens that reach P together.")
@click.option("--min-p", type=float, metavar="P", help="Keep tokens at least P times as likely as the likeliest.")
@click.option("--seed", type=int, metavar="N", help="The same seed gives the same text; random by default.")
@click.option("--coupling", type=click.Choice(["shared", "maximal"]), help="How drafts are verified.")
@click.option("--exact", is_flag=True, default=None, help="Identical text with and without speculation, at some cost.")
@click.option("--max-tokens", type=int, metavar="N", help="Most tokens of one answer.")
@click.option("--ctx", type=int, metavar="N", help="Context size in tokens.")
@click.option(
    "--engine", type=click.Choice(["auto", "torch", "llamacpp"]), help="What runs the model; auto by default."
)
@click.option("--device", type=click.Choice(["auto", "cuda", "cpu"]), help="Where it runs; auto by default.")
@click.option("--threads", type=int, metavar="N", help="CPU threads; by default the physical cores.")
@click.option("-s", "--system", metavar="TEXT", help="System prompt.")
@click.option(
    "-f", "--file", "files", multiple=True, type=click.Path(path_type=Path), help="Put a file above the prompt."
)
@click.option("-c", "--continue", "last", is_flag=True, help="Go on with the chat used last.")
@click.option(
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value="?",
    help="Go on with a chat of `specchat chats list`; without an ID, choose one.",
)
@click.option("--save/--no-save", default=None, help="Keep the chat on the disk, as it is by default, or don't.")
@click.option("--offline", is_flag=True, default=None, help="Use no network.")
@click.option("--theme", metavar="NAME", help="Colours of the chat: dark, light, ansi (the terminal's own), and more.")
@click.option("--mouse/--no-mouse", default=None, help="Leave the mouse to the terminal; the chat takes it by default.")
@click.option("--stats", is_flag=True, help="With one answer: figures on stderr.")
@click.option("--json", "as_json", is_flag=True, help='With one answer: {"text": …, "stats": {…}} on stdout.')
@click.version_option(__version__, "-V", "--version", message="specchat %(version)s")
def chat(
    prompt: tuple[str, ...],
    text: str | None,
    files: tuple[Path, ...],
    last: bool,
    resume: str | None,
    stats: bool,
    as_json: bool,
    **flags: object,
) -> int:
    from specchat import config, start

    if prompt and text is not None:
        raise click.UsageError("Give the prompt once: either as PROMPT or with -p.")
    if last and resume is not None:
        raise click.UsageError("Say which chat to go on with once: either -c or --resume.")
    try:
        settings = config.from_flags(flags)
    except ValueError as error:
        raise click.UsageError(f"--{error}") from None
    piped = _piped()
    return start.start(
        start.Invocation(
            words=text if text is not None or not prompt else " ".join(prompt),
            files=files,
            piped=piped,
            once=text is not None or as_json or stats or piped is not None or not sys.stdout.isatty(),
            stats=stats,
            json=as_json,
            settings=settings,
            resume=start.LAST if last else resume,
        )
    )


def _piped() -> bytes | None:
    """What was piped in; None where stdin is a terminal."""
    if sys.stdin is None or sys.stdin.closed:
        return b""
    return None if sys.stdin.isatty() else sys.stdin.buffer.read()

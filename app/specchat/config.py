"""Settings: flags win over the environment, which wins over config.toml, which wins over the defaults."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from specchat.looks import THEMES
from specengine.errors import EngineError
from specengine.settings import LONGEST_DRAFT, Coupling, Device, EngineChoice, Limits, Sampling, Speculation

Positive = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every setting that a file, the environment or a flag may make; None leaves it to the next one below.

    The names are those of config.toml. The environment calls them SPECCHAT_<NAME>, the command line --<name>.
    """

    model: str | None = None
    """Name of a catalogue entry, or the path of a .gguf file or of a Hugging Face folder."""
    draft: str | None = None
    """Draft model, in the same way; "none" for none; by default the catalogue's."""
    system: str | None = None
    """System prompt."""
    spec: Speculation | None = None
    lookup: bool | None = None
    """Draft by prompt lookup."""
    gamma: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_DRAFT)] | None = None
    """A fixed draft length; 0 decodes plainly."""
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    penalty_window: int | None = None
    seed: int | None = None
    coupling: Coupling | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    """Strings that end an answer."""
    ctx: Positive | None = None
    """Context size in tokens."""
    engine: EngineChoice | None = None
    """What runs the models."""
    device: Device | None = None
    """Where they run."""
    threads: Positive | None = None
    gpu_layers: Annotated[int, msgspec.Meta(ge=0)] | None = None
    exact: bool | None = None
    """Take the KV cache type for which passes of all widths agree."""
    offline: bool | None = None
    theme: str | None = None
    """Colours of the chat: one of `looks.THEMES`."""
    mouse: bool | None = None
    """Whether the chat takes the mouse; without it the terminal selects text by itself."""
    animations: bool | None = None
    keymap: dict[str, str] | None = None
    """Keys of the chat: the name of an action → the keys that do it, separated by commas. `tui.keymap` checks it."""
    paste_lines: NotNegative | None = None
    """A paste of so many lines is shown as a chip, 8 by default; 0 shows none as one."""
    prompt_history: bool | None = None
    """Keep prompts for later starts; on by default."""
    save: bool | None = None
    """Whether chats are kept on the disk; they are unless this is false."""

    def sampling(self, seed: int) -> Sampling:
        """How tokens are drawn; `seed` is used where none was set.

        Raises:
            ValueError: a value out of its range, in one sentence.
        """
        given = {name: getattr(self, name) for name in _SAMPLING if getattr(self, name) is not None}
        return Sampling(**{"seed": seed, **given})

    def limits(self) -> Limits:
        """When an answer ends.

        Raises:
            ValueError: a value out of its range, in one sentence.
        """
        return Limits(self.max_tokens, self.stop or ())

    def made(self) -> tuple[str, ...]:
        """Names of the settings that are made here."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not None)

    def over(self, below: "Config") -> "Config":
        """These settings, and those of `below` where these say nothing."""
        return msgspec.structs.replace(below, **{name: getattr(self, name) for name in self.made()})


_SAMPLING = tuple(name for name in Sampling.__dataclass_fields__ if name in Config.__struct_fields__)
NOTHING_SET: Final = Config()
ELSEWHERE: Final = "check it and its folder, or choose another place with SPECCHAT_HOME"


def read(file: Path, environment: Mapping[str, str] = os.environ, flags: Config = NOTHING_SET) -> Config:
    """The settings of the flags over those of the environment over those of `file`, which may be absent.

    A variable that a flag overrides isn't looked at.

    Raises:
        EngineError: one sentence that names the file or variable, the field and, for a file, the line.
    """
    asked = {variable(name) for name in Config.__struct_fields__ if name not in flags.made()}
    used = {name: value for name, value in environment.items() if name in asked}
    return flags.over(from_environment(used)).over(from_file(file))


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"SPECCHAT_{name.upper()}"


def from_file(file: Path) -> Config:
    """The settings in a TOML file; none if there is no file.

    Raises:
        EngineError: it can't be read, is not TOML, or says something that is no setting.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except UnicodeDecodeError:
        raise EngineError(f"{file} can't be read: it is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise EngineError(f"{file} can't be read: {error.strerror or error}; {ELSEWHERE}.") from None
    return from_text(text, file)


def from_text(text: str, file: Path) -> Config:
    """The settings in TOML text; `file` is where it stands or shall stand.

    Raises:
        EngineError: it is not TOML, or says something that is no setting.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EngineError(f"{file} is not valid TOML: {error}.") from None
    for name in table:
        if name not in Config.__struct_fields__:
            raise EngineError(f"{file}{_line(text, name)}: there is no setting called {name}; {meant(name)}")
        if name == "keymap" and isinstance(table[name], dict):
            table[name] = dict(_dotted(table[name]))
        try:
            _checked({name: table[name]}, strict=True)
        except ValueError as error:
            raise EngineError(f"{file}{_line(text, name)}: {error}") from None
    return _checked(table, strict=True)


def meant(name: str) -> str:
    """What a name that is no setting's may stand for, as the end of a sentence."""
    close = difflib.get_close_matches(name, Config.__struct_fields__, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(Config.__struct_fields__)}."


def from_environment(environment: Mapping[str, str]) -> Config:
    """The settings in SPECCHAT_<NAME> variables; empty ones say nothing. Stop strings are given one a line, and so are
    keys, as ACTION=KEYS.

    Raises:
        EngineError: a value that doesn't suit its setting.
    """
    texts = {name: text for name in Config.__struct_fields__ if (text := environment.get(variable(name)))}
    for name, text in texts.items():
        try:
            from_strings({name: text})
        except ValueError as error:
            raise EngineError(f"{variable(name)}: {error}") from None
    return from_strings(texts)


def from_strings(texts: Mapping[str, str]) -> Config:
    """Settings from the text of variables or of a command line, by name.

    Raises:
        ValueError: one doesn't suit its setting, in one sentence.
    """
    return _checked({name: _parsed(name, text) for name, text in texts.items()}, strict=False)


def _parsed(name: str, text: str) -> Any:  # noqa: ANN401 - whatever the setting holds
    if name == "stop":
        return text.splitlines()
    if name != "keymap":
        return text
    lines = [line.partition("=") for line in text.splitlines() if line.strip()]
    if any(not equals for _, equals, _ in lines):
        raise ValueError("keymap: give one ACTION=KEYS a line.")
    return {action.strip(): keys.strip() for action, _, keys in lines}


def from_flags(flags: Mapping[str, Any]) -> Config:
    """The settings among the command line's flags.

    Raises:
        ValueError: a value out of its range, in one sentence.
    """
    return _checked({name: value for name, value in flags.items() if name in Config.__struct_fields__}, strict=True)


def _checked(settings: Mapping[str, Any], strict: bool) -> Config:
    """Typed settings within their ranges; where `strict` is false, text is read as the number it spells."""
    try:
        config = msgspec.convert(settings, Config, strict=strict)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        name = where.strip("`").removeprefix("$.").removesuffix("[...]").replace("_", "-")
        wanted = re.sub(r"`([^`]*)`", lambda match: _PLAIN.get(match[1], match[1]), what)
        raise ValueError(f"{name or 'a setting'}: {wanted[:1].lower()}{wanted[1:].replace(' | null', '')}.") from None
    config.sampling(0)
    config.limits()
    if config.theme is not None and config.theme not in THEMES:
        raise ValueError(f"theme: there is none called {config.theme}; choose {', '.join(THEMES)}.")
    return config


def _dotted(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """`chat.new` whether it was written with quotes or without, where TOML makes a table of it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


_PLAIN = {
    "int | null": "a whole number",
    "float | null": "a number",
    "str | null": "text",
    "bool | null": "true or false",
    "array | null": "a list",
    "object | null": "a table",
    "int": "a whole number",
    "str": "text",
    "float": "a number",
}


def _line(text: str, name: str) -> str:
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*(\[\s*)?["']?{re.escape(name)}["']?\s*[=.\]]""", line):
            return f", line {number}"
    return ""

"""Settings: flags win over the environment, which wins over config.toml, which wins over the defaults."""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from specengine.errors import EngineError
from specengine.settings import Coupling, Device, EngineChoice, Limits, Sampling, Speculation

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
    gamma: NotNegative | None = None
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

    def over(self, below: "Config") -> "Config":
        """These settings, and those of `below` where these say nothing."""
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(below, **said)


_SAMPLING = tuple(name for name in Sampling.__dataclass_fields__ if name in Config.__struct_fields__)


def read(file: Path, environment: Mapping[str, str] = os.environ) -> Config:
    """The settings of the environment over those of `file`, which may be absent.

    Raises:
        EngineError: one sentence that names the file or variable, the field and, for a file, the line.
    """
    return from_environment(environment).over(from_file(file))


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
        raise EngineError(f"{file} can't be read: {error.strerror or error}.") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EngineError(f"{file} is not valid TOML: {error}.") from None
    for name in table:
        if name not in Config.__struct_fields__:
            close = difflib.get_close_matches(name, Config.__struct_fields__, n=1)
            meant = f"did you mean {close[0]}?" if close else f"it may hold {', '.join(Config.__struct_fields__)}."
            raise EngineError(f"{file}{_line(text, name)}: there is no setting called {name}; {meant}")
        try:
            _checked({name: table[name]}, strict=True)
        except ValueError as error:
            raise EngineError(f"{file}{_line(text, name)}: {error}") from None
    return _checked(table, strict=True)


def from_environment(environment: Mapping[str, str]) -> Config:
    """The settings in SPECCHAT_<NAME> variables; empty ones say nothing. Stop strings are given one a line.

    Raises:
        EngineError: a value that doesn't suit its setting.
    """
    settings: dict[str, Any] = {}
    for name in Config.__struct_fields__:
        variable = f"SPECCHAT_{name.upper()}"
        if value := environment.get(variable):
            settings[name] = value.splitlines() if name == "stop" else value
            try:
                _checked({name: settings[name]}, strict=False)
            except ValueError as error:
                raise EngineError(f"{variable}: {error}") from None
    return _checked(settings, strict=False)


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
        name = where.strip("`").removeprefix("$.").replace("_", "-")
        wanted = re.sub(r"`([^`]*)`", lambda match: _PLAIN.get(match[1], match[1]), what)
        raise ValueError(f"{name or 'a setting'}: {wanted[:1].lower()}{wanted[1:].replace(' | null', '')}.") from None
    config.sampling(0)
    config.limits()
    return config


_PLAIN = {
    "int | null": "a whole number",
    "float | null": "a number",
    "str | null": "text",
    "bool | null": "true or false",
    "array | null": "a list",
    "int": "a whole number",
    "str": "text",
    "float": "a number",
}


def _line(text: str, name: str) -> str:
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"""\s*(\[\s*)?["']?{re.escape(name)}["']?\s*[=.\]]""", line):
            return f", line {number}"
    return ""

"""The settings of a chat as fields of a form: what each means, what it may hold, and how text becomes settings."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, get_args

from specchat.chat import Settings
from specengine.settings import LONGEST_DRAFT, SMALLEST_CONTEXT, Coupling, Limits, Sampling, Speculation

_SAMPLING: Final = tuple(field.name for field in fields(Sampling))


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    """As in config.toml."""
    label: str
    explanation: str
    bounds: str
    """What it may hold; for a choice, nothing."""
    choices: tuple[str, ...] = ()
    reloads: bool = False
    """The model has to be loaded again for it."""


FIELDS: Final[tuple[Field, ...]] = (
    Field(
        "ctx",
        "Context",
        "Tokens that the model sees at once, the whole chat included; more takes more memory. Loads the model again.",
        f"{SMALLEST_CONTEXT} to what the model was trained for; empty: at most 8192",
        reloads=True,
    ),
    Field("max_tokens", "Max tokens", "Length of an answer.", "1 or more; empty: as the context allows"),
    Field("temperature", "Temperature", "0 takes the likeliest token; more is more varied.", "0 to 100"),
    Field("top_k", "Top-k", "Only the K likeliest tokens are drawn.", "0 or more; 0 keeps all"),
    Field("top_p", "Top-p", "Only the likeliest tokens that reach P together.", "above 0, up to 1; 1 keeps all"),
    Field("min_p", "Min-p", "Only tokens at least P times as likely as the likeliest.", "0 to 1; 0 keeps all"),
    Field("repetition_penalty", "Repetition", "Divides the logits of tokens that occurred.", "0.01 to 100; 1 is none"),
    Field("frequency_penalty", "Frequency", "Subtracted each time a token occurred.", "-100 to 100; 0 is none"),
    Field("presence_penalty", "Presence", "Subtracted once if a token occurred.", "-100 to 100; 0 is none"),
    Field("penalty_window", "Window", "Last tokens that the three penalties look at.", "0 or more; 0 is none"),
    Field("seed", "Seed", "The same seed gives the same text.", "0 to 18446744073709551615; empty: a new one"),
    Field(
        "coupling",
        "Coupling",
        "shared: the same text with and without speculation; maximal: the same distribution, other text.",
        "",
        choices=get_args(Coupling),
    ),
    Field(
        "spec",
        "Speculation",
        "auto drafts where it pays, on always, off never. It never changes what the text is drawn from.",
        "",
        choices=get_args(Speculation),
    ),
    Field(
        "gamma",
        "Gamma",
        "Fixed draft length, in tokens.",
        f"0 to {LONGEST_DRAFT}; empty: the engine's choice each round",
    ),
    Field("lookup", "Lookup", "Drafts repeat what followed the same words earlier in the chat.", "", ("on", "off")),
    Field("system", "System prompt", "Stands before the chat, from the next message on.", "any text; empty: none"),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Everything that the form holds."""

    settings: Settings
    system: str


class FieldErrors(Exception):
    """What is wrong, by the field's name."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = dict(errors)


def fields_for(longest: int | None) -> tuple[Field, ...]:
    """The fields, with the longest context that the loaded model was trained for among the bounds."""
    if longest is None:
        return FIELDS
    bounds = f"{SMALLEST_CONTEXT} to {longest:,}; empty: at most 8192"
    return tuple(replace(field, bounds=bounds) if field.name == "ctx" else field for field in FIELDS)


def texts(chosen: Chosen) -> dict[str, str]:
    """What each field shows."""
    return {name: _text(value) for name, value in values(chosen).items()}


def values(chosen: Chosen) -> dict[str, Any]:
    """Each field's value as config.toml writes it; None for what is left open."""
    settings = chosen.settings
    sampling = {name: getattr(settings.sampling, name) for name in _SAMPLING}
    return {
        "ctx": settings.n_ctx,
        "max_tokens": settings.limits.max_tokens,
        **sampling,
        "spec": settings.speculation,
        "gamma": settings.gamma,
        "lookup": settings.lookup,
        "system": chosen.system,
    }


def read(written: Mapping[str, str], before: Chosen, longest: int | None = None) -> Chosen:
    """What the fields say, over what was chosen before.

    Args:
        written: text by field name; fields that are left out stay as they were. An empty seed draws a new one.
        longest: context that the loaded model was trained for.

    Raises:
        FieldErrors: a field can't be read or is out of its bounds.
    """
    chosen, errors = before, {}
    for name, text in written.items():
        try:
            chosen = _with(chosen, name, text if name == "system" else text.strip(), longest)
        except ValueError as error:
            errors[name] = str(error)
    if errors:
        raise FieldErrors(errors)
    return chosen


def defaults_to_save(chosen: Chosen, seed: bool) -> dict[str, Any]:
    """What config.toml has to say for new chats to start like this: a value, or None where the default does.

    The seed is drawn anew for each start unless `seed` asks to keep this one.
    """
    built_in = values(Chosen(Settings(), ""))
    said = {name: None if value == built_in[name] else value for name, value in values(chosen).items()}
    if not seed:
        del said["seed"]
    return said


def _with(chosen: Chosen, name: str, text: str, longest: int | None) -> Chosen:
    """One field changed.

    Raises:
        ValueError: in one sentence.
    """
    settings = chosen.settings
    if name == "system":
        return replace(chosen, system=text)
    if name == "ctx":
        settings = replace(settings, n_ctx=_context(text, longest))
    elif name == "max_tokens":
        settings = replace(settings, limits=Limits(_optional(text), settings.limits.stop))
    elif name == "gamma":
        gamma = _optional(text)
        if gamma is not None and not 0 <= gamma <= LONGEST_DRAFT:
            raise ValueError(f"It must be 0 to {LONGEST_DRAFT}.")
        settings = replace(settings, gamma=gamma)
    elif name == "spec":
        settings = replace(settings, speculation=text)  # type: ignore[arg-type]  # one of the choices
    elif name == "lookup":
        settings = replace(settings, lookup=text == "on")
    else:
        value = _sampled(name, text)
        settings = replace(settings, sampling=replace(settings.sampling, **{name: value}))
    return replace(chosen, settings=settings)


def _context(text: str, longest: int | None) -> int | None:
    n_ctx = _optional(text)
    if n_ctx is not None and n_ctx < SMALLEST_CONTEXT:
        raise ValueError(f"It must be {SMALLEST_CONTEXT} or more.")
    if n_ctx is not None and longest is not None and n_ctx > longest:
        raise ValueError(f"It must be at most {longest:,}, what the model was trained for.")
    return n_ctx


def _sampled(name: str, text: str) -> Any:  # noqa: ANN401 - whatever the field holds
    default = getattr(Sampling(), name)
    if name == "coupling":
        return text
    if name == "seed" and not text:
        return secrets.randbits(32)
    if isinstance(default, int):
        return _whole(text)
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"It must be a number, {default:g} for example.") from None


def _optional(text: str) -> int | None:
    return _whole(text) if text else None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("It must be a whole number.") from None


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a field holds
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)

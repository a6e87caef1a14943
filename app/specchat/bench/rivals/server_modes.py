"""What a llama.cpp server can do, as its --help tells, and the flags that make it do so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from specengine.errors import EngineError

DEFAULT: Final = ("plain", "draft-simple", "ngram-mod", "ngram-simple")

_SIZES: Final[dict[str, tuple[str, ...]]] = {
    "plain": (),
    "draft-simple": ("--spec-draft-n-max",),
    "ngram-simple": ("--spec-ngram-simple-size-n", "--spec-ngram-simple-size-m"),
    "ngram-map-k": ("--spec-ngram-map-k-size-n", "--spec-ngram-map-k-size-m"),
    "ngram-map-k4v": ("--spec-ngram-map-k4v-size-n", "--spec-ngram-map-k4v-size-m"),
    "ngram-mod": ("--spec-ngram-mod-n-match", "--spec-ngram-mod-n-min", "--spec-ngram-mod-n-max"),
    "ngram-cache": (),
}
"""Kind of mode → the flags that numbers after its name set, in their order: ngram-simple:4:31."""
KINDS: Final = tuple(_SIZES)
_DRAFT_N_MAX: Final = 3
_FORGETFUL: Final = frozenset({"plain", "none", "draft-simple", "ngram-simple"})


@dataclass(frozen=True, slots=True)
class Help:
    """A server's --help."""

    text: str

    def knows(self, flag: str) -> bool:
        return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", self.text) is not None

    @property
    def speculative_types(self) -> frozenset[str]:
        """What --spec-type takes; empty where the server is older than that flag."""
        found = re.search(r"--spec-type\s+\[?([\w,|-]+)", self.text)
        return frozenset(re.split(r"[,|]", found[1])) if found else frozenset()


def remembers(kind: str) -> bool:
    """What it drafts from outlives an answer, so that a second one to the same prompt would copy the first.

    Of llama.cpp's kinds, ngram-mod, ngram-map-* and ngram-cache keep tables per process.
    """
    return kind.partition(":")[0] not in _FORGETFUL


def described(mode: str) -> str:
    """The mode in words."""
    kind, *numbers = mode.split(":")
    if kind == "plain":
        return "no speculation"
    if kind == "draft-simple":
        return f"drafts of up to {numbers[0] if numbers else _DRAFT_N_MAX} tokens by the draft model"
    given = "".join(f", {flag.removeprefix('--spec-')} {n}" for flag, n in zip(_SIZES[kind], numbers, strict=False))
    return f"--spec-type {kind}{given}"


def possible(help: Help, draft: Path | None) -> tuple[str, ...]:
    """Of the default modes those that this server has."""
    return tuple(mode for mode in DEFAULT if _obstacle(mode, help, draft) is None)


def flags(mode: str, help: Help, draft: Path | None) -> Sequence[str]:
    """The flags of a mode.

    Raises:
        EngineError: there is no such mode, or this server can't be run in it.
    """
    obstacle = _obstacle(mode, help, draft)
    if obstacle:
        raise EngineError(f"The llama.cpp server can't be run as {mode}: {obstacle}")
    kind, *numbers = mode.split(":")
    if kind == "plain":
        return ()
    sizes = [word for flag, number in zip(_SIZES[kind], numbers, strict=False) for word in (flag, number)]
    if kind != "draft-simple":
        return ("--spec-type", kind, *sizes)
    length = numbers[0] if numbers else str(_DRAFT_N_MAX)
    if help.speculative_types:
        return ("--spec-type", kind, "-md", str(draft), "--spec-draft-n-max", length)
    return ("-md", str(draft), "--draft-max", length)


def _obstacle(mode: str, help: Help, draft: Path | None) -> str | None:
    """Why this server can't do it, in a sentence."""
    kind, *numbers = mode.split(":")
    if kind not in _SIZES:
        return f"there is no such mode; choose from {', '.join(_SIZES)}."
    if len(numbers) > len(_SIZES[kind]) or not all(re.fullmatch(r"[1-9]\d{0,3}", number) for number in numbers):
        what = f"{len(_SIZES[kind])} numbers of 1 to 9999" if _SIZES[kind] else "no numbers"
        return f"{kind} takes up to {what}, such as {_example(kind)}." if _SIZES[kind] else f"{kind} takes {what}."
    if kind == "draft-simple" and draft is None:
        return "no draft model is loaded; name one with --draft."
    if kind == "plain" or kind in help.speculative_types:
        return None
    if kind == "draft-simple" and help.knows("--draft-max") and not help.speculative_types:
        return None
    return "this one is too old for it, or too new; its --help doesn't name it."


def _example(kind: str) -> str:
    return ":".join((kind, *("24", "48", "64")[: len(_SIZES[kind])]))

"""How settings, figures and token ids are written into the file."""

import struct
from typing import TypeVar

import msgspec

from specchat.chat import Settings
from specchat.sources import Run
from specengine.stats import Stats


def settings_text(settings: Settings | None) -> str | None:
    return None if settings is None else msgspec.json.encode(settings).decode()


def settings_of(text: str | None) -> Settings | None:
    """None where there are none, or none that this specchat understands."""
    return _decoded(text, Settings)


def stats_text(stats: Stats | None) -> str | None:
    return None if stats is None else msgspec.json.encode(stats).decode()


def stats_of(text: str | None) -> Stats | None:
    """None where there are none, or none that this specchat understands."""
    return _decoded(text, Stats)


def runs_text(runs: tuple[Run, ...]) -> str | None:
    return msgspec.json.encode(runs).decode() if runs else None


def runs_of(text: str | None) -> tuple[Run, ...]:
    """Empty where there are none, or none that this specchat understands."""
    return _decoded(text, tuple[Run, ...]) or ()


def token_bytes(tokens: tuple[int, ...] | None) -> bytes | None:
    return None if tokens is None else struct.pack(f"<{len(tokens)}I", *tokens)


def tokens_of(data: bytes | None) -> tuple[int, ...] | None:
    return None if data is None else struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])


Kind = TypeVar("Kind")


def _decoded(text: str | None, kind: type[Kind]) -> Kind | None:
    try:
        return None if text is None else msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None

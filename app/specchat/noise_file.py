"""Width noise that was measured on this machine, per model file; a lost or damaged file only costs a measurement."""

import contextlib
from importlib.metadata import version
from pathlib import Path

import msgspec

from specengine import whole_file
from specengine.protocol import Loaded, WidthNoise


class Measured(msgspec.Struct, frozen=True):
    """One measurement and what it holds for: kernels differ between runtimes, devices and KV cache types."""

    noise: WidthNoise
    backend: str
    device: str
    """In the engine's words, threads included."""
    exact: bool
    runtime: str


def in_words(noise: WidthNoise) -> str:
    """What it means for the text with and without speculation, in a few words."""
    if noise.identical_text_expected:
        return "identical text expected"
    return f"text may part at near-ties: logits differ by up to {noise.max_difference:.2g}"


def recall(file: Path, model: Path, exact: bool, loaded: Loaded | None = None) -> Measured | None:
    """What was measured for a model file as it is now, with this runtime and KV cache type.

    Args:
        loaded: what runs now; where several devices were measured, its device comes first, else the newest.
    """
    known = [one for one in _known(file, model) if one.exact == exact and one.runtime == _runtime()]
    if loaded is not None:
        here = [one for one in known if (one.backend, one.device) == (loaded.backend, loaded.device)]
        known = here or known
    return known[-1] if known else None


def remember(file: Path, loaded: Loaded, exact: bool, noise: WidthNoise) -> None:
    """Keeps a measurement in place of an earlier one of the same kind. A full disk is no reason to fail."""
    new = Measured(noise, loaded.backend, loaded.device, exact, _runtime())
    with contextlib.suppress(OSError):
        model = Path(loaded.path)
        others = [one for one in _known(file, model) if msgspec.structs.replace(one, noise=noise) != new]
        known = {**_read(file), _fingerprint(model): (*others, new)}
        whole_file.replace(file, msgspec.json.format(msgspec.json.encode(known)))


def _known(file: Path, model: Path) -> tuple[Measured, ...]:
    try:
        return _read(file).get(_fingerprint(model), ())
    except OSError:
        return ()


def _read(file: Path) -> dict[str, tuple[Measured, ...]]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[Measured, ...]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _fingerprint(model: Path) -> str:
    stat = model.stat()
    return f"{model.name}:{stat.st_size}:{stat.st_mtime_ns}"


def _runtime() -> str:
    return f"llama.cpp {version('llama-cpp-python')}"

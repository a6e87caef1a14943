"""`specchat doctor`: what is installed, what this machine has, and what to do about what is wrong. Uses no network."""

import asyncio
import contextlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import click
import msgspec

from specchat import choice, config, noise_file, paths
from specchat.config import Config
from specchat.folding import columns, folded
from specchat.host import EngineDied, Host
from specchat.paths_command import everything
from specengine import __version__, catalog, costs_file, download, hardware
from specengine.advice import advise
from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import Found
from specengine.catalog import Catalog
from specengine.errors import EngineError
from specengine.protocol import Load, Loaded, WidthNoise

_LEAST_FREE = 10**6
"""Bytes that chats, settings and logs take in no time."""
_PACKAGES = ("llama-cpp-python", "textual", "numpy", "msgspec", "huggingface_hub", "jinja2")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, what was found, and what to do if that is bad."""

    subject: str
    found: str
    hint: str = ""
    """What to do, as an order; empty where all is well."""

    HANGING: ClassVar = 19
    """Columns before what was found."""

    def __str__(self) -> str:
        mark = "WARNING" if self.hint else "OK"
        return f"{mark:<8} {self.subject:<9} {self.found}" + (f" → {self.hint}" if self.hint else "")


@click.command()
@click.option("-m", "--model", metavar="NAME", help="Load this model and measure whether passes of all widths agree.")
@click.option("--exact", is_flag=True, help="Measure with the KV cache type of --exact.")
def doctor(model: str | None, exact: bool) -> int:
    """Checks this installation and machine. Safe to paste into a report.

    \b
    specchat doctor
    specchat doctor --model qwen2.5-coder-1.5b
    """
    bad = False
    for finding in _findings(model, exact):
        click.echo(folded(str(finding), columns(sys.stdout), hanging=Finding.HANGING))
        bad = bad or bool(finding.hint)
    return 1 if bad else 0


def _findings(model: str | None, exact: bool) -> Iterator[Finding]:
    yield Finding("specchat", f"{__version__} on Python {platform.python_version()}, {platform.platform(terse=True)}")
    yield from _packages()
    yield _llamacpp()
    yield _torch()
    yield _machine()
    yield from places()
    settings = Config()
    try:
        settings = config.read(paths.config_file())
        yield Finding("settings", _settings_made(settings))
    except EngineError as error:
        yield Finding("settings", str(error), "correct it, or take it out to get the default")
    try:
        models = catalog.load(paths.models_overlays())
    except EngineError as error:
        yield Finding("models", str(error), "correct this file, or take it away to get the built-in catalogue")
        return
    yield _models(models)
    yield from _advice(model, settings, models)
    if model is not None:
        yield from _noise(model, exact, settings, models)


def _packages() -> Iterator[Finding]:
    versions = []
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            yield Finding("packages", f"{name} is missing", "install specchat again: it brings what it needs")
    yield Finding("packages", ", ".join(versions))


def _llamacpp() -> Finding:
    """Whether llama.cpp's native library loads. Tried in a process of its own: it may print, or even abort."""
    program = "import llama_cpp; print(llama_cpp.__version__, llama_cpp.llama_supports_gpu_offload())"
    hint = "run `pip install --force-reinstall llama-cpp-python` where specchat is installed (needs a C++ compiler)"
    try:
        tried = subprocess.run(
            [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("engine", f"llama.cpp can't be tried: {error}", hint)
    if tried.returncode:
        words = tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"]
        return Finding("engine", f"llama.cpp does not load: {words[-1]}", hint)
    version, gpu = tried.stdout.split()
    return Finding("engine", f"llama.cpp of llama-cpp-python {version}" + (", with a GPU" if gpu == "True" else ""))


def _torch() -> Finding:
    """What of the torch engine is here, and when it is chosen. Looked at in a process of its own, as torch is heavy."""
    try:
        looked = subprocess.run(
            [sys.executable, "-P", "-m", "specengine.backends.torch_nf4.found"],
            capture_output=True,
            timeout=120,
            check=True,
        )
        found = msgspec.json.decode(looked.stdout, type=Found)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        return Finding("engine", f"torch can't be tried: {error}", "pip install --force-reinstall 'specchat[gpu]'")
    if found.missing:
        some = f" ({found.in_words()} alone)" if found.versions else ""
        return Finding("engine", f"torch is not installed{some}: llama.cpp runs all models")
    if found.problem:
        return Finding("engine", f"torch does not load: {found.problem}", "install torch again")
    reason = refusals.device_refusal(found, "cuda")
    chosen = "llama.cpp is chosen, --engine torch takes torch" if reason else "chosen for models with safetensors here"
    card = reason or (found.card.name if found.card else "")
    warning = refusals.speculation_warning(found)
    hint = f"pip install 'bitsandbytes>={refusals.OLDEST_FAST_BITSANDBYTES}'; {warning}" if warning else ""
    return Finding("engine", f"{found.in_words()}, {card}; {chosen}", hint)


def _machine() -> Finding:
    machine = hardware.detect(paths.models_dir(), paths.memory_speed_file(), again=True)
    parts = [f"{machine.cores} cores"]
    if machine.available is not None and machine.memory is not None:
        parts.append(f"{machine.available / 1e9:.1f} of {machine.memory / 1e9:.1f} GB memory free")
    if machine.bandwidth is not None:
        parts.append(f"{machine.bandwidth / 1e9:.0f} GB/s")
    if machine.disk is not None:
        parts.append(f"{machine.disk / 1e9:.0f} GB disk free")
    parts += [f"{gpu.name} with {gpu.total / 1e9:.0f} GB" for gpu in machine.gpus]
    small = machine.disk is not None and machine.disk < 10**9
    return Finding("machine", ", ".join(parts), "free some disk space for models" if small else "")


def places() -> Iterator[Finding]:
    """Whether specchat can write where it keeps its files."""
    for name, path in everything().items():
        there = path
        while not there.exists() and there != there.parent:
            there = there.parent
        hint = "" if os.access(there, os.W_OK) else f"make {there} writable, or set SPECCHAT_HOME"
        if there != path and not there.is_dir():
            hint = f"{there} is a file: take it away, or set SPECCHAT_HOME to a folder"
        elif not hint and shutil.disk_usage(there).free < _LEAST_FREE:
            hint = "free some space on this disk, or set SPECCHAT_HOME to another one"
        yield Finding(name, str(path), hint)


def _settings_made(settings: Config) -> str:
    return f"sets {', '.join(settings.made())}" if settings.made() else "all defaults"


def _models(models: Catalog) -> Finding:
    folder, here = paths.models_dir(), []
    for entry in models.models.values():
        forms = [("", download.installed(entry, folder)), (" (safetensors)", download.installed_weights(entry, folder))]
        here += [entry.name + form for form, place in forms if place]
    if not here:
        return Finding(
            "models", "none installed", f"run `specchat models pull {models.default}`, or start the chat to choose one"
        )
    return Finding("models", ", ".join(here) + " installed")


def _advice(model: str | None, settings: Config, models: Catalog) -> Iterator[Finding]:
    """What the costs kept from the last start say about speculation with the model that a chat would load."""
    wanted = msgspec.structs.replace(settings, model=model) if model else settings
    try:
        entry = choice.chosen(wanted, models, paths.models_dir())
        if entry is None:
            return
        load = choice.load_of(entry, wanted.draft, wanted, models, paths.models_dir(), paths.costs_file())
    except EngineError as error:
        yield Finding("advice", f"none: {error}")
        return
    for tried in dict.fromkeys((load, choice.without_draft(load))):
        if costs := costs_file.kept_for(paths.costs_file(), tried):
            yield Finding("advice", f"{entry.name}: {advise(costs, tried.draft_called or None)}")
            return
    yield Finding("advice", f"none yet: what passes of {entry.name} cost is measured when it is first loaded")


def _noise(model: str, exact: bool, settings: Config, models: Catalog) -> Iterator[Finding]:
    """Loads the model and says what can be promised of its text."""
    host = Host(paths.log_file())
    try:
        entry = choice.find(model, models, paths.models_dir())
        asked = config.from_flags({"exact": exact or None}).over(settings)
        load = choice.load_of(entry, choice.NO_DRAFT, asked, models, paths.models_dir(), paths.costs_file())
        loaded, noise = asyncio.run(_measured(load, host))
    except (EngineError, EngineDied) as error:
        yield Finding("model", str(error), f"choose another model, or read {host.log_file} for what went wrong")
        return
    noise_file.remember(paths.noise_file(), loaded, load.exact, noise)
    yield Finding("model", f"{loaded.name}: {loaded.backend} on {loaded.device}, context {loaded.n_ctx}")
    for notice in loaded.notices:
        yield Finding("model", notice)
    yield Finding("lossless", promise(noise, load.exact))


async def _measured(load: Load, host: Host) -> tuple[Loaded, WidthNoise]:
    try:
        loaded: Loaded | None = None
        async with contextlib.aclosing(host.load(load)) as messages:
            async for message in messages:
                if isinstance(message, Loaded):
                    loaded = message
        assert loaded is not None
        return loaded, await host.measure_width_noise()
    finally:
        await host.close()


def promise(noise: WidthNoise, exact: bool) -> str:
    """What the noise measured means for the text; `exact` says whether it was measured with --exact."""
    if noise.identical_text_expected:
        return "identical text expected, with and without speculation"
    return (
        f"text may part at near-ties: passes of different widths disagree by up to {noise.max_difference:.2g} in a "
        f"logit ({noise.rms_difference:.2g} rms); "
        + ("--exact can't help with this file" if exact else "--exact may help: measure it with this command")
    )

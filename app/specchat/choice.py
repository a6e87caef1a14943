"""Which model to load, from what the user said and what is on this machine."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from specchat.config import Config
from specengine import catalog, download, hardware, hub
from specengine.catalog import Catalog, Entry
from specengine.errors import EngineError
from specengine.model_folder import is_model_folder
from specengine.protocol import Load
from specengine.settings import EngineChoice

NO_DRAFT = "none"
SELF_DRAFT = "self"
"""The target drafts for itself."""


def chosen(
    config: Config, models: Catalog, models_dir: Path, suits: Callable[[Entry], bool] = lambda _: True
) -> Entry | None:
    """The model that the user named, else the largest installed one that `suits` and fits this machine, else the
    small default where it is installed. None if the user named none and none is there.

    Raises:
        EngineError: the user named one that doesn't exist.
    """
    if config.model is not None:
        return find(config.model, models, models_dir)
    here = [entry for entry in models.models.values() if suits(entry) and _here(entry, config, models_dir)]
    if len(here) > 1:
        machine = hardware.detect(models_dir, None)
        small = [entry for entry in here if entry.name == models.default]
        here = [entry for entry in here if hardware.fits(entry, machine, config.ctx).fits] or small
    return max(here, key=lambda entry: (entry.parameters or 0, "coder" in entry.name), default=None)


def find(name: str, models: Catalog, models_dir: Path) -> Entry:
    """The catalogue's entry of this name, else the file of this name, in the models folder too.

    Raises:
        EngineError: there is neither.
    """
    here = models_dir / (name if name.lower().endswith(".gguf") else f"{name}.gguf")
    try:
        return models.find(name)
    except EngineError:
        if Path(name).name != name or not (here.is_file() or is_model_folder(folder := models_dir / name)):
            raise
        return catalog.from_file(here if here.is_file() else folder)


def missing(entry: Entry, draft: str | None, config: Config, models: Catalog, models_dir: Path) -> tuple[Entry, ...]:
    """The files for llama.cpp that are not installed of a model and its draft model. A draft that nobody asked for is
    none that is missing, unless the model itself is.

    Args:
        draft: as for `load_of`.

    Raises:
        EngineError: there is no draft model of this name.
    """
    drafting = _drafting(entry, draft, models, models_dir)
    if config.engine == "torch" or (draft is None and _here(entry, config, models_dir)):
        return ()
    files = (entry, drafting) if drafting else (entry,)
    return tuple(file for file in files if not download.installed(file, models_dir))


def load_of(
    entry: Entry, draft: str | None, config: Config, models: Catalog, models_dir: Path, costs_file: Path
) -> Load:
    """What the engine is told in order to run `entry`.

    Args:
        draft: name or path of the draft model, "none" for none, "self" for the model itself, None for the catalogue's
            choice. One that is not installed is named in the Load but has no path: prompt lookup works without it.

    Raises:
        EngineError: the model is not installed, or there is no draft model of this name.
    """
    engine = config.engine or "auto"
    path, weights = _files(entry, engine, models_dir)
    if path is None:
        pull = f"specchat models pull {entry.name}" + (" --engine torch" if engine == "torch" else "")
        raise EngineError(f"{entry.name} is not installed{_for(engine)}; `{pull}` fetches it{once_on(config)}.")
    drafting = _drafting(entry, draft, models, models_dir)
    draft_path, draft_weights = _files(drafting, engine, models_dir) if drafting else (None, None)
    return Load(
        model=str(path),
        # A file of the user's own is found again by its path, not by its name.
        name="" if entry.path else entry.name,
        draft=str(draft_path) if draft_path else None,
        draft_name=drafting.name if drafting else "",
        self_draft=draft == SELF_DRAFT,
        weights=str(weights) if weights else None,
        draft_weights=str(draft_weights) if draft_weights else None,
        engine=engine,
        device=config.device or "auto",
        n_ctx=config.ctx,
        threads=config.threads,
        gpu_layers=config.gpu_layers,
        exact=config.exact or False,
        costs_file=str(costs_file),
        kept_dir=str(costs_file.parent / "four-bits"),
    )


def once_on(config: Config) -> str:
    """What to add to "… fetches it" where the network may not be used."""
    return " once the network, switched off now, is on" if config.offline or hub.offline() else ""


def without_draft(load: Load) -> Load:
    """The same without a draft model."""
    return msgspec.structs.replace(load, draft=None, draft_name="", draft_weights=None, self_draft=False)


def _drafting(entry: Entry, draft: str | None, models: Catalog, models_dir: Path) -> Entry | None:
    """The draft model, if there is to be one of its own."""
    if draft is None:
        return models.draft_of(entry)
    return None if draft in (NO_DRAFT, SELF_DRAFT) else find(draft, models, models_dir)


def _files(entry: Entry, engine: EngineChoice, models_dir: Path) -> tuple[Path | None, Path | None]:
    """The file or folder to load, and the folder of safetensors where there is one beside a .gguf file."""
    gguf = download.installed(entry, models_dir) if engine != "torch" or entry.path else None
    weights = download.installed_weights(entry, models_dir) if engine != "llamacpp" else None
    return (gguf, weights) if gguf else (weights, None)


def _here(entry: Entry, config: Config, models_dir: Path) -> bool:
    return _files(entry, config.engine or "auto", models_dir)[0] is not None


def _for(engine: EngineChoice) -> str:
    return {"auto": "", "torch": " for the torch engine", "llamacpp": " for llama.cpp"}[engine]

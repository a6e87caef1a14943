"""What there is to know of every model, those of the catalogue and the files in the models folder: the one source of
`specchat models list` and the picker.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from specchat import noise_file
from specchat.noise_file import Measured
from specengine import catalog, download, hardware
from specengine.catalog import Catalog, Entry, Gguf
from specengine.errors import EngineError
from specengine.hardware import Fit, Hardware
from specengine.model_folder import is_model_folder
from specengine.protocol import Loaded
from specengine.transfer import megabytes


@dataclass(frozen=True, slots=True)
class ModelFacts:
    entry: Entry
    path: Path | None
    """The file, where it is here and whole; the folder, where only the safetensors are here."""
    weights: Path | None
    """The folder of safetensors, where it is here."""
    kept: int
    """Bytes of an unfinished pull."""
    draft: Entry | None
    """The draft model that the catalogue pairs with it."""
    draft_path: Path | None
    fit: Fit
    """Judged together with the draft model."""
    noise: Measured | None
    """Width noise, where it was measured for this very file."""
    digest: str = ""
    """Whose digest the file was checked against when it was pulled: "the catalogue" or "the server"; else empty."""
    trouble: str = ""
    """Why a file in the models folder can't be used, in one sentence."""

    @property
    def size(self) -> int | None:
        """Bytes of the file; None where nobody knows them yet."""
        gguf = self.entry.gguf
        if self.path is None or (self.entry.path and gguf.size):
            return gguf.size or gguf.approx_size
        files = self.path.glob("*.safetensors") if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in files)

    @property
    def state(self) -> str:
        """One or two words."""
        if self.trouble:
            return "unusable"
        if self.path:
            return "here"
        if self.kept:
            return f"{megabytes(self.kept)} here"
        return "fits" if self.fit.fits else "too large"

    @property
    def speed(self) -> str:
        """The expected speed of plain decoding; empty where nothing can be said, or where it doesn't fit."""
        rate = self.fit.tokens_per_s
        if rate is None or not self.fit.fits or self.trouble:
            return ""
        return about(rate)

    @property
    def name(self) -> str:
        """What to call it by: a file of the user's own is found by its path."""
        return str(self.entry.path) if self.entry.path else self.entry.name


def survey(
    models: Catalog,
    models_dir: Path,
    machine: Hardware,
    noise: Path,
    *,
    n_ctx: int | None = None,
    exact: bool = False,
    loaded: Loaded | None = None,
) -> list[ModelFacts]:
    """All models of the catalogue in its order, then the other files in the models folder by name.

    Args:
        noise: the file that measured width noise is kept in.
        n_ctx: context size that is asked for; None for the usual one.
        exact: whether the KV cache type of --exact is asked for.
        loaded: what runs now.
    """

    def facts(entry: Entry, trouble: str = "") -> ModelFacts:
        weights = None if trouble else download.installed_weights(entry, models_dir)
        path = None if trouble else download.installed(entry, models_dir) or weights
        draft = models.draft_of(entry)
        return ModelFacts(
            entry=entry,
            path=path,
            weights=weights,
            kept=0 if path else download.held(entry, models_dir),
            draft=draft,
            draft_path=download.installed(draft, models_dir) if draft else None,
            fit=hardware.fits(entry, machine, n_ctx, draft),
            noise=noise_file.recall(noise, path, exact, loaded) if path else None,
            digest=download.digest_of(entry, models_dir) if path else "",
            trouble=trouble,
        )

    return [
        *(facts(entry) for entry in models.models.values()),
        *(facts(entry, trouble) for entry, trouble in _own(models, models_dir)),
    ]


def about(tokens_per_s: float) -> str:
    """An estimated speed, with no more digits than an estimate has."""
    if tokens_per_s < 1:
        return f"about {tokens_per_s:.1f} tok/s"
    return f"about {round(tokens_per_s, -1 if tokens_per_s >= 100 else 0):,.0f} tok/s"


def own_files(models: Catalog, models_dir: Path) -> list[Path]:
    """Model files and folders that no entry of the catalogue stands for; of a split file, the first part."""
    known = {entry.gguf.file for entry in models.models.values()}
    known |= {entry.safetensors.folder for entry in models.models.values() if entry.safetensors}
    return sorted(
        path
        for path in (models_dir.iterdir() if models_dir.is_dir() else ())
        if path.name not in known and not path.name.startswith(".") and (is_model_folder(path) or _is_model(path))
    )


def _own(models: Catalog, models_dir: Path) -> Iterator[tuple[Entry, str]]:
    """The user's own files as entries, each with what is wrong with it."""
    for path in own_files(models, models_dir):
        try:
            yield catalog.from_file(path), ""
        except EngineError as error:
            yield Entry(gguf=Gguf(file=path.name), name=path.stem, title=path.stem, path=path), str(error)


def _is_model(path: Path) -> bool:
    part = re.search(r"-(\d{5})-of-\d{5}\.gguf$", path.name)
    return path.suffix == ".gguf" and path.is_file() and (part is None or int(part[1]) == 1)

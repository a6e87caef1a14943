"""Models to offer where none is there yet, and how they are fetched. No Textual here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from specchat.model_facts import about
from specengine import catalog, download, hardware
from specengine.catalog import Entry
from specengine.errors import EngineError
from specengine.transfer import PullProgress, megabytes


@dataclass(frozen=True, slots=True)
class Offer:
    entry: Entry
    draft: Entry | None
    """Fetched with it."""
    why: str
    tokens_per_s: float | None
    """Plain decoding, as estimated from this machine's memory bandwidth; None where nothing can be said."""

    @property
    def files(self) -> tuple[Entry, ...]:
        return (self.entry, self.draft) if self.draft else (self.entry,)

    @property
    def size(self) -> int | None:
        """Bytes to fetch in all; None where the catalogue doesn't know."""
        sizes = [file.gguf.size or file.gguf.approx_size for file in self.files]
        return sum(size for size in sizes if size) if all(sizes) else None


def offers(overlays: Sequence[Path], models_dir: Path, speed_file: Path) -> list[Offer]:
    """The best model that fits this machine, then the small default, if that is another one.

    Takes up to some seconds: it looks at the machine.

    Raises:
        EngineError: a catalogue can't be used.
    """
    models = catalog.load(overlays)
    machine = hardware.detect(models_dir, speed_file)
    best = hardware.best_fit(models, machine)
    small = hardware.fits(models.models[models.default], machine)
    found = [Offer(best.entry, models.draft_of(best.entry), "fits best", best.tokens_per_s)]
    if small.entry.name != best.entry.name:
        found.append(Offer(small.entry, None, "small, soon here", small.tokens_per_s))
    return found


def fetch(
    files: Sequence[Entry],
    models_dir: Path,
    progress: Callable[[Entry, PullProgress], None],
    cancelled: Callable[[], bool],
    offline: bool,
) -> None:
    """Pulls a model and then its draft model, if there is one; goes on where an earlier pull ended. Blocks.

    Raises:
        EngineError: the model can't be pulled. Without its draft it works all the same, and loading it says what is
            missing.
        PullCancelled: `cancelled` said so.
    """
    for file in files:
        try:
            download.pull(file, models_dir, progress=partial(progress, file), cancelled=cancelled, offline=offline)
        except EngineError:
            if file is files[0]:
                raise


def described(offer: Offer) -> str:
    """Size, licence and expected speed in one line."""
    size = f"{megabytes(offer.size)}{' with draft' if offer.draft else ''}" if offer.size else ""
    speed = about(offer.tokens_per_s) if offer.tokens_per_s else ""
    return " · ".join(part for part in (size, offer.entry.licence, speed) if part)

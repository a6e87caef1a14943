"""Fetches the small default model where a prompt came by a pipe and nobody can be asked which one to take."""

import sys
from pathlib import Path

from specchat.folding import say
from specchat.models_command import ProgressLine
from specchat.other_ways import other_ways
from specchat.pull_words import stopped
from specengine import download
from specengine.catalog import Catalog, Entry
from specengine.errors import EngineError
from specengine.transfer import megabytes


def fetch_default(models: Catalog, models_dir: Path, offline: bool) -> Entry:
    """The catalogue's default model, pulled; one line on stderr says so.

    Raises:
        EngineError: it can't be fetched, or the network is switched off.
        KeyboardInterrupt: the user stopped it; what arrived is kept.
    """
    entry = models.models[models.default]
    if not offline:
        size = entry.gguf.size or entry.gguf.approx_size
        words = f" ({megabytes(size)})" if size else ""
        say(f"No model is installed yet: fetching {entry.name}{words}.")
    progress = ProgressLine(entry.name)
    try:
        # Without a terminal to rewrite a line on, the one line above is all.
        report = progress if sys.stderr.isatty() else lambda _: None
        download.pull(entry, models_dir, progress=report, offline=offline)
    except download.NotFetched as error:
        raise EngineError(f"{error} {other_ways(entry, models, models_dir)}") from None
    except KeyboardInterrupt:
        progress.end()
        say(stopped(entry.name, download.held(entry, models_dir)))
        raise
    finally:
        progress.end()
    return entry

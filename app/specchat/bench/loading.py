"""The model that is measured: which one, and how it is loaded."""

from collections.abc import Iterator
from contextlib import closing

import msgspec

from specchat import choice, paths
from specchat.bench import own_layers
from specchat.bench.native_lines import native_lines_in
from specchat.bench.progress import Progress
from specchat.config import Config
from specchat.engine_log import EngineLog
from specengine import catalog
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.errors import EngineError, Stopped
from specengine.protocol import Load, Loaded


def load_request(settings: Config) -> Load:
    """What to load; its pass costs are to be measured now, not to be read from an earlier start's file.

    Raises:
        EngineError: there is no such model, or it is not installed.
    """
    models, folder = catalog.load(paths.models_overlays()), paths.models_dir()
    entry = choice.chosen(settings, models, folder)
    if entry is None:
        raise EngineError(
            f"There is no model to measure yet; `specchat models pull {models.default}` fetches a small one"
            f"{choice.once_on(settings)}."
        )
    load = choice.load_of(entry, settings.draft, settings, models, folder, paths.costs_file())
    if load.draft_name and load.draft is None and settings.draft is not None:
        raise EngineError(
            f"{load.draft_name} is not installed; `specchat models pull {load.draft_name}` fetches it"
            f"{choice.once_on(settings)}."
        )
    return msgspec.structs.replace(load, costs_file=None)


def load_engine(load: Load, controls: Controls) -> Engine:
    """The loaded engine, with progress on stderr.

    Raises:
        EngineError: the model can't be loaded.
        Stopped: `controls.stop` was set meanwhile.
    """
    with closing(EngineLog(paths.log_file())) as kept, kept.opened() as log, native_lines_in(log) as stderr:
        from specengine import loading  # brings llama.cpp, which may print when it is loaded

        progress = Progress(stderr)
        try:
            engine = loading.load(load, lambda what, done: progress.tell(what, f"{done:.0%}"), lambda: controls.stop)
            known = own_layers.take_kept(engine, load, paths.costs_file())
            progress.tell("measuring what passes cost", "")
            engine.measure_costs(lambda: controls.stop)
            if engine.layers is not None and not known and not controls.stop:
                progress.tell("choosing the layers to draft with", "")
                own_layers.choose(engine, lambda: controls.stop)
            if controls.stop:
                engine.close()
                raise Stopped
            return engine
        finally:
            progress.end()


def notices(load: Load, loaded: Loaded) -> Iterator[str]:
    """What a reader of the figures should know, a sentence each."""
    if load.draft_name and load.draft is None:
        yield f"{load.draft_name} is not installed: prompt lookup drafts alone."
    for notice in (loaded.draft_refused, loaded.speculation_refused, *loaded.notices):
        if notice:
            yield notice

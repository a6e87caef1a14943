"""Which model is wanted, with which draft, and what has to be pulled before it can be loaded. No Textual here."""

from pathlib import Path
from typing import Protocol

import msgspec

from specchat import noise_file
from specchat.host import EngineDied
from specchat.model_facts import ModelFacts, own_files, survey
from specchat.tui.options import TuiOptions
from specchat.tui.session import Session
from specengine import catalog, download, hardware
from specengine.catalog import Entry
from specengine.errors import EngineError
from specengine.protocol import Load
from specengine.transfer import megabytes


class Puller(Protocol):
    """Pulls files in the background, one model at a time."""

    def pull(self, files: tuple[Entry, ...]) -> None: ...


class ModelSwitch:
    """Settles what to load; whoever asks loads it."""

    def __init__(self, options: TuiOptions, session: Session, puller: Puller) -> None:
        self.wanted: Load | None = None
        """What was asked to be loaded last."""
        self.drafts: dict[str, str] = {}
        """The draft model chosen for a model: a name, a path, or "none"."""
        self._options, self._session, self._puller = options, session, puller
        self._next: tuple[str, str | None] | None = None
        """What is loaded once it is here."""

    def change(self, model: str | None, draft: str | None) -> Load | None:
        """What to load in order to have `model` (None: the one that is wanted now) with `draft` (None: the one chosen
        for it, else the catalogue's). None while something of it has to be pulled: `fetched` gives it then.

        Raises:
            EngineError: there is no such model or draft, or another pull runs.
        """
        if model is None:
            if self.wanted is None:
                raise EngineError("There is no model yet; /model NAME loads one.")
            model = self.wanted.name or self.wanted.model
        asked = self.drafts.get(model) if draft is None else draft
        missing = self._options.missing(model, asked)
        if missing:
            self._puller.pull(missing)
            self._next = (model, asked)
        load = None if missing else self._load_of(model, asked)
        if draft is not None:
            self.drafts[model] = draft
            self._session.use_draft()
        return load

    def fetched(self) -> Load | None:
        """What was waited for and can be loaded now; None where the user asked for something else meanwhile.

        Raises:
            EngineError: it can't be loaded.
        """
        waiting, self._next = self._next, None
        return self._load_of(*waiting) if waiting else None

    def chose(self, load: Load) -> None:
        """This is loaded now; what was waited for is not loaded any more when it comes."""
        self.wanted, self._next = load, None

    def with_context(self, n_ctx: int | None) -> Load | None:
        """The wanted model with another context size; None where none is wanted."""
        return msgspec.structs.replace(self.wanted, n_ctx=n_ctx) if self.wanted else None

    def names(self) -> tuple[str, ...]:
        """Names that `change` knows: models on this machine first, then the rest of the catalogue."""
        models, models_dir = catalog.load(self._options.overlays), self._options.models_dir
        entries = models.models.values()
        here = {entry.name for entry in entries if download.installed(entry, models_dir)}
        own = [path.stem if path.suffix == ".gguf" else path.name for path in own_files(models, models_dir)]
        return (*(name for name in models.models if name in here), *own, *(n for n in models.models if n not in here))

    def survey(self, speed: bool = True) -> list[ModelFacts]:
        """What there is to know of every model now. Estimates of `speed` may measure the memory, which takes up to
        some seconds; without them it is quick.

        Raises:
            EngineError: a catalogue can't be used.
        """
        return survey(
            catalog.load(self._options.overlays),
            self._options.models_dir,
            hardware.detect(self._options.models_dir, self._options.speed_file if speed else None),
            self._options.noise_file,
            n_ctx=self._session.settings.n_ctx,
            exact=self.wanted is not None and self.wanted.exact,
            loaded=self._session.engine.loaded,
        )

    def remove(self, facts: ModelFacts) -> str:
        """Deletes a model's file and what there is of an unfinished pull; says how much became free.

        Raises:
            EngineError: it is in use, or it can't be deleted.
        """
        self.refuse_to_remove(facts)
        freed = download.remove(facts.entry, self._options.models_dir)
        return f"{facts.entry.title}: {megabytes(freed)} freed." if freed else f"{facts.entry.title} is not here."

    def refuse_to_remove(self, facts: ModelFacts) -> None:
        """
        Raises:
            EngineError: the model is in use, or it is a file of the user's own.
        """
        title = facts.entry.title
        if facts.entry.path:
            raise EngineError(f"{facts.entry.path} is a file of your own; delete it yourself.")
        if facts.path and self.wanted:
            if facts.path == Path(self.wanted.model):
                raise EngineError(f"{title} is loaded; load another model before you remove it.")
            if self.wanted.draft and facts.path == Path(self.wanted.draft):
                raise EngineError(f"{title} drafts for the loaded model; choose another draft before you remove it.")

    async def measure(self) -> str:
        """Measures whether text is identical with and without speculation on the loaded model, and remembers it. Says
        what came out, or why it can't be measured. The next answer reads the chat anew."""
        loaded = self._session.engine.loaded
        if loaded is None or self.wanted is None:
            return "No model is loaded, so there is nothing to measure."
        if self._session.busy:
            return "An answer or a load is under way; measure once it is done."
        exact = self.wanted.exact
        try:
            noise = await self._session.engine.measure_width_noise()
        except (EngineError, EngineDied) as error:
            return str(error)
        noise_file.remember(self._options.noise_file, loaded, exact, noise)
        return f"{loaded.name}: {noise_file.in_words(noise)}."

    def _load_of(self, model: str, draft: str | None) -> Load:
        load = self._options.make_load(model, draft)
        return msgspec.structs.replace(load, n_ctx=self._session.settings.n_ctx)

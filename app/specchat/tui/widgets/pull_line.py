"""The pull that runs, in one line above the prompt. It goes on whatever screen is open; the chat stays usable."""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from specchat.other_ways import other_ways
from specchat.pull_words import progressed, stopped
from specchat.tui.offers import fetch
from specchat.tui.options import TuiOptions
from specengine import catalog, download
from specengine.catalog import Entry
from specengine.download import NotFetched
from specengine.errors import EngineError
from specengine.transfer import PullCancelled, PullProgress


class PullLine(Static):
    pulling: reactive[Entry | None] = reactive(None)
    """The model that is pulled now."""
    news: reactive[str] = reactive("", layout=True)
    """How far it is, or how the last pull ended."""

    class Fetched(Message):
        """A model is here now."""

        def __init__(self, entry: Entry) -> None:
            super().__init__()
            self.entry = entry

    class Ended(Message):
        """A pull ended without the model, in a sentence."""

        def __init__(self, text: str, failed: bool) -> None:
            super().__init__()
            self.text = text
            self.failed = failed

    def __init__(self, options: TuiOptions) -> None:
        super().__init__()
        self._options = options
        self._cancel = threading.Event()

    def on_unmount(self) -> None:
        self.cancel()

    def render(self) -> Content:
        return Content(self.news)

    def watch_pulling(self, pulling: Entry | None) -> None:
        self.display = pulling is not None

    def pull(self, files: tuple[Entry, ...]) -> None:
        """Starts to pull, or goes on with it; the first file is the model, a second one its draft.

        Raises:
            EngineError: another pull runs.
        """
        if self.pulling is not None:
            raise EngineError(f"{self.pulling.title} is being pulled; wait for it, or stop it in the list of models.")
        self.news, self.pulling = f"{files[0].title}: starting", files[0]
        self._cancel = threading.Event()
        self.run_worker(partial(self._fetch, files, self._cancel), thread=True, group="pull")

    def cancel(self) -> None:
        """Stops the pull; what arrived is kept."""
        self._cancel.set()

    def _fetch(self, files: tuple[Entry, ...], cancel: threading.Event) -> None:
        """Runs in a thread of its own."""
        options, entry = self._options, files[0]
        try:
            fetch(files, options.models_dir, partial(self._report, cancel), cancel.is_set, options.offline)
        except PullCancelled:
            kept = sum(download.held(file, options.models_dir) for file in files)
            self._in_app(partial(self._ended, stopped(entry.title, kept), None))
        except NotFetched as error:
            ways = other_ways(entry, catalog.load(options.overlays), options.models_dir)
            self._in_app(partial(self._ended, f"{error} {ways}", error))
        except EngineError as error:
            self._in_app(partial(self._ended, str(error), error))
        else:
            self._in_app(partial(self._fetched, entry))

    def _report(self, cancel: threading.Event, entry: Entry, now: PullProgress) -> None:
        if not cancel.is_set():
            self._in_app(partial(setattr, self, "news", progressed(entry.title, now)))

    def _in_app(self, act: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the app has ended
            if self.is_attached:
                self.app.call_from_thread(act)

    def _ended(self, text: str, error: EngineError | None) -> None:
        self.news, self.pulling = text, None
        self.post_message(self.Ended(text, error is not None))

    def _fetched(self, entry: Entry) -> None:
        self.news, self.pulling = f"{entry.title} is here now.", None
        self.post_message(self.Fetched(entry))

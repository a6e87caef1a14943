"""An answer while it comes."""

import time
from dataclasses import replace

from specchat.chat import Answer, Ending, Settings
from specchat.sources import Runs
from specengine.protocol import Chunk, Done, Loaded


class Incoming:
    """Gathers what the engine tells of one answer; `answer` is all of it so far."""

    def __init__(self, loaded: Loaded | None, settings: Settings) -> None:
        self.by = Answer("", "failed", None, None, *_names(loaded), settings)
        """Who answers and how; no text yet."""
        self._given = self.by
        self._text: list[str] = []
        self._runs = Runs()

    def take(self, event: Chunk | Done, loaded: Loaded | None = None) -> None:
        """`loaded` is what answers, where that was not known before: after a crash it is loaded again only now."""
        if loaded is not None:
            model, draft = _names(loaded)
            self._given = replace(self._given, model=model, draft=draft)
        if isinstance(event, Chunk):
            self._text.append(event.text)
            self._runs.add(event.tokens)
            self._given = replace(self._given, stats=event.stats)
        else:
            self._given = replace(self._given, ending=event.reason, tokens=event.tokens, stats=event.stats)

    def answer(self, ending: Ending | None = None) -> Answer:
        """The answer so far; `ending` says why it is over where the engine didn't."""
        return replace(
            self._given,
            text="".join(self._text),
            ending=ending or self._given.ending,
            runs=tuple(self._runs.runs),
            ended_s=time.time(),
        )


def _names(loaded: Loaded | None) -> tuple[str, str]:
    return (loaded.name, loaded.draft or "") if loaded else ("", "")

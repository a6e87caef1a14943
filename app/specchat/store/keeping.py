"""Which chat a window writes to, and when: the link between a session and its recorder."""

import time
from collections.abc import Callable

from specchat.chat import Answer, Settings, Turn
from specchat.store.chats import Header, Listed, Store, new_chat_id
from specchat.store.recorder import Recorder
from specchat.title import title_of
from specengine.protocol import Load


class Keeping:
    """Without a recorder nothing is kept; everything else is the same."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder
        self.load: Load | None = None
        """What is loaded, as the user would ask for it again."""
        self.chat = new_chat_id()
        self.title = ""
        """What the chat is called; empty before its first prompt."""
        self._created_s = 0.0
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether the present chat is on the disk, or on its way."""
        return self._begun and self.recorder is not None

    def new(self) -> None:
        """What is asked next begins another chat."""
        self.chat, self.title, self._begun = new_chat_id(), "", False

    def resume(self, chat: Listed) -> None:
        """What is asked next goes into a chat of earlier."""
        self.chat, self.title, self._created_s, self._begun = chat.id, chat.title, chat.created_s, True

    def asked(self, turn: Turn, system: str, settings: Settings) -> None:
        """A prompt was sent, or its answer begins; then `turn.answer` says who answers."""
        if not self._begun:
            self.title, self._created_s, self._begun = title_of(turn.prompt, turn.shown), time.time(), True
        if self.recorder is not None:
            model, draft = (
                (self.load.name or self.load.model, self.load.draft_name or "none") if self.load else ("", "")
            )
            header = Header(self.chat, self.title, self._created_s, system, settings, model, draft)
            self.recorder.prompt(header, turn)

    def text(self, turn: int, text: str) -> None:
        if self.recorder is not None and text:
            self.recorder.text(turn, text)

    def ended(self, turn: int, answer: Answer) -> None:
        if self.recorder is not None:
            self.recorder.answer(turn, answer)

    def goes_on(self, turn: int, answer: Answer) -> None:
        """An answer that was cut goes on from there."""
        self._change(lambda store: store.reopen(turn, answer.text))

    def dropped(self, turn: int) -> None:
        """A prompt was taken back."""
        self._change(lambda store: store.drop_turn(turn))

    def shown(self, leaf: int | None) -> None:
        """Another branch is shown, down to this turn."""
        chat = self.chat
        self._change(lambda store: store.show(chat, leaf))

    def renamed(self, title: str) -> None:
        self.title, chat = title, self.chat
        self._change(lambda store: store.rename(chat, title))

    def _change(self, change: Callable[[Store], None]) -> None:
        if self.recorder is not None:
            self.recorder.change(change)

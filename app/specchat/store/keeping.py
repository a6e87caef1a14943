"""Which chat a window writes to, and when: the link between a session and its recorder."""

import time
from collections.abc import Callable

from specchat.chat import Answer, Conversation, Settings, Turn
from specchat.going_on import stats_joined
from specchat.store.chats import Header, Listed, Store, new_chat_id
from specchat.store.recorder import Recorder
from specchat.title import title_of
from specengine.protocol import Chunk, Load


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
        self._before: tuple[int, Answer] | None = None
        """The turn whose answer went on last, and what there was of it."""

    @property
    def begun(self) -> bool:
        """Whether the present chat is on the disk, or on its way."""
        return self._begun and self.recorder is not None

    def new(self) -> None:
        """What is asked next begins another chat."""
        self.chat, self.title, self._begun = new_chat_id(), "", False
        if self.recorder is not None:
            self.recorder.open_chat.leave()

    def resume(self, chat: Listed) -> None:
        """What is asked next goes into a chat of earlier."""
        self.chat, self.title, self._created_s, self._begun = chat.id, chat.title, chat.created_s, True
        if self.recorder is not None:
            self.recorder.open_chat.take(self.chat)

    def asked(self, turn: Turn, said: Conversation, settings: Settings) -> None:
        """A prompt was sent in a conversation, or its answer begins; then `turn.answer` says who answers."""
        others = tuple(other for other in (*said.turns, *said.others) if other.id != turn.id) if self._begun else ()
        if not self._begun:
            self.title, self._created_s, self._begun = title_of(turn.prompt, turn.shown), time.time(), True
        if self.recorder is not None:
            self.recorder.open_chat.take(self.chat)
            model, draft = (
                (self.load.name or self.load.model, self.load.draft_name or "none") if self.load else ("", "")
            )
            header = Header(self.chat, self.title, self._created_s, said.system, settings, model, draft)
            self.recorder.prompt(header, turn, others)

    def text(self, turn: int, chunk: Chunk) -> None:
        if self.recorder is not None and chunk.tokens:
            goes_on, before = self._before or (None, None)
            stats = stats_joined(before.stats, chunk.stats) if before and goes_on == turn else chunk.stats
            self.recorder.text(turn, chunk.text, chunk.tokens, stats)

    def ended(self, turn: int, answer: Answer) -> None:
        if self.recorder is not None:
            self.recorder.answer(turn, answer)

    def goes_on(self, turn: Turn, said: Conversation, settings: Settings) -> None:
        """The answer of a turn, which was cut, goes on from what there is of it."""
        answer = turn.answer
        assert answer is not None
        self.asked(turn, said, settings)
        self._before = turn.id, answer
        self._change(lambda store: store.reopen(turn.id, answer))

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

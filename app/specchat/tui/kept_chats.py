"""What the user does to chats as a whole: go on with an earlier one, name, search and export them."""

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from specchat import export
from specchat.store.chats import Kept, Listed, Store
from specchat.store.recorder import Recorder
from specchat.title import one_line, title_of
from specchat.tui.background import begin
from specchat.tui.commands import CommandError
from specchat.tui.screens.resume import Resume
from specengine.errors import EngineError

if TYPE_CHECKING:
    from specchat.tui.screens.talk import TalkScreen

_NOT_KEPT = "Chats are not kept here, since specchat was started so (--no-save)."


class KeptChats:
    """Acts for a chat screen. Each act raises CommandError, in one sentence, where it can't be done."""

    def __init__(self, screen: "TalkScreen", file: Path | None) -> None:
        self._screen = screen
        self._file = file
        self._recorder: Recorder | None = None

    def start(self) -> None:
        """Begins to keep what is said, if anything is to be kept."""
        if self._file is None:
            return
        loop = asyncio.get_running_loop()

        def say(text: str, turn: int | None = None) -> None:
            loop.call_soon_threadsafe(self._screen.note, text, "error", turn)

        self._recorder = self._screen.session.keeping.recorder = Recorder(self._file, say, say)

    async def close(self) -> None:
        """Writes what is left."""
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.close)

    def choose(self, words: str = "") -> None:
        """Shows all chats, or those that hold some words."""
        if self._file is None:
            raise CommandError(_NOT_KEPT)
        open_chat = self._screen.session.keeping.chat
        self._screen.app.push_screen(Resume(self._file, open_chat, words), self._chosen)

    def resume(self, beginning: str) -> None:
        """Goes on with the chat whose ID begins so; without one, shows all."""
        if not beginning or self._file is None:
            self.choose()
            return
        file = self._file

        def read() -> Kept:
            with Store(file) as store:
                return store.kept(store.find(beginning))

        async def opened() -> None:
            try:
                self.go_on(await asyncio.to_thread(read))
            except EngineError as error:
                self._screen.note(str(error), "error")

        begin(self._screen, opened, "resume")

    def go_on(self, kept: Kept) -> None:
        """Goes on with a chat of earlier, as it was left: its settings, and its model where that is here."""
        screen = self._screen
        screen.turns.leave_editing()
        screen.session.resume(kept)
        screen.view.rest()
        screen.status.speculation = screen.session.settings.speculation

        async def shown() -> None:
            await screen.view.show()
            screen.turns.bring_back(kept.unanswered)
            if kept.model:
                screen.loader.load_again(kept.model, kept.draft or None)

        begin(screen, shown, "show", exclusive=True)

    async def begin_with(self, kept: Kept) -> None:
        """Shows the chat to go on with; the command line has settled how."""
        session = self._screen.session
        settings = session.settings
        session.resume(kept)
        session.settings = settings
        session.set_system(self._screen.options.system)
        await self._screen.view.show()
        self._screen.turns.bring_back(kept.unanswered)

    def rename(self, title: str) -> None:
        title = one_line(title)
        keeping = self._screen.session.keeping
        if not title:
            raise CommandError("/rename takes the new name of this chat.")
        if not keeping.begun:
            raise CommandError(_NOT_KEPT if self._file is None else "This chat has no prompt yet, and so no name.")
        keeping.renamed(title)
        self._screen.note(f"This chat is now called: {title}")

    def export(self, argument: str) -> None:
        """Writes the chat into a file, Markdown or JSON, and never over one that is there."""
        try:
            words = shlex.split(argument)
        except ValueError:
            words = [argument]
        form = cast(Literal["md", "json"], words.pop(0) if words[:1] in (["md"], ["json"]) else "")
        if len(words) > 1:
            raise CommandError("/export takes md or json, and the name of a file, both optional.")
        session = self._screen.session
        if not session.conversation.turns:
            raise CommandError("There is nothing in this chat yet.")
        file = Path(words[0]).expanduser() if words else None
        form = form or ("json" if file and file.suffix == ".json" else "md")
        kept = self._as_kept()

        async def wrote() -> None:
            try:
                text = export.exported(kept, form)
                place = await asyncio.to_thread(export.written, text, file or _free_name(kept, form))
                self._screen.note(f"Exported as {place}.")
            except EngineError as error:
                self._screen.note(str(error), "error")

        begin(self._screen, wrote, "export")

    def _as_kept(self) -> Kept:
        """The chat as it is now, whether it is kept or not."""
        session = self._screen.session
        turns = session.conversation.turns
        keeping = session.keeping
        title = keeping.title or title_of(turns[0].prompt, turns[0].shown)
        times = [turn.asked_s for turn in turns]
        listed = Listed(keeping.chat, title, times[0], times[-1], None, "", len(turns))
        loaded = session.engine.loaded
        model, draft = (loaded.name, loaded.draft or "") if loaded else ("", "")
        return Kept(listed, session.conversation, (), session.settings, model, draft)

    def _chosen(self, kept: Kept | None) -> None:
        if kept is not None and kept.listed.id != self._screen.session.keeping.chat:
            self.go_on(kept)


def _free_name(kept: Kept, form: Literal["md", "json"]) -> Path:
    """A file name in the working folder that no file has."""
    name = Path(export.default_name(kept, form))
    names = (name, *(name.with_stem(f"{name.stem}-{number}") for number in range(2, 1000)))
    return next((free for free in names if not free.exists()), name)

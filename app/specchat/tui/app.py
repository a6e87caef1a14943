"""The Textual application."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

from rich.console import RenderableType
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.worker import WorkerFailed

from specchat import clipboard, looks
from specchat.tui import keymap, palette
from specchat.tui.background import begin
from specchat.tui.options import Engine, TuiOptions
from specchat.tui.screens.chat import ChatScreen
from specchat.tui.terminal import forgiving
from specchat.tui.themes import DARK, OURS

__all__ = ["Engine", "SpecchatApp", "TuiOptions", "run"]

_PATIENCE_S: Final = 3.0
"""How long leaving in order may take once the system asked for the end."""


def run(options: TuiOptions) -> int:
    """Runs the terminal UI until the user leaves; returns the exit code.

    Whatever goes wrong inside is raised once the terminal is as it was.

    Raises:
        EngineError: the keys that the user chose can't be; nothing was drawn.
    """
    app = SpecchatApp(options)
    app.run(mouse=options.mouse)
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0


class SpecchatApp(App[None]):
    TITLE = "specchat"
    CSS_PATH = "specchat.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+p", "command_palette", "Find a command", show=False, priority=True, id="chat.palette"),
        Binding("ctrl+q", "quit", "Quit at once", show=False, priority=True, id="chat.quit"),
    ]

    def __init__(self, options: TuiOptions) -> None:
        # Textual takes greys for NO_COLOR, on a background of its own; the terminal's own two colours are none.
        colourless = bool(os.environ.get("NO_COLOR"))
        if not colourless:
            os.environ.pop("NO_COLOR", None)  # set to nothing, it asks for nothing
        super().__init__(ansi_color=True if colourless else None)
        self.options = options
        self.keys = keymap.checked(options.keymap)
        """Keys that the user chose, by action."""
        self.set_keymap(self.keys)
        if not options.animations:
            self.animation_level = "none"
        for theme in OURS:
            self.register_theme(theme)
        wanted = looks.ANSI if colourless else options.theme
        self.theme = wanted if wanted in self.available_themes else DARK.name
        self.chat = ChatScreen(options)

    def get_driver_class(self) -> type[Driver]:
        return forgiving(super().get_driver_class())

    def get_default_screen(self) -> Screen[None]:
        return self.chat

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            with suppress(ValueError):  # not the main thread
                signal.signal(number, partial(self._leave, asyncio.get_running_loop()))

    async def on_unmount(self) -> None:
        await self.chat.close()

    def _leave(self, loop: asyncio.AbstractEventLoop, number: int, _: object) -> None:
        """Leaves in order where it can. Where the terminal is gone, writing to it blocks the loop for good."""
        code = 128 + number
        last = threading.Timer(_PATIENCE_S, os._exit, (code,))
        last.daemon = True
        last.start()
        loop.call_soon_threadsafe(partial(self.exit, None, code))

    @property
    def fault(self) -> Exception | None:
        """The exception that ended the app."""
        fault = self._exception
        return fault.error if isinstance(fault, WorkerFailed) and isinstance(fault.error, Exception) else fault

    def _fatal_error(self) -> None:
        """Ends the app without Textual's report, which prints every local variable, the user's text among them."""
        self._close_messages_no_wait()

    def exit(self, result: None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        self.chat.rest()
        super().exit(result, return_code, message)

    def copy_to_clipboard(self, text: str) -> None:
        """Copies by the system's own program where there is one, else by the terminal, and says what is known of it."""
        self._clipboard = text
        begin(self, partial(self._copied, text), "copy")

    async def _copied(self, text: str) -> None:
        program = await asyncio.to_thread(clipboard.copied_natively, text)
        if program is None and self._driver is not None:
            self._driver.write(clipboard.sequence(text))
        self.notify(clipboard.told(text, program), markup=False)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """All that there is to do, as the palette offers it: commands, what keys do, and themes."""
        if screen is self.chat:
            yield from palette.commands(self.chat.start_command, self.keys)
            yield from palette.actions(self.chat, self.keys)
        yield from palette.themes(self.chat.tuning.choose_theme)

"""The Textual application."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from rich.console import RenderableType
from textual.app import App, SystemCommand
from textual.screen import Screen
from textual.worker import WorkerFailed

from specchat.tui.commands import COMMANDS
from specchat.tui.options import Engine, TuiOptions
from specchat.tui.screens.chat import ChatScreen
from specchat.tui.themes import DARK, LIGHT

__all__ = ["Engine", "SpecchatApp", "TuiOptions", "run"]

_PATIENCE_S: Final = 3.0
"""How long leaving in order may take once the system asked for the end."""


def run(options: TuiOptions) -> int:
    """Runs the terminal UI until the user leaves; returns the exit code.

    Whatever goes wrong inside is raised once the terminal is as it was.
    """
    app = SpecchatApp(options)
    app.run()
    if app.fault is not None:
        raise app.fault
    return app.return_code or 0


class SpecchatApp(App[None]):
    TITLE = "specchat"
    CSS_PATH = "specchat.tcss"
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, options: TuiOptions) -> None:
        super().__init__()
        self.options = options
        self.chat = ChatScreen(options)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name

    def get_default_screen(self) -> Screen[None]:
        return self.chat

    def on_mount(self) -> None:
        for number in (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
            with suppress(ValueError):  # not the main thread
                signal.signal(number, partial(self._leave, asyncio.get_running_loop()))

    async def on_unmount(self) -> None:
        await self.chat.session.engine.close()

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

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if screen is not self.chat:
            return
        for command in COMMANDS:
            act = partial(self.chat.start_command, command.name)
            yield SystemCommand(f"/{command.name} {command.usage}".rstrip(), command.description, act)

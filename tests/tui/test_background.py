"""Work beside a screen: it never outlives it, and a screen that closes may lose its parts first."""

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import WorkerFailed

from specchat.tui.background import begin


class Panel(Screen[None]):
    def __init__(self) -> None:
        super().__init__()
        self.missed = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield Static(classes="words")

    async def show_late(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:  # the screen is closing
            try:
                self.query_one(".words")
            except NoMatches:
                self.missed.set()
                raise

    async def show_nowhere(self) -> None:
        self.query_one(".nowhere")


async def test_work_that_would_show_something_on_a_closing_screen_ends_quietly() -> None:
    async with App[None]().run_test() as pilot:
        panel = Panel()
        await pilot.app.push_screen(panel)
        begin(panel, panel.show_late, "late")
        await pilot.pause()
        panel.dismiss()
        await asyncio.wait_for(panel.missed.wait(), 10)
        await pilot.pause()
        assert pilot.app.screen is not panel


async def test_a_part_that_is_missing_on_an_open_screen_is_a_fault() -> None:
    with pytest.raises(WorkerFailed, match="nowhere"):
        async with App[None]().run_test() as pilot:
            panel = Panel()
            await pilot.app.push_screen(panel)
            begin(panel, panel.show_nowhere, "wrong")
            await pilot.pause()

"""A column of any length: what is mounted, and that the view stays where it is."""

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Static

from columns import Host, hosting
from specchat.tui.widgets.item import Item

SIZE = (60, 20)


class Lines(Item):
    """A few numbered lines; how many is not what it guessed before."""

    def __init__(self, number: int, guess: int = 2) -> None:
        super().__init__()
        self.lines = [f"item {number} line {line}" for line in range(1 + number % 7)]
        self._guess = guess

    def make(self) -> Widget:
        return Static(Content("\n".join(self.lines)))

    def estimate(self, width: int) -> int:
        return self._guess


def filled(app: Host, count: int, guess: int = 2) -> list[Lines]:
    items = [Lines(number, guess) for number in range(count)]
    app.column.add(*items)
    return items


def visible(app: Host) -> list[str]:
    return [line.rstrip(" ▁▂▃▄▅▆▇█▎▍") for line in app.screen_text]


def all_lines(items: list[Lines]) -> list[str]:
    return [line for item in items for line in item.lines]


async def rest(pilot: Pilot[None]) -> None:
    for _ in range(4):
        await pilot.pause()


async def test_only_items_near_the_view_are_mounted_and_the_end_is_shown() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 2000)
        await rest(pilot)
        assert len(app.column.children) < 100
        assert visible(app) == all_lines(items)[-20:]


async def test_the_end_is_shown_again_where_nothing_has_to_be_laid_out_for_it() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 12)
        await rest(pilot)
        app.column.scroll_relative(y=-5, animate=False)
        await rest(pilot)
        assert visible(app) == all_lines(items)[-25:-5]
        app.column.follow()
        await rest(pilot)
        assert visible(app) == all_lines(items)[-20:]


@pytest.mark.parametrize("guess", [1, 9])
async def test_paging_up_to_the_start_and_down_again_shows_every_line_once_however_wrong_the_guesses(
    guess: int,
) -> None:
    async with hosting(SIZE) as (app, pilot):
        lines = all_lines(filled(app, 80, guess))
        await rest(pilot)
        end = len(lines)
        while end > 20:
            app.column.scroll_relative(y=-20, animate=False)
            await rest(pilot)
            end = max(20, end - 20)
            assert visible(app) == lines[end - 20 : end]
            assert len(app.column.children) < 120
        assert app.column.scroll_y == 0
        while end < len(lines):
            app.column.scroll_relative(y=20, animate=False)
            await rest(pilot)
            end = min(len(lines), end + 20)
            assert visible(app) == lines[end - 20 : end]
        assert app.column.following


async def test_a_jump_into_what_was_never_laid_out_mounts_it_there() -> None:
    async with hosting(SIZE) as (app, pilot):
        lines = all_lines(filled(app, 1000))
        await rest(pilot)
        for share in (0.5, 0.1, 0.9, 0.0):
            app.column.scroll_to(y=int(app.column.max_scroll_y * share), animate=False)
            await rest(pilot)
            seen = visible(app)
            start = lines.index(seen[0])
            assert seen == lines[start : start + 20]
            assert len(app.column.children) < 120
        assert visible(app)[0] == lines[0]


async def test_the_view_stays_while_things_change_above_and_below_it() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 400)
        await rest(pilot)
        app.column.go(items[200])
        await rest(pilot)
        seen = visible(app)
        assert seen[0] == "item 200 line 0"
        app.column.add(Lines(6), before=items[0])
        app.column.add(Lines(6), Lines(5), before=items[199])
        app.column.replace(items[190:195], [Lines(3)])
        app.column.add(Lines(6))
        app.column.replace(items[300:310], [])
        await rest(pilot)
        assert visible(app) == seen
        assert not app.column.following


async def test_the_place_in_the_text_stays_when_the_window_is_resized() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 400)
        await rest(pilot)
        app.column.go(items[100])
        await rest(pilot)
        for width, height in ((30, 10), (90, 30), SIZE):
            await pilot.resize_terminal(width, height)
            await rest(pilot)
            assert visible(app)[0] == "item 100 line 0"


async def test_where_the_item_in_view_is_replaced_the_view_stays_about_there() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 400)
        await rest(pilot)
        app.column.go(items[200])
        await rest(pilot)
        new = [Lines(1000 + number) for number in range(10)]
        app.column.replace(items[195:205], new)
        await rest(pilot)
        assert visible(app)[0].startswith("item 100")


async def test_what_is_taken_out_at_once_never_shows() -> None:
    async with hosting(SIZE) as (app, pilot):
        items = filled(app, 3)
        app.column.replace(items[1:2], [])
        await rest(pilot)
        app.column.replace(items[2:], [])
        await rest(pilot)
        assert [line for line in visible(app) if line] == items[0].lines
        assert len(app.column.children) == 3


async def test_the_work_of_a_settle_is_bounded_by_what_is_near() -> None:
    """Counts how many items are asked for their height, which is all that a longer column could add."""
    asked = 0

    class Counting(Lines):
        def rows_at(self, width: int) -> int:
            nonlocal asked
            asked += 1
            return super().rows_at(width)

    async with hosting(SIZE) as (app, pilot):
        app.column.add(*(Counting(number) for number in range(3000)))
        await rest(pilot)
        asked = 0
        for number in range(5):
            app.column.add(Counting(number))
            await rest(pilot)
        assert asked < 5 * 300

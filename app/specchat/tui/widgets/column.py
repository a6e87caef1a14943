"""A scrolling column whose cost doesn't grow with its length: only items near the view have widgets.

What is above and below is as high as it was when it was last laid out, or as estimated, so that the scrollbar tells the
truth. Where the user scrolled to is kept as a place in an item, not as a number of rows: whatever changes above it,
the view stays still.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from textual.app import ComposeResult
from textual.await_remove import AwaitRemove
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.layout import DockArrangeResult
from textual.reactive import var
from textual.scrollbar import ScrollBar
from textual.widget import AwaitMount, Widget

from specchat.tui.widgets import heights
from specchat.tui.widgets.gap import Gap
from specchat.tui.widgets.grows import Grows
from specchat.tui.widgets.heights import Place
from specchat.tui.widgets.item import Item

NEAR_VIEWS = 1
"""Views above and below the visible one in which every item has a widget, so that a page up shows no gap."""
KEPT_VIEWS = 2
"""Views beyond which no item keeps its widget."""
_END_ROWS = 2
"""Moving down to within this many rows of the end counts as the end: it moves on while an answer streams."""


class Column(Grows, VerticalScroll, can_focus=False):
    """Follows its end until the user scrolls up, and again once back at the end.

    Items change at once, their widgets with the next `settle`. Who waits while he changes several holds `turn`. Widgets
    that are mounted by hand stand below all items and stay.
    """

    following: var[bool] = var(True)
    unseen: var[bool] = var(False)
    """Something new stands below the view."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Item] = []
        self.turn = asyncio.Lock()
        self._first = self._end = 0
        """Items from `_first` to before `_end` have widgets, once settled."""
        self._shown: list[Item] = []
        """Those that have widgets, in order."""
        self._gone: list[Widget] = []
        """Widgets of items that were taken out."""
        self._above, self._below = Gap(), Gap()
        self._counted = True
        """The gaps are as high as the items that they stand for."""
        self._place: Place | None = None
        """Where the view begins while it doesn't follow: rows below the top of an item."""
        self._moved = False
        """The view has to go elsewhere, though nothing else changed."""
        self.settling = False
        """A settle is to come."""
        self._arranged: DockArrangeResult | None = None
        self._laid: list[Item] = []
        """Shown items that take part in the layout as it is now."""
        self._tops: list[int] = []
        """Rows at which they begin, and last that at which they end."""

    def compose(self) -> ComposeResult:
        yield self._above
        yield self._below

    def add(self, *items: Item, before: Item | None = None) -> None:
        """Puts items before another one, or at the end."""
        self._splice(len(self.items) if before is None else self.items.index(before), 0, items)
        self.settle_soon()

    def replace(self, old: Sequence[Item], new: Sequence[Item]) -> None:
        """Puts `new` in the place of `old`, which are neighbours; the view stays about where it was among them."""
        if not old:
            return
        index = self.items.index(old[0])
        if self._place and self._place[0] in old:
            instead = new or self.items[index + len(old) :][:1]
            self._place = heights.same_place(old, instead, self._width, self._place)
        self._splice(index, len(old), new)
        gone = set(old)
        laid = [(item, top) for item, top in zip(self._laid, self._tops, strict=False) if item not in gone]
        self._laid, self._tops = [item for item, _ in laid], [*(top for _, top in laid), *self._tops[-1:]]
        for item in old:
            if item.widget:
                self._gone.append(item.widget)
                item.widget = None
                item.filled = False
        self._shown = [item for item in self._shown if item.widget]
        self.settle_soon()

    def follow(self) -> None:
        """Goes to the end and stays there."""
        self.following = self._moved = True
        self._place = None
        self.settle_soon()

    def watch_following(self, following: bool) -> None:
        if following:
            self.unseen = False

    def go(self, item: Item, rows_above: int = 0) -> None:
        """Brings an item to the top of the view, or so many rows below it."""
        if self.max_scroll_y:
            self.following, self._moved = False, True
            self._place = item, -rows_above
            self.settle_soon()

    def reveal(self, item: Item) -> None:
        """Brings an item into view, unless all of it is there."""
        if item in self._laid:
            number = self._laid.index(item)
            view = self.scrollable_content_region.height
            if self.scroll_y <= self._tops[number] and self._tops[number + 1] <= self.scroll_y + view:
                return
        self.go(item, rows_above=self.scrollable_content_region.height // 3)

    def last_in_view(self) -> int:
        """Number of the last item that begins in the view."""
        end = round(self.scroll_y) + self.scrollable_content_region.height
        number = bisect_right(self._tops, end - 1, hi=len(self._laid)) - 1
        return self.items.index(self._laid[number], self._first) if self._laid else len(self.items) - 1

    async def settle(self) -> None:
        """Gives widgets to the items near the view, and takes them from those far away."""
        self.settling = False
        if not self.is_attached:
            return
        first, end = self._window()
        wanted = self.items[first:end]
        near = set(wanted)
        fresh = [item for item in wanted if item.widget is None]
        far = [item for item in self._shown if item not in near]
        if not (fresh or far or self._gone or self._moved) and self._counted:
            return
        # Items may come and go wherever this waits, so all that is known of them changes before.
        with self.app.batch_update():
            self._count(first, end)
            if self._moved:
                self._arranged = None  # where nothing is laid out anew, the view moves all the same
            self._moved = False
            mounted = self._mount_missing(wanted)
            removed = self._unmount(far)
            self._shown = wanted
            self.refresh(layout=True)
            for one in mounted:
                await one
            for item in fresh:
                await item.fill()
                item.filled = True
            await removed

    def _mount_missing(self, wanted: list[Item]) -> list[AwaitMount]:
        mounted: list[AwaitMount] = []
        before: Widget = self._below
        missing: list[Widget] = []
        for item in reversed(wanted):
            if item.widget is None:
                item.widget = item.make()
                item.widget.set_class(item.chosen, "-chosen")
                missing.insert(0, item.widget)
                continue
            if missing:
                mounted.append(self.mount(*missing, before=before))
                missing = []
            before = item.widget
        if missing:
            mounted.append(self.mount(*missing, before=before))
        return mounted

    def _unmount(self, far: list[Item]) -> AwaitRemove:
        widgets = [*self._gone, *(item.widget for item in far if item.widget)]
        self._gone.clear()
        for item in far:
            item.widget, item.filled = None, False
        return self.remove_children(widgets)

    def _splice(self, index: int, length: int, items: Sequence[Item]) -> None:
        self.items[index : index + length] = items
        grown = len(items) - length
        if index + length <= self._first and index < self._first:
            self._first += grown
            self._end += grown
            self._counted = False
        elif index > self._end:
            self._counted = False
        else:
            self._counted = self._counted and self._first <= index and index + length <= self._end
            self._first = min(self._first, index)
            self._end = max(self._end, index + length) + grown

    # Which items are near, and how high the others are.

    def _window(self) -> tuple[int, int]:
        """First item that should have a widget, and the one behind the last."""
        view = max(1, self.scrollable_content_region.height)
        index, offset = len(self.items), -view
        if self._place and not self.following:
            index, offset = self.items.index(self._place[0]), self._place[1]
        near, kept = NEAR_VIEWS * view, KEPT_VIEWS * view
        up, down = partial(heights.up, self.items, self._width), partial(heights.down, self.items, self._width)
        first = min(up(index, near - offset), max(self._first, up(index, kept - offset)))
        end = max(down(index, offset + view + near), min(self._end, down(index, offset + view + kept)))
        return first, end

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _count(self, first: int, end: int) -> None:
        """Takes on another window: makes the gaps as high as what lies beyond it, by what changed if that is known."""
        between = partial(heights.between, self.items, self._width)
        if self._counted:
            above, below = self._above.rows + between(self._first, first), self._below.rows + between(end, self._end)
        else:
            above, below = between(0, first), between(end, len(self.items))
        self._first, self._end, self._counted = first, end, True
        self._above.grow_to(above)
        self._below.grow_to(below)

    # Where the view is.

    def release_anchor(self) -> None:
        """Textual calls this before the user scrolls."""
        if self.max_scroll_y and self.following:
            self.following = False
            self._place = self._place_at(round(self.scroll_y))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self.following:
            return
        if new_value > old_value and new_value >= self.max_scroll_y - _END_ROWS:
            self.follow()
        else:
            self._place = self._place_at(round(new_value))
            self.settle_soon()

    def arrange(self, size: Size, optimal: bool = False) -> DockArrangeResult:
        """Keeps the view where it is, or at the end, in the very layout that changes what is around it."""
        result = super().arrange(size, optimal)
        if not optimal and result is not self._arranged:
            self._arranged = result
            self._measure(result, size.width)
            self._keep_view(result.total_region.bottom - size.height)
        return result

    def _measure(self, result: DockArrangeResult, width: int) -> None:
        tops = {placement.widget: placement.region.y for placement in result.placements}
        self._laid = [item for item in self._shown if item.widget in tops]
        if self._below not in tops:
            return
        self._tops = [*(tops[item.widget] for item in self._laid if item.widget), tops[self._below]]
        for item, (top, bottom) in zip(self._laid, pairwise(self._tops), strict=True):
            if item.filled and (item.rows, item.width) != (bottom - top, width):
                self._counted = self._counted and item.width == width
                item.rows, item.width = bottom - top, width
                self.settle_soon()

    def _keep_view(self, last: int) -> None:
        """`last` is the row at which the view begins that shows the end."""
        y = last
        if not self.following:
            if self._place is None or self._place[0] not in self._laid:
                return
            y = min(self._tops[self._laid.index(self._place[0])] + self._place[1], last)
        if (y := max(0, y)) != self.scroll_y:
            self.set_reactive(Widget.scroll_y, y)
            self.set_reactive(Widget.scroll_target_y, y)
            self.vertical_scrollbar.set_reactive(ScrollBar.position, y)

    def _place_at(self, y: int) -> Place | None:
        """The item at a row of the column, and how far below its top that row is."""
        if not self._laid:
            return None
        number = min(max(0, bisect_right(self._tops, y) - 1), len(self._laid) - 1)
        index = self.items.index(self._laid[number], self._first)
        return heights.place_at(self.items, self._width, index, self._tops[number], y)

    def settle_soon(self) -> None:
        if not self.settling:
            self.settling = True
            self.call_later(self._settle_now)

    async def _settle_now(self) -> None:
        async with self.turn:
            await self.settle()

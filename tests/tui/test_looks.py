"""Themes, colours, motion, mouse and window sizes."""

from pathlib import Path
from typing import Any

import pytest
from rich.style import Style
from textual.color import Color
from textual.geometry import Region
from textual.screen import Screen
from textual.widgets._toast import Toast, ToastRack

from chatting import Talk, options, talking
from fake_engine import FakeEngine
from specchat import looks
from specchat.tui import app as app_module
from specchat.tui.app import SpecchatApp
from specchat.tui.widgets.rows import Rows
from specchat.tui.widgets.status import StatusBar
from specchat.tui.widgets.too_small import TooSmall


def test_the_names_of_themes_are_those_that_there_are() -> None:
    known = SpecchatApp(options(FakeEngine())).available_themes
    assert set(looks.THEMES) == {name for name in known if not name.startswith(("textual-", "ansi-"))}


@pytest.mark.parametrize("name", looks.THEMES)
async def test_text_stands_out_from_its_background_in_every_theme(name: str) -> None:
    async with talking(FakeEngine(), theme=name) as talk:
        await talk.idle()
        assert talk.app.theme == name
        background, foreground = talk.screen.background_colors[1], talk.screen.colors[3]
        if name == looks.ANSI:
            assert background.ansi == foreground.ansi == -1, "the terminal's own"
        else:
            assert contrast(background, foreground) >= 4.5


def contrast(one: Color, other: Color) -> float:
    """WCAG 2.1, contrast ratio."""

    def luminance(color: Color) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


async def test_a_theme_is_chosen_by_command_and_remembered(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("seed = 1  # mine\n")
    async with talking(FakeEngine(), config_file=file) as talk:
        await talk.say("/theme light")
        assert talk.app.theme == "light" and file.read_text() == 'seed = 1  # mine\ntheme = "light"\n'
        await talk.say("/theme")
        assert talk.notes[-1].startswith("The theme is light; /theme NAME chooses one of ")
        await talk.say("/theme blue")
        assert talk.notes[-1].startswith("There is no theme called blue; there are ")
        assert talk.app.theme == "light" and "light" in file.read_text()


async def test_a_theme_that_cannot_be_remembered_holds_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("nonsense")
    async with talking(FakeEngine(), config_file=tmp_path / "config.toml") as talk:
        await talk.say("/theme ansi")
        assert talk.app.theme == "ansi"
        assert talk.notes[0].startswith("The theme holds until you leave: ") and "not valid TOML" in talk.notes[0]


def styles_shown(talk: Talk) -> list[Style]:
    """The styles of everything on the screen as it goes to the terminal."""
    filters = talk.app.get_line_filters()
    found = []
    for strip in talk.screen._compositor.render_strips():
        for line_filter in filters:
            if line_filter.enabled:
                strip = strip.apply_filter(line_filter, Color(0, 0, 0))
        found += [segment.style for segment in strip if segment.style]
    return found


@pytest.mark.parametrize("theme", ["dark", "light", "ansi"])
async def test_no_color_takes_all_colour_away_and_leaves_selections_visible(
    monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with talking(FakeEngine(), theme=theme) as talk:
        await talk.say("hi")
        await talk.idle()
        talk.prompt.insert("some text")
        talk.prompt.cursor_blink = False
        talk.prompt.select_all()
        await talk.pilot.pause()
        styles = styles_shown(talk)
        for style in styles:
            assert style.color is None or style.color.is_default
            assert style.bgcolor is None or style.bgcolor.is_default
        assert any(style.reverse for style in styles)


async def test_no_color_set_to_nothing_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    async with talking(FakeEngine()) as talk:
        await talk.idle()
        assert talk.app.theme == "dark" and not talk.app.no_color
        assert any(style.color and not style.color.is_default for style in styles_shown(talk))


async def test_animations_can_be_off() -> None:
    async with talking(FakeEngine(), animations=False) as talk:
        assert talk.app.animation_level == "none"
        assert not talk.prompt.cursor_blink
    async with talking(FakeEngine()) as talk:
        assert talk.prompt.cursor_blink == (talk.app.animation_level != "none")


@pytest.mark.parametrize("mouse", [True, False])
def test_the_mouse_is_the_terminals_if_the_user_wants_it(mouse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(SpecchatApp, "run", lambda self, **how: asked.append(how))
    app_module.run(options(FakeEngine(), mouse=mouse))
    assert asked == [{"mouse": mouse}]


@pytest.mark.parametrize(("width", "height"), [(60, 16), (80, 24), (200, 60)])
async def test_nothing_overlaps_and_everything_shows_from_60_by_16_on(width: int, height: int) -> None:
    async with talking(FakeEngine().script("word " * 400), size=(width, height)) as talk:
        await talk.say("hi " * 50)
        await talk.idle()
        check_layout(talk, width, height)
        assert not talk.screen.query_one(TooSmall).display
        talk.prompt.insert("\n" * 40)
        await talk.pilot.pause()
        check_layout(talk, width, height)


def check_layout(talk: Talk, width: int, height: int) -> None:
    regions = [talk.transcript.region, talk.prompt.region, talk.screen.query_one(StatusBar).region]
    assert [region.width > 0 and region.right <= width for region in regions] == [True] * 3
    assert regions[0].height >= 3 and regions[1].height >= 3 and regions[2].height == 1
    assert regions[0].bottom <= regions[1].y and regions[1].bottom <= regions[2].y and regions[2].bottom == height


@pytest.mark.parametrize(("width", "height"), [(59, 16), (60, 15), (30, 10), (24, 7)])
async def test_a_smaller_window_says_so_in_one_line_and_still_works(width: int, height: int) -> None:
    engine = FakeEngine()
    async with talking(engine, size=(width, height)) as talk:
        line = talk.screen.query_one(TooSmall)
        assert line.display and line.size.height == 1
        assert str(line.render()).startswith(f"{width}×{height} is small; made for 60×16")
        await talk.pilot.press("h", "i", "enter")
        await talk.idle()
        assert talk.questions == ["hi"]
        assert talk.prompt.region.bottom <= height and talk.prompt.size.height >= 1
        await talk.pilot.resize_terminal(60, 16)
        await talk.pilot.pause()
        assert not line.display


async def test_a_window_too_small_for_anything_shows_only_that_and_loses_nothing() -> None:
    async with talking(FakeEngine(), size=(80, 24)) as talk:
        talk.prompt.insert("half a thought")
        await talk.pilot.resize_terminal(15, 4)
        await talk.pilot.pause()
        shown = [child for child in talk.screen.children if child.display]
        assert shown == [talk.screen.query_one(TooSmall)]
        await talk.pilot.resize_terminal(80, 24)
        await talk.pilot.pause()
        await talk.pilot.press("!")
        assert talk.prompt.text == "half a thought!"


@pytest.mark.parametrize("by_source", [False, True])
async def test_an_answer_is_wrapped_for_the_window_also_after_one_in_which_nothing_was_shown(by_source: bool) -> None:
    prose = "\n\n".join(" ".join(f"word{paragraph}{number}" for number in range(40)) for paragraph in range(3))
    async with talking(FakeEngine().script(f"{prose}\n\n```\n{'x' * 200}\n```\n"), size=(80, 24)) as talk:
        if by_source:
            await talk.pilot.press("ctrl+l")
        await talk.say("hi")
        await talk.idle()
        await talk.until(lambda: talk.footers)
        for size in ((60, 16), (20, 5), (80, 24), (60, 16), (80, 24)):
            await talk.pilot.resize_terminal(*size)
            await talk.pilot.pause()
            await talk.pilot.pause()
        await talk.until(
            lambda: all((rows.fitted, rows.count) == tuple(rows.size) for rows in talk.screen.query(Rows)), 10
        )
        assert len(talk.screen.query(Rows)) == (1 if by_source else 2)


async def test_wide_characters_count_as_two_columns_in_the_status_bar() -> None:
    from chatting import LOAD
    from specengine.protocol import Load

    load = Load(model=LOAD.model, name="通義千問の小さなモデル")
    for width in range(60, 100, 7):
        async with talking(FakeEngine(), load=load, size=(width, 16)) as talk:
            await talk.idle()
            bar = talk.screen.query_one(StatusBar).render()
            assert bar.cell_length <= width - 6, width
            assert bar.plain.endswith("SPEC auto")


async def test_wide_characters_wrap_inside_the_window() -> None:
    text = "日本語のとても長い文章🙂👩‍👩‍👧‍👦" * 12
    async with talking(FakeEngine().script(text), size=(60, 20)) as talk:
        await talk.say(text)
        await talk.idle()
        for widget in (*talk.screen.query("Question"), *talk.screen.query("Answer Markdown *")):
            assert widget.region.right <= 60
            for line in range(widget.size.height):
                assert widget.render_line(line).cell_length <= widget.size.width + 0


@pytest.mark.parametrize("text", ["日本語", "x" * 90, "a\nb\nc", "日本語" * 30])
async def test_the_terminals_cursor_is_where_the_caret_is_so_that_an_input_method_opens_there(text: str) -> None:
    async with talking(FakeEngine(), size=(60, 20)) as talk:
        for character in text:
            talk.prompt.insert(character)
        await talk.pilot.pause()
        assert talk.app.cursor_position == talk.prompt.cursor_screen_offset
        assert talk.prompt.region.contains_point(talk.app.cursor_position)
        await talk.pilot.resize_terminal(40, 18)
        await talk.pilot.pause()
        assert talk.app.cursor_position == talk.prompt.cursor_screen_offset
        assert talk.prompt.region.contains_point(talk.app.cursor_position)


@pytest.mark.parametrize(
    ("key", "size"),
    [("", (80, 24)), ("", (60, 16)), *((key, (60, 16)) for key in ("ctrl+o", "ctrl+r", "f2", "ctrl+p"))],
)
async def test_a_notice_takes_room_of_its_own_and_covers_nothing(
    key: str, size: tuple[int, int], tmp_path: Path
) -> None:
    app = SpecchatApp(options(FakeEngine(), chats_file=tmp_path / "chats.db"))
    async with app.run_test(size=size, notifications=True) as pilot:
        talk = Talk(app, pilot)
        await talk.say("Hi")
        await talk.idle()
        talk.prompt.recall("\n".join(f"line {number}" for number in range(30)), {})
        if key:
            await pilot.press(key)
            await talk.until(lambda: app.screen is not talk.screen)
        screen = app.screen
        for number in range(5):
            app.notify(f"Notice {number}: " + "so it is said " * 20, timeout=600)
        rack = screen.query_one(ToastRack)
        await talk.until(lambda: rack.region and newest(screen).overlaps(rack.region))
        typed_into = screen.focused
        assert typed_into and Region(0, 0, *size).contains_region(typed_into.region)
        others = [widget for widget in (typed_into, *screen.children) if widget is not rack]
        assert not [widget for widget in others if widget.region.overlaps(rack.region)]


def newest(screen: Screen[Any]) -> Region:
    """Where the last of five notices stands; nowhere while there are fewer."""
    notices = list(screen.query(Toast))
    return notices[-1].region if len(notices) == 5 else Region()

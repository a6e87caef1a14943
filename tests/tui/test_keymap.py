"""Keys that the user chose: they work, the help and the palette show them, and what can't work is one sentence."""

from collections.abc import Mapping

import pytest
from textual.content import Content

from chatting import options, talking
from fake_engine import FakeEngine
from specchat.tui import keymap
from specchat.tui.app import SpecchatApp
from specchat.tui.commands import COMMANDS
from specchat.tui.screens.help import Help, key_rows, shown
from specengine.errors import EngineError

ACTIONS = keymap.actions({})


async def test_a_key_of_the_users_own_does_what_the_built_in_one_did() -> None:
    async with talking(FakeEngine(), keymap={"chat.speculation": "f6, f9"}) as talk:
        for key, state in (("f6", "off"), ("f9", "auto"), ("ctrl+t", "auto")):
            await talk.pilot.press(key)
            assert f"SPEC {state}" in talk.status, key


async def test_a_key_that_edits_text_may_be_given_to_something_else() -> None:
    async with talking(FakeEngine(), keymap={"chat.speculation": "ctrl+k"}) as talk:
        talk.prompt.insert("text")
        await talk.pilot.press("home", "ctrl+k")
        assert "SPEC off" in talk.status and talk.prompt.text == "text"


async def test_enter_may_start_a_new_line_and_another_key_send() -> None:
    engine = FakeEngine()
    async with talking(engine, keymap={"prompt.send": "ctrl+enter", "prompt.newline": "enter"}) as talk:
        talk.prompt.insert("a")
        await talk.pilot.press("enter")
        talk.prompt.insert("b")
        assert talk.prompt.text == "a\nb"
        await talk.pilot.press("ctrl+enter")
        await talk.idle()
        assert talk.questions == ["a\nb"]


async def test_a_key_taken_from_the_history_still_moves_the_cursor() -> None:
    async with talking(FakeEngine(), keymap={"prompt.earlier": "f9"}) as talk:
        await talk.say("first")
        await talk.idle()
        talk.prompt.insert("a\nb")
        await talk.pilot.press("up")
        assert (talk.prompt.text, talk.prompt.cursor_location) == ("a\nb", (0, 1))
        await talk.pilot.press("up")
        assert talk.prompt.text == "a\nb"
        await talk.pilot.press("f9")
        assert talk.prompt.text == "first"


async def test_a_moved_key_that_the_prompt_repeats_moves_there_too() -> None:
    async with talking(FakeEngine().script("line\n\n" * 99), size=(60, 16), keymap={"chat.up": "alt+u"}) as talk:
        await talk.say("hi")
        await talk.idle()
        bottom = talk.transcript.scroll_y
        await talk.pilot.press("pageup")
        assert talk.transcript.scroll_y == bottom
        await talk.pilot.press("alt+u")
        assert talk.transcript.scroll_y < bottom


async def test_quitting_and_the_palette_move_as_well() -> None:
    async with talking(FakeEngine(), keymap={"chat.quit": "f10", "chat.palette": "f9", "chat.end": "alt+q"}) as talk:
        await talk.pilot.press("ctrl+q", "ctrl+p")
        assert not talk.app._exit and talk.app.screen is talk.screen
        await talk.pilot.press("alt+q")
        assert talk.prompt.border_subtitle == "press alt+q again to quit"
        await talk.pilot.press("f9")
        await talk.until(lambda: talk.app.screen is not talk.screen)
        await talk.pilot.press("f10")
        assert talk.app._exit


async def test_the_help_shows_the_keys_that_hold() -> None:
    async with talking(FakeEngine(), keymap={"chat.new": "f9", "help.close": "x"}) as talk:
        await talk.pilot.press("f1")
        await talk.until(lambda: isinstance(talk.app.screen, Help))
        await talk.pilot.pause()
        shown = [str(static.render()) for static in talk.app.screen.query(".key")]
        assert "f9" in shown and "ctrl+n" not in shown
        await talk.pilot.press("x")
        assert talk.app.screen is talk.screen


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"chat.nwe": "f9"}, "keymap: there is no action called chat.nwe; did you mean chat.new?"),
        ({"x": "f9"}, "keymap: there is no action called x; `specchat config keys` shows them all."),
        ({"chat.new": "ctrl+"}, "keymap: chat.new: there is no key called ctrl+; keys are written like ctrl+y, f9 or"),
        ({"chat.new": "hyperspace"}, "keymap: chat.new: there is no key called hyperspace; "),
        ({"chat.new": "ctrl+i"}, "keymap: chat.new: most terminals send tab for ctrl+i; choose another key."),
        ({"chat.new": "x"}, "keymap: chat.new: x types into the prompt; add ctrl+ or alt+, or take a function key."),
        ({"chat.new": "?"}, "keymap: chat.new: question_mark types into the prompt; "),
        ({"chat.new": "left"}, "keymap: chat.new: left belongs to the prompt; choose another key."),
        (
            {"chat.new": "ctrl+t"},
            "keymap: ctrl+t would do chat.speculation (Speculation auto / off) and chat.new (New chat); give one of",
        ),
        ({"chat.new": "f9", "chat.help": "f9"}, "keymap: f9 would do "),
        ({"chat.new": "ctrl+q"}, "keymap: ctrl+q would do chat.new (New chat) and chat.quit (Quit at once); "),
    ],
)
def test_keys_that_cannot_be_are_one_sentence_before_anything_is_drawn(
    chosen: Mapping[str, str], sentence: str
) -> None:
    with pytest.raises(EngineError) as error:
        SpecchatApp(options(FakeEngine(), keymap=chosen))
    assert str(error.value).startswith(sentence)


def test_two_actions_may_change_places_and_screens_have_keys_of_their_own() -> None:
    swapped = {"chat.new": "ctrl+t", "chat.speculation": "ctrl+n", "help.close": "x", "chat.stop": "alt+?"}
    assert keymap.checked(swapped) == {**swapped, "chat.stop": "alt+question_mark"}


def test_the_built_in_keys_pass_their_own_check() -> None:
    keymap.checked({action.id: ",".join(action.keys) for action in ACTIONS if not action.id.startswith("prompt.")})


def test_every_action_is_named_described_and_in_the_help() -> None:
    assert len(ACTIONS) > 15
    rows = [row for _, rows in key_rows({}) for row in rows]
    for action in ACTIONS:
        assert "." in action.id and (action.description or action.screen != "chat"), action.id
        assert (shown(action.keys), action.description) in rows or not action.description


async def test_the_palette_offers_every_command_every_action_of_the_chat_and_every_theme() -> None:
    async with talking(FakeEngine()) as talk:
        offered = list(talk.app.get_system_commands(talk.screen))
        titles = [Content.from_markup(entry.title).plain for entry in offered]  # as the palette shows them
        assert len(set(titles)) == len(titles)
        for command in COMMANDS:
            assert f"/{command.name} {command.usage}".rstrip() in titles
        commands = {f"chat.{command.name}" for command in COMMANDS}
        for action in ACTIONS:
            if action.screen == "chat" and action.id not in commands:
                assert action.description in titles, action.id
        new = next(entry for entry in offered if entry.title == "/new")
        assert new.help == "Start a new chat (ctrl+n)"
        assert {"Theme: dark", "Theme: light", "Theme: ansi", "Theme: nord"} <= set(titles)


async def test_what_the_palette_offers_works() -> None:
    async with talking(FakeEngine()) as talk:
        offered = {entry.title: entry.callback for entry in talk.app.get_system_commands(talk.screen)}
        await offered["Speculation auto / off"]()
        assert "SPEC off" in talk.status
        talk.prompt.insert("hi")
        await offered["Send"]()
        await talk.idle()
        assert talk.questions == ["hi"]
        offered["Theme: light"]()
        assert talk.app.theme == "light"

"""Suggestions above the prompt: commands, arguments, files, earlier prompts."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events

from chatting import Talk, talking
from fake_engine import FakeEngine
from specchat.tui.commands import COMMANDS, parse
from specchat.tui.suggestions import Wanted, begins_command, commands, wanted
from specchat.tui.widgets.suggestions import Suggestions
from specengine.protocol import Chat


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("x = 1\ny = 2\n")
    (tmp_path / "app" / "my view.py").write_text("view\n")
    (tmp_path / "property").write_text("a file that is called like a decorator\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def shown(talk: Talk) -> list[str]:
    """What the list offers; nothing while it is closed."""
    suggestions = talk.screen.query_one(Suggestions)
    return [item.value for item in suggestions.items] if suggestions.open else []


def chosen(talk: Talk) -> str | None:
    found = talk.screen.query_one(Suggestions).chosen
    return found.value if found else None


def sent(engine: FakeEngine) -> list[str]:
    return [request.prompt.messages[-1].content for request in engine.requests if isinstance(request.prompt, Chat)]


async def typed(talk: Talk, text: str) -> None:
    """Types as a person does: no burst, one key after the other."""
    for character in text:
        talk.prompt.type(character)
        await talk.pilot.pause()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("/", "command"),
        ("/st", "command"),
        ("/spec ", "argument"),
        ("/spec o", "argument"),
        ("@", "file"),
        ("see @app/ma", "file"),
        ("(@app", "file"),
        ("@~/no", "file"),
        ("me@example.com", None),
        ("@app.route('/x')", None),
        ("@dataclass(frozen=True)", None),
        ("@property, @x,", None),
        ("/usr/bin", None),
        ("/stats ", None),
        ("/system be", None),
        ("plain", None),
        ("", None),
    ],
)
def test_what_may_be_meant_before_the_cursor(line: str, kind: str | None) -> None:
    found = wanted(line, only_line=True)
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("text", "begins"),
    [("/", True), ("/st", True), ("/spec on", True), ("/q", True), ("/usr", False), ("/sp on", False), ("x", False)],
)
def test_what_may_become_a_command_is_told_from_a_path(text: str, begins: bool) -> None:
    assert begins_command(text) is begins


def test_a_slash_in_a_prompt_of_several_lines_is_no_command() -> None:
    assert wanted("/st", only_line=False) is None
    assert wanted("@app", only_line=False) == Wanted("file", 0, "app")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_is_suggested_by_name_and_alias_with_what_it_does(command: object) -> None:
    found = next(one for one in COMMANDS if one is command)
    for name in (found.name, *found.aliases):
        first = commands(name)[0]
        assert (first.value, first.about) == (found.name, found.description)
        assert found.usage in first.shown


async def test_a_slash_lists_all_commands_and_typing_narrows_them() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/")
        assert shown(talk) == [command.name for command in COMMANDS]
        await typed(talk, "sta")
        assert shown(talk)[0] == "stats" and chosen(talk) == "stats"
        await typed(talk, " ")
        assert shown(talk) == []


async def test_enter_runs_the_chosen_command_and_tab_only_completes_it() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/sta")
        await talk.pilot.press("tab")
        assert talk.prompt.text == "/stats" and talk.notes == []
        talk.prompt.empty()
        await typed(talk, "/sta")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.notes)
        assert talk.prompt.text == ""


async def test_an_alias_runs_what_was_typed_not_what_looks_alike() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/q")
        await talk.pilot.press("enter")
        assert talk.app._exit


async def test_a_command_that_takes_an_argument_waits_for_it_and_suggests_some() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await typed(talk, "/spe")
        await talk.pilot.press("enter")
        await talk.pilot.pause()
        assert talk.prompt.text == "/spec " and shown(talk) == ["auto", "on", "off"] and chosen(talk) is None
        await talk.pilot.press("up", "enter")
        await talk.until(lambda: "SPEC off" in talk.status)
        assert talk.prompt.text == ""


async def test_models_are_suggested_by_letters_of_their_names() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await typed(talk, "/model coder1.5")
        assert shown(talk)[0] == "qwen2.5-coder-1.5b"
        await talk.pilot.press("enter")
        await talk.idle()
        assert engine.loads[-1].name == "qwen2.5-coder-1.5b"
        await typed(talk, "/draft n")
        assert "none" in shown(talk)


async def test_arrows_choose_around_the_ends_and_escape_closes_until_something_else_is_begun() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/")
        await talk.pilot.press("up")
        assert chosen(talk) == COMMANDS[-1].name
        await talk.pilot.press("down", "down")
        assert chosen(talk) == COMMANDS[1].name
        await talk.pilot.press("escape")
        assert shown(talk) == [] and talk.prompt.text == "/"
        await typed(talk, "st")
        assert shown(talk) == []
        talk.prompt.empty()
        await talk.pilot.pause()
        await typed(talk, "/")
        assert shown(talk)


async def test_escape_closes_the_list_before_it_stops_an_answer() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("hi")
        await typed(talk, "/")
        await talk.pilot.press("escape")
        assert shown(talk) == [] and not talk.status.startswith("stopping")


async def test_a_click_takes_a_suggestion() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/stat")
        await talk.pilot.click(Suggestions, offset=(4, 1))
        await talk.pilot.pause()
        assert talk.prompt.text == "/stats"


@pytest.mark.parametrize("size", [(60, 16), (100, 30)])
async def test_the_list_stands_above_the_prompt_and_on_the_screen(size: tuple[int, int]) -> None:
    async with talking(FakeEngine(), size=size) as talk:
        await typed(talk, "/")
        region = talk.screen.query_one(Suggestions).region
        assert region.bottom == talk.prompt.region.y and region.y >= 0 and region.right <= size[0]


async def test_the_list_moves_with_the_prompt() -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "/")
        for size in ((60, 16), (120, 40)):
            await talk.pilot.resize_terminal(*size)
            await talk.until(lambda: talk.screen.query_one(Suggestions).region.bottom == talk.prompt.region.y)
            assert talk.screen.query_one(Suggestions).region.right <= size[0]


async def test_tab_attaches_a_file_and_its_text_is_read_when_the_prompt_is_sent(folder: Path) -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await typed(talk, "Explain @main")
        await talk.until(lambda: shown(talk) == ["app/main.py"])
        await talk.pilot.press("tab")
        assert talk.prompt.text.replace("\xa0", " ") == "Explain [@app/main.py: 2 lines] "
        await typed(talk, "briefly")
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == ["app/main.py:\n```\nx = 1\ny = 2\n```\n\nExplain app/main.py briefly"]
        assert talk.questions == ["Explain [@app/main.py: 2 lines] briefly"]


async def test_a_name_with_spaces_is_attached_whole_and_removed_with_one_backspace(folder: Path) -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "@view")
        await talk.until(lambda: shown(talk))
        await talk.pilot.press("tab")
        assert talk.prompt.text.replace("\xa0", " ") == "[@app/my view.py: 1 line] "
        await talk.pilot.press("backspace", "backspace")
        assert talk.prompt.text == ""


async def test_a_decorator_an_address_and_a_name_are_sent_as_they_were_typed(folder: Path) -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        for text in ("@property", "write to me@example.com", "ask @main"):
            await typed(talk, text)
            await talk.until(lambda: shown(talk) or "me@" in talk.prompt.text)
            await talk.pilot.press("enter")
            await talk.idle()
        assert sent(engine) == ["@property", "write to me@example.com", "ask @main"]


async def test_a_whole_path_is_attached_by_enter_too(folder: Path) -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, "@app/main.py")
        await talk.until(lambda: shown(talk) == ["app/main.py"])
        await talk.pilot.press("enter")
        assert talk.prompt.text.replace("\xa0", " ") == "[@app/main.py: 2 lines] "


async def test_a_folder_is_opened_and_an_absolute_path_works(folder: Path) -> None:
    async with talking(FakeEngine()) as talk:
        await typed(talk, f"@{folder}/ap")
        await talk.until(lambda: shown(talk) == [f"{folder}/app/"])
        await talk.pilot.press("tab")
        await talk.until(lambda: f"{folder}/app/main.py" in shown(talk))
        assert talk.prompt.text == f"@{folder}/app/"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (Path.unlink, "app/main.py is not there (any more); take its chip out or attach another file."),
        (lambda path: path.write_bytes(b"\0"), "app/main.py is not a text file, so it can't be attached."),
    ],
)
async def test_a_file_that_can_not_be_sent_is_said_before_and_the_prompt_stays(
    folder: Path, spoil: object, sentence: str
) -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await typed(talk, "@main")
        await talk.until(lambda: shown(talk))
        await talk.pilot.press("tab")
        assert callable(spoil)
        spoil(folder / "app" / "main.py")
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.notes)
        assert talk.notes == [sentence] and engine.requests == []
        assert "main.py" in talk.prompt.text


async def test_a_file_that_changed_is_said_before_and_sent_as_it_is_by_a_second_enter(folder: Path) -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await typed(talk, "@main")
        await talk.until(lambda: shown(talk))
        await talk.pilot.press("tab")
        (folder / "app" / "main.py").write_text("new\n")
        os.utime(folder / "app" / "main.py", ns=(1, 1))
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.notes)
        assert talk.notes == [
            "Changed since it was attached: app/main.py (now 1 line). Press enter again to send it as it is now."
        ]
        assert engine.requests == [] and "1\xa0line]" in talk.prompt.text
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == ["app/main.py:\n```\nnew\n```\n\napp/main.py "]


async def test_a_file_that_is_no_text_is_not_attached(folder: Path) -> None:
    (folder / "image.png").write_bytes(b"\x89PNG\0")
    async with talking(FakeEngine()) as talk:
        await typed(talk, "@image")
        await talk.until(lambda: shown(talk))
        await talk.pilot.press("tab")
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["image.png is not a text file, so it can't be attached."]
        assert talk.prompt.text == "@image"


@pytest.mark.parametrize(
    ("trained", "advice"),
    [
        (None, "shorten it, or load the model with a larger context (--ctx)."),
        (32_768, "shorten it, or load the model with a larger context (--ctx, up to 32768)."),
        (16_384, "shorten it; this model was trained for contexts of 16,384 tokens and takes no more."),
    ],
)
async def test_what_outgrows_the_context_is_said_before_it_is_sent_with_what_this_model_can_do(
    trained: int | None, advice: str
) -> None:
    engine = FakeEngine(n_ctx_trained=trained)
    async with talking(engine) as talk:
        await talk.idle()
        talk.prompt.post_message(events.Paste("word " * 20_000))
        await talk.pilot.pause()
        await talk.pilot.press("enter")
        await talk.until(lambda: talk.notes)
        assert talk.notes == [
            f"This prompt has about 25,000 tokens and the context holds 8,192: {advice} "
            "Press enter again to send it all the same."
        ]
        assert engine.requests == [] and talk.prompt.text
        await talk.pilot.press("enter")
        await talk.idle()
        assert sent(engine) == ["word " * 20_000]


async def test_a_prompt_that_outgrows_the_context_is_warned_of_again_only_if_it_has_grown() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.idle()
        talk.prompt.post_message(events.Paste("word " * 20_000))
        await talk.pilot.pause()
        await talk.pilot.press("enter")
        await talk.until(lambda: len(talk.notes) == 1)
        talk.prompt.post_message(events.Paste("more " * 20_000))
        await talk.pilot.pause()
        await talk.pilot.press("enter")
        await talk.until(lambda: len(talk.notes) == 2)
        assert engine.requests == []
        await talk.pilot.press("left", "x", "backspace", "enter")
        await talk.idle()
        assert len(talk.notes) == 2 and len(engine.requests) == 1


@pytest.mark.parametrize("key", ["ctrl+up", "alt+p"])
async def test_a_search_brings_an_earlier_prompt_back(key: str) -> None:
    async with talking(FakeEngine()) as talk:
        for text in ("rename width", "explain this", "rename\nheight"):
            await talk.say(text)
        await talk.idle()
        await typed(talk, "ren")
        await talk.pilot.press(key)
        assert shown(talk) == ["rename\nheight", "rename width"]
        await typed(talk, "ame w")
        assert shown(talk) == ["rename width"]
        await talk.pilot.press("enter")
        assert talk.prompt.text == "rename width" and shown(talk) == []


async def test_a_search_that_is_left_leaves_the_prompt() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("rename width")
        await talk.idle()
        await talk.say("/history width")
        await talk.until(lambda: shown(talk) == ["rename width"])
        await talk.pilot.press("escape")
        assert talk.prompt.text == "width" and shown(talk) == []
        await typed(talk, "x")
        assert shown(talk) == []


def test_every_suggested_command_parses() -> None:
    assert all(parse(f"/{suggestion.value}") for suggestion in commands(""))

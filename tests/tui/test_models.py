"""The list of models: every key of it, with a real server that stalls and breaks off."""

import hashlib
import shutil
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.events import Key
from textual.widgets import Input, OptionList, Static

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine, Script
from model_server import Hub, model_bytes, serving
from specchat import choice, noise_file
from specchat.config import Config
from specchat.tui.screens.confirm import Confirm
from specchat.tui.screens.draft_choice import DraftChoice
from specchat.tui.screens.models import Models
from specchat.tui.widgets.first_start import FirstStart
from specchat.tui.widgets.key_line import KeyLine
from specchat.tui.widgets.pull_line import PullLine
from specengine import catalog, hardware, transfer
from specengine.catalog import Entry
from specengine.hardware import Hardware
from specengine.protocol import Load, Loaded, WidthNoise

CONTENT = model_bytes()
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MACHINE = Hardware(2, 8 * 10**9, 4 * 10**9, 10**11, bandwidth=10e9)
OVERLAY = """
[models.tiny]
title = "Tiny"
parameters = 0.25
licence = "MIT"
context = 4096
draft = "nano"
gguf = {{ file = "model.gguf", repo = "owner/models", revision = "abc123", size = {size}, sha256 = "{sha256}" }}
[models.nano]
gguf = {{ file = "nano.Q8_0.gguf" }}
[models.other]
licence = "MIT"
gguf = {{ file = "other.gguf" }}
"""


@dataclass
class Shelf:
    """A models folder with `other` and `nano` in it, and a server that has `tiny`."""

    folder: Path
    overlay: Path
    noise: Path
    hub: Hub

    @property
    def other(self) -> Path:
        return self.folder / "other.gguf"

    def options(self) -> dict[str, Any]:
        models, costs = catalog.load([self.overlay]), self.folder / "costs.json"

        def make_load(name: str, draft: str | None) -> Load:
            entry = choice.find(name, models, self.folder)
            return choice.load_of(entry, draft, Config(), models, self.folder, costs)

        def missing(name: str, draft: str | None) -> tuple[Entry, ...]:
            return choice.missing(choice.find(name, models, self.folder), draft, Config(), models, self.folder)

        return {
            "make_load": make_load,
            "missing": missing,
            "models_dir": self.folder,
            "noise_file": self.noise,
            "overlays": (self.overlay,),
            "load": make_load("other", None),
        }


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("other.gguf", "nano.Q8_0.gguf"):
        (folder / name).write_bytes(model_bytes(1000))
    overlay = tmp_path / "overlay.toml"
    overlay.write_text(OVERLAY.format(size=len(CONTENT), sha256=SHA256))
    monkeypatch.setattr(hardware, "detect", lambda models_dir, speed_file: MACHINE)
    monkeypatch.setattr(transfer.Watch, "_QUIET", 0.2)
    with serving(Hub(CONTENT)) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield Shelf(folder, overlay, tmp_path / "noise.json", hub)


class Picker:
    """The open list."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk

    @property
    def screen(self) -> Models:
        screen = self.talk.app.screen
        assert isinstance(screen, Models)
        return screen

    @property
    def rows(self) -> list[str]:
        return [str(option.prompt) for option in self.screen.query_one(OptionList).options]

    @property
    def details(self) -> str:
        return str(self.screen.query_one(".details", Static).render())

    @property
    def news(self) -> str:
        return str(self.screen.query_one(".news", Static).render())

    @property
    def pull(self) -> str:
        line = self.screen.query_one(".pull", Static)
        return str(line.render()) if line.display else ""

    async def find(self, words: str) -> None:
        """Types into the filter, in place of what is there."""
        self.screen.query_one(Input).value = words
        await self.talk.until(lambda: len(self.rows) < 15)
        await self.talk.pilot.pause()


@asynccontextmanager
async def picking(
    shelf: Shelf, engine: FakeEngine | None = None, size: tuple[int, int] = (110, 36), **changes: object
) -> AsyncGenerator[Picker]:
    async with talking(engine or FakeEngine(), size=size, **{**shelf.options(), **changes}) as talk:
        await talk.idle()
        await talk.pilot.press("ctrl+o")
        picker = Picker(talk)
        await talk.until(lambda: isinstance(talk.app.screen, Models) and picker.rows)
        yield picker


def closed(talk: Talk) -> Callable[[], bool]:
    return lambda: talk.app.screen is talk.screen


async def test_it_lists_the_whole_catalogue_and_the_files_beside_it_and_marks_what_is_here(shelf: Shelf) -> None:
    (shelf.folder / "mine-Q4_0.gguf").write_bytes(model_bytes(2000))
    (shelf.folder / "broken.gguf").write_bytes(b"GGUF")
    (shelf.folder / ".model.gguf.lock").write_bytes(b"")
    async with picking(shelf) as picker:
        names = [row.split()[1] if row[0] != " " else row.split()[0] for row in picker.rows]
        assert names == [*catalog.load([shelf.overlay]).models, "broken", "mine-Q4_0"]
        by_name = dict(zip(names, picker.rows, strict=True))
        assert by_name["other"].startswith("● ") and " loaded " in by_name["other"]
        assert by_name["nano"].startswith("✓ ") and " here " in by_name["nano"]
        assert by_name["mine-Q4_0"].startswith("✓ ")
        assert by_name["broken"].startswith("✗ ") and "unusable" in by_name["broken"]
        assert " too large " in by_name["qwen3-14b"] and "est." not in by_name["qwen3-14b"]
        assert "1.1 GB  fits" in by_name["qwen2.5-coder-1.5b"] and "about 13 tok/s" in by_name["qwen2.5-coder-1.5b"]
        assert "1.54B Q4_K_M" in by_name["qwen2.5-coder-1.5b"]


async def test_model_without_a_name_opens_it_too_and_escape_closes_it(shelf: Shelf) -> None:
    async with talking(FakeEngine(), **shelf.options()) as talk:
        await talk.say("/model")
        assert isinstance(talk.app.screen, Models)
        await talk.pilot.press("escape")
        assert closed(talk)() and talk.prompt.has_focus


async def test_the_details_tell_all_there_is_to_know(shelf: Shelf) -> None:
    runs = Loaded("other", str(shelf.other), "fake", "CPU, 2 threads", 8192, 1000)
    noise_file.remember(shelf.noise, runs, False, WidthNoise(0.21, 0.02, False))
    async with picking(shelf) as picker:
        assert picker.details.startswith("other\nlicence: MIT · no draft model\n"), "the loaded model is highlighted"
        assert "Text may part at near-ties: logits differ by up to 0.21 (measured on CPU, 2 threads)" in picker.details
        assert f"{shelf.other} (no digest was checked)" in picker.details
        await picker.find("tiny")
        assert picker.details.splitlines() == [
            "Tiny  0.25B",
            "licence: MIT · context 4,096 · draft: nano (here)",
            "Fits: needs 601 MB with its draft model, 4.0 GB free · about 14,000 tok/s without drafts",
            "enter pulls it",
        ]
        await picker.find("qwen3-14b")
        assert "Too large for this machine now: needs" in picker.details


async def test_typing_filters_by_every_word(shelf: Shelf) -> None:
    async with picking(shelf) as picker:
        await picker.talk.pilot.press(*"MIT tin")
        await picker.talk.until(lambda: len(picker.rows) == 1)
        assert "tiny" in picker.rows[0]
        await picker.talk.pilot.press(*"xx")
        await picker.talk.until(lambda: not picker.rows)
        assert picker.details == "No model matches."
        await picker.talk.pilot.press("enter", "delete", "tab")
        assert isinstance(picker.talk.app.screen, Models)


async def test_the_arrows_and_page_keys_choose_while_the_filter_keeps_the_focus(shelf: Shelf) -> None:
    async with picking(shelf) as picker:
        listed = picker.screen.query_one(OptionList)
        await picker.talk.pilot.press("pageup", "pageup", "pageup")
        await picker.talk.until(lambda: listed.highlighted == 0)
        first = picker.details
        await picker.talk.pilot.press("down")
        assert (listed.highlighted, picker.details != first) == (1, True)
        await picker.talk.pilot.press("up", "pagedown")
        assert listed.highlighted and listed.highlighted > 1
        assert picker.screen.query_one(Input).has_focus


async def test_enter_switches_and_the_conversation_stays(shelf: Shelf) -> None:
    engine = FakeEngine()
    async with talking(engine, **shelf.options()) as talk:
        await talk.say("hi")
        await talk.idle()
        await talk.pilot.press("ctrl+o")
        picker = Picker(talk)
        await talk.until(lambda: picker.rows)
        await picker.find("nano")
        await talk.pilot.press("enter")
        await talk.until(closed(talk))
        await talk.idle()
        assert [load.name for load in engine.loads] == ["other", "nano"]
        assert talk.answers == ["Hello"] and len(talk.screen.session.conversation.turns) == 1


async def test_a_file_beside_the_catalogue_is_loaded_by_its_path(shelf: Shelf) -> None:
    (shelf.folder / "mine.gguf").write_bytes(model_bytes(2000))
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        await picker.find("mine")
        await picker.talk.pilot.press("enter")
        await picker.talk.idle()
        assert (engine.loads[-1].name, engine.loads[-1].model) == ("", str(shelf.folder / "mine.gguf"))


async def test_enter_on_a_missing_one_pulls_it_while_the_chat_goes_on_and_then_switches(shelf: Shelf) -> None:
    shelf.hub.stalls = [400_000]
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        talk = picker.talk
        await picker.find("tiny")
        await talk.pilot.press("enter")
        await talk.until(lambda: "39% 0.4 MB of 1.0 MB" in picker.pull)
        assert picker.rows[0].startswith("↓ ") and "pulling" in picker.rows[0]
        await talk.until(lambda: "stalled" in picker.pull and "MB/s" not in picker.pull)
        await talk.pilot.press("enter")
        assert picker.news == "Tiny is being pulled already."
        await talk.pilot.press("escape")
        line = talk.screen.query_one(PullLine)
        assert line.display and "stalled" in str(line.render())
        await talk.say("hi")
        await talk.idle()
        assert talk.answers == ["Hello"]
        shelf.hub.released.set()
        await talk.until(lambda: len(engine.loads) == 2)
        await talk.idle()
        assert (engine.loads[1].name, engine.loads[1].draft_name) == ("tiny", "nano")
        assert not line.display and talk.notes == ["Tiny is here now."]
        assert (shelf.folder / "model.gguf").read_bytes() == CONTENT


async def test_all_of_a_pulls_progress_shows_in_the_smallest_window(shelf: Shelf) -> None:
    shelf.hub.stalls = [400_000]
    shelf.overlay.write_text(shelf.overlay.read_text().replace('"Tiny"', '"Tiny with a long name of its own"'))
    async with picking(shelf, size=(60, 16)) as picker:
        talk = picker.talk
        await picker.find("tiny")
        await talk.pilot.press("enter")
        await talk.until(lambda: "stalled" in picker.pull and picker.pull in talk.flowing)
        assert picker.screen.query_one("KeyLine").region.bottom < 16
        assert picker.screen.query_one(OptionList).size.height >= 3
        await talk.pilot.press("escape")
        await talk.until(lambda: str(talk.screen.query_one(PullLine).render()) in talk.flowing)


async def test_a_stopped_pull_says_what_is_kept_and_goes_on_from_there(shelf: Shelf) -> None:
    shelf.hub.stalls = [400_000]
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        talk = picker.talk
        await picker.find("tiny")
        await talk.pilot.press("ctrl+x")
        assert picker.news == "Nothing is being pulled."
        await talk.pilot.press("enter")
        await talk.until(lambda: "0.4 MB of" in picker.pull)
        await talk.pilot.press("ctrl+x")
        said = "Stopped; 0.4 MB of Tiny are kept, and the next pull goes on from there."
        await talk.until(lambda: picker.news == said and "0.4 MB here" in picker.rows[0])
        assert talk.notes == [said] and picker.rows[0].startswith("◐ ")
        assert "0.4 MB are here already; enter pulls it" in picker.details
        await talk.pilot.press("enter")
        await talk.until(lambda: len(engine.loads) == 2)
        assert shelf.hub.served == [None, "bytes=400000-"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("gone", "it doesn't have the file"),
        ("network", "can't be reached"),
        ("disk", "needs 1.0 MB more, but only 0.0 MB are free"),
        ("digest", "it has another version of the file than the catalogue"),
    ],
)
async def test_what_goes_wrong_with_a_pull_is_said_and_the_chat_stays(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    match fault:
        case "gone":
            shelf.hub.status = 404
        case "network":
            monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        case "disk":
            monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10, used=10, free=0))
        case "digest":
            shelf.overlay.write_text(OVERLAY.format(size=len(CONTENT), sha256="0" * 64))
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        await picker.find("tiny")
        await picker.talk.pilot.press("enter")
        await picker.talk.until(lambda: words in picker.news)
        assert "Traceback" not in picker.news
        assert picker.talk.notes == [picker.news]
        assert picker.talk.screen.query_one("NoteView").has_class("-error")
        assert len(engine.loads) == 1 and not (shelf.folder / "model.gguf").exists()


async def test_while_one_is_pulled_another_is_not(shelf: Shelf) -> None:
    shelf.hub.stalls = [400_000]
    async with picking(shelf) as picker:
        await picker.find("tiny")
        await picker.talk.pilot.press("enter")
        await picker.talk.until(lambda: "0.4 MB of" in picker.pull)
        await picker.find("smollm2-1.7b")
        await picker.talk.pilot.press("enter")
        assert picker.news.startswith("Tiny is being pulled; wait for it, or stop it in the list of models.")
        await picker.talk.pilot.press("escape")
        await picker.talk.say("/model smollm2-1.7b")
        assert picker.talk.notes[-1].startswith("Tiny is being pulled")


async def test_one_who_loads_another_model_meanwhile_keeps_it(shelf: Shelf) -> None:
    shelf.hub.stalls = [400_000]
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        talk = picker.talk
        await picker.find("tiny")
        await talk.pilot.press("enter")
        await talk.until(lambda: "0.4 MB of" in picker.pull)
        await picker.find("nano")
        await talk.pilot.press("enter")
        await talk.idle()
        shelf.hub.released.set()
        await talk.until(lambda: talk.notes == ["Tiny is here now."])
        await talk.idle()
        assert [load.name for load in engine.loads] == ["other", "nano"]


async def test_tab_chooses_the_draft_model_also_none(shelf: Shelf) -> None:
    engine = FakeEngine()
    (shelf.folder / "model.gguf").write_bytes(CONTENT)
    async with picking(shelf, engine) as picker:
        talk = picker.talk
        await picker.find("tiny")
        assert "draft: nano (here)" in picker.details
        await talk.pilot.press("tab")
        assert isinstance(talk.app.screen, DraftChoice)
        listed = talk.app.screen.query_one(OptionList)
        assert [option.id for option in listed.options] == ["none", "nano", "other"]
        assert listed.highlighted == 1
        await talk.pilot.press("up", "enter")
        await talk.until(lambda: "no draft model, by your choice" in picker.details)
        await talk.pilot.press("enter")
        await talk.idle()
        assert (engine.loads[-1].name, engine.loads[-1].draft, engine.loads[-1].draft_name) == ("tiny", None, "")
        await talk.pilot.press("ctrl+o")
        await talk.until(lambda: picker.rows)
        await picker.find("tiny")
        await talk.pilot.press("tab", "down", "down", "enter")
        await talk.until(lambda: "draft: other, your choice" in picker.details)
        await talk.pilot.press("tab", "escape", "enter")
        await talk.idle()
        assert engine.loads[-1].draft == str(shelf.other)


async def test_removing_asks_and_no_is_no(shelf: Shelf) -> None:
    async with picking(shelf) as picker:
        talk = picker.talk
        await picker.find("nano")
        for answer in ("n", "escape"):
            await talk.pilot.press("delete")
            await talk.until(lambda: isinstance(talk.app.screen, Confirm))
            await talk.pilot.press(answer)
            await talk.until(lambda: isinstance(talk.app.screen, Models))
            assert (shelf.folder / "nano.Q8_0.gguf").exists()
        await talk.pilot.press("delete")
        await talk.until(lambda: isinstance(talk.app.screen, Confirm))
        await talk.pilot.press("y")
        await talk.until(lambda: isinstance(talk.app.screen, Models) and picker.news == "nano: 0.0 MB freed.")
        assert not (shelf.folder / "nano.Q8_0.gguf").exists()
        await talk.until(lambda: not picker.rows[0].startswith("✓"))
        await talk.pilot.press("delete")
        assert picker.news == "nano is not here."


async def test_what_was_pulled_of_a_model_can_be_removed(shelf: Shelf) -> None:
    (shelf.folder / "model.gguf.part").write_bytes(b"x" * 300_000)
    (shelf.folder / "model.gguf.part.json").write_text(f'{{"identity": "{SHA256}"}}')
    async with picking(shelf) as picker:
        await picker.find("tiny")
        await picker.talk.pilot.press("delete")
        await picker.talk.until(lambda: isinstance(picker.talk.app.screen, Confirm))
        await picker.talk.pilot.press("y")
        await picker.talk.until(lambda: isinstance(picker.talk.app.screen, Models) and "0.3 MB freed" in picker.news)
        assert not (shelf.folder / "model.gguf.part").exists()


async def test_what_is_in_use_or_ones_own_is_never_removed(shelf: Shelf) -> None:
    (shelf.folder / "model.gguf").write_bytes(CONTENT)
    (shelf.folder / "mine.gguf").write_bytes(model_bytes(2000))
    async with picking(shelf) as picker:
        talk = picker.talk
        await picker.find("tiny")
        await talk.pilot.press("enter")
        await talk.idle()
        await talk.pilot.press("ctrl+o")
        await talk.until(lambda: picker.rows)
        for words, said in (
            ("tiny", "Tiny is loaded; load another model before you remove it."),
            ("nano", "nano drafts for the loaded model; choose another draft before you remove it."),
            ("mine", f"{shelf.folder / 'mine.gguf'} is a file of your own; delete it yourself."),
        ):
            await picker.find(words)
            await talk.pilot.press("delete")
            assert picker.news == said
        assert len(list(shelf.folder.glob("*.gguf"))) == 4


async def test_a_file_that_is_no_model_says_why_and_is_not_loaded(shelf: Shelf) -> None:
    (shelf.folder / "broken.gguf").write_bytes(b"")
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        await picker.find("broken")
        await picker.talk.pilot.press("enter")
        assert str(shelf.folder / "broken.gguf") in picker.news
        assert len(engine.loads) == 1


async def test_offline_missing_models_are_shown_as_such_and_not_pulled(shelf: Shelf) -> None:
    async with picking(shelf, offline=True) as picker:
        await picker.find("tiny")
        assert picker.details.endswith("not here, and the network is switched off")
        await picker.talk.pilot.press("enter")
        assert picker.news == "Tiny is not here and the network is switched off."
        await picker.talk.pilot.press("escape")
        await picker.talk.say("/model tiny")
        await picker.talk.until(lambda: picker.talk.notes)
        assert "network is switched off" in picker.talk.notes[0]
        assert shelf.hub.asked == []


async def test_f5_measures_the_loaded_model_and_the_list_remembers(shelf: Shelf) -> None:
    engine = FakeEngine(noise=WidthNoise(0.5, 0.1, False))
    async with picking(shelf, engine) as picker:
        assert "It can be measured now" in picker.details
        await picker.talk.pilot.press("f5")
        said = "text may part at near-ties: logits differ by up to 0.5"
        await picker.talk.until(lambda: picker.news == f"other: {said}.")
        await picker.talk.until(lambda: said[1:] in picker.details)
        known = noise_file.recall(shelf.noise, shelf.other, exact=False)
        assert known and known.noise.max_difference == 0.5


async def test_nothing_is_measured_without_a_model_or_during_an_answer(shelf: Shelf) -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.append(Script(("one",), pace=gate))
    async with talking(engine, **shelf.options()) as talk:
        await talk.idle()
        await talk.say("hi")
        await talk.pilot.press("ctrl+o")
        picker = Picker(talk)
        await talk.until(lambda: picker.rows)
        await talk.pilot.press("f5")
        await talk.until(lambda: picker.news == "An answer or a load is under way; measure once it is done.")
        gate.open()
        await talk.idle()
    async with talking(FakeEngine(), **{**shelf.options(), "load": None}) as talk:
        await talk.pilot.press("ctrl+o")
        picker = Picker(talk)
        await talk.until(lambda: picker.rows)
        await talk.pilot.press("f5")
        await talk.until(lambda: picker.news == "No model is loaded, so there is nothing to measure.")


async def test_a_first_start_is_no_dead_end(shelf: Shelf) -> None:
    engine = FakeEngine()
    async with picking(shelf, engine, load=None) as picker:
        assert picker.talk.screen.query(FirstStart)
        await picker.find("nano")
        await picker.talk.pilot.press("enter")
        await picker.talk.idle()
        assert engine.loads[0].name == "nano" and not picker.talk.screen.query(FirstStart)


async def test_model_pulls_what_is_missing_and_then_loads_it(shelf: Shelf) -> None:
    engine = FakeEngine()
    async with talking(engine, **shelf.options()) as talk:
        await talk.idle()
        await talk.say("/model tiny")
        await talk.until(lambda: len(engine.loads) == 2)
        await talk.idle()
        assert engine.loads[1].name == "tiny" and talk.notes == ["Tiny is here now."]


async def test_names_to_complete_are_those_that_are_here_first(shelf: Shelf) -> None:
    (shelf.folder / "mine.gguf").write_bytes(model_bytes(2000))
    async with talking(FakeEngine(), **shelf.options()) as talk:
        names = talk.screen.model_names()
        assert names[:3] == ("nano", "other", "mine") and set(catalog.load([shelf.overlay]).models) < set(names)
        await talk.say("/model mine")
        await talk.idle()
        assert talk.notes == []


async def test_draft_pulls_what_is_missing_and_then_loads_the_pair(shelf: Shelf) -> None:
    engine = FakeEngine()
    async with talking(engine, **shelf.options()) as talk:
        await talk.idle()
        await talk.say("/draft tiny")
        await talk.until(lambda: len(engine.loads) == 2)
        await talk.idle()
        assert (engine.loads[1].name, engine.loads[1].draft) == ("other", str(shelf.folder / "model.gguf"))


async def test_the_last_line_tells_the_keys_in_order_and_each_can_be_clicked(shelf: Shelf) -> None:
    async with picking(shelf) as picker:
        keys = picker.screen.query_one(KeyLine)
        shown = str(keys.render())
        assert shown == "enter load  tab draft  f5 measure  ctrl+x stop  del remove  esc close"
        await picker.talk.pilot.click(keys, offset=(shown.index("close"), 0))
        await picker.talk.until(closed(picker.talk))


async def test_keys_of_the_users_own_are_shown_and_work(shelf: Shelf) -> None:
    async with picking(shelf, keymap={"models.measure": "f9", "models.close": "f10"}) as picker:
        assert "f9 measure" in str(picker.screen.query_one(KeyLine).render())
        await picker.talk.pilot.press("f10")
        assert closed(picker.talk)()


async def test_it_fits_60_columns_and_16_rows(shelf: Shelf) -> None:
    async with picking(shelf, size=(60, 16)) as picker:
        listed = picker.screen.query_one(OptionList)
        assert listed.size.height >= 3
        assert all(len(row) <= listed.size.width for row in picker.rows)
        for part in (".news", ".about", "KeyLine"):
            assert picker.screen.query_one(part).region.bottom <= 16


async def test_all_that_is_known_of_a_model_can_be_read_in_the_smallest_window(shelf: Shelf) -> None:
    long = "a licence of " + "many words " * 40
    other = '[models.other]\nlicence = "'
    shelf.overlay.write_text(shelf.overlay.read_text().replace(f"{other}MIT", f"{other}{long}"))
    async with picking(shelf, size=(60, 16)) as picker:
        talk, about = picker.talk, picker.screen.query_one(".about")
        await talk.until(lambda: about.max_scroll_y and "shift+down more" in talk.flowing)
        assert "a licence of" in talk.flowing and "digest was checked)" not in talk.flowing
        while about.scroll_y < about.max_scroll_y:
            await talk.pilot.press("shift+down")
        await talk.until(lambda: "digestwaschecked)" in talk.flowing.replace(" ", ""))
        await talk.pilot.press("down")
        assert about.scroll_y == 0


async def test_what_is_said_is_read_whole_in_the_smallest_window_and_goes_when_one_moves_on(shelf: Shelf) -> None:
    async with picking(shelf, size=(60, 16)) as picker:
        picker.screen._say("a sentence " * 25)
        line = picker.screen.query_one(".news", Static)
        await picker.talk.until(lambda: line.size.height == 5)
        assert picker.screen.query_one(OptionList).size.height >= 3
        assert picker.screen.query_one("KeyLine").region.bottom < 16
        await picker.talk.pilot.press("down")
        assert picker.news == "" and picker.screen.query_one(".about").display


async def test_keys_that_arrive_at_once_filter_correct_and_load_in_that_order(shelf: Shelf) -> None:
    engine = FakeEngine()
    async with picking(shelf, engine) as picker:
        for key in ("n", "x", "backspace", "a", "n", "o", "enter"):
            picker.talk.app.post_message(Key(key, key if len(key) == 1 else None))
        await picker.talk.until(closed(picker.talk))
        await picker.talk.idle()
        assert engine.loads[-1].name == "nano"


@pytest.mark.parametrize("measured", [True, False])
async def test_nobody_waits_for_the_machine_to_be_measured(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, measured: bool
) -> None:
    """Rows show before speeds are known; and an Enter that came before the rows acts on them."""
    go_on = threading.Event()

    def detect(models_dir: Path, speed_file: Path | None) -> Hardware:
        if (speed_file is not None) is measured:
            go_on.wait(60)
        return MACHINE if speed_file else replace(MACHINE, bandwidth=None)

    monkeypatch.setattr(hardware, "detect", detect)
    engine = FakeEngine()
    try:
        async with talking(engine, size=(110, 36), **shelf.options()) as talk:
            await talk.idle()
            await talk.pilot.press("ctrl+o")
            picker = Picker(talk)
            await talk.until(lambda: isinstance(talk.app.screen, Models) and picker.news == "Looking at this machine…")
            if measured:
                await talk.until(lambda: picker.rows)
            await talk.pilot.press(*"nano", "enter")
            if not measured:
                assert not picker.rows
                go_on.set()
            await talk.until(closed(talk))
            await talk.idle()
            assert engine.loads[-1].name == "nano"
            go_on.set()
            await talk.until(lambda: all(worker.is_finished for worker in talk.app.workers if worker.group == "survey"))
            await talk.say("hi")
            await talk.idle()
            assert talk.answers == ["Hello"]
    finally:
        go_on.set()

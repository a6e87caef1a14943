"""What the terminal UI is started with. Imports neither Textual nor the engine's heavy parts."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from specchat import looks
from specchat.store.chats import Kept
from specengine.catalog import Entry
from specengine.protocol import (
    Adjust,
    Chunk,
    Done,
    Generate,
    Load,
    Loaded,
    MeasureNearTie,
    NearTie,
    Notice,
    Prefilling,
    Progress,
    WidthNoise,
)
from specengine.settings import Limits, Sampling, Speculation


class Engine(Protocol):
    """The engine as the UI sees it: `specchat.host.Host`, or a scripted one in tests.

    `load`, `generate` and `measure_width_noise` raise EngineError (one sentence for the user) or EngineDied (the
    process ended by itself; the next call starts it again).
    """

    @property
    def loaded(self) -> Loaded | None: ...

    def load(self, load: Load) -> AsyncGenerator[Progress | Notice | Loaded]: ...

    def generate(self, request: Generate) -> AsyncGenerator[Prefilling | Chunk | Notice | Done]: ...

    def adjust(self, adjust: Adjust) -> None: ...

    def stop(self, id: int) -> None: ...

    async def measure_width_noise(self) -> WidthNoise: ...

    async def measure_near_tie(self, asked: MeasureNearTie) -> NearTie: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TuiOptions:
    """Everything that the command line decides before the UI takes over the terminal."""

    make_host: Callable[[], Engine]
    """Makes the engine; called once, inside the running event loop."""
    make_load: Callable[[str, str | None], Load]
    """Turns a model's name (catalogue name or path) and its draft's ("none" for none, None for the catalogue's
    choice) into a Load with the command line's other settings. Raises EngineError in one sentence, also where the
    model is not on this machine yet."""
    missing: Callable[[str, str | None], tuple[Entry, ...]]
    """What must be pulled before such a Load can be made: the model, its draft, or nothing. Raises EngineError where
    there is no model of that name."""
    models_dir: Path
    noise_file: Path
    """Where measured width noise is kept."""
    speed_file: Path
    """Where the measured speed of the memory is kept."""
    config_file: Path
    """Where defaults are saved."""
    load: Load | None = None
    """What to load at once; None means that no model is there yet: the UI offers the ones that fit."""
    prompt: str | None = None
    """Sent as the first message."""
    system: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    limits: Limits = field(default_factory=Limits)
    speculation: Speculation = "auto"
    gamma: int | None = None
    lookup: bool = True
    draft: bool = True
    n_ctx: int | None = None
    """Context size in tokens; None for the usual one."""
    offline: bool = False
    theme: str = looks.DARK
    mouse: bool = True
    animations: bool = True
    keymap: Mapping[str, str] = field(default_factory=dict)
    """Keys by action, as the user wrote them."""
    history_file: Path | None = None
    """Where prompts are kept between starts; None keeps them for this one only."""
    paste_lines: int = 8
    """A paste of so many lines is shown as a chip; 0 shows none as one."""
    overlays: tuple[Path, ...] = ()
    """Catalogue files laid over the built-in models.toml, in this order."""
    chats_file: Path | None = None
    """Where chats are kept; None keeps nothing."""
    resume: Kept | None = None
    """The chat to go on with."""
    choose_chat: bool = False
    """Begin with the list of chats."""

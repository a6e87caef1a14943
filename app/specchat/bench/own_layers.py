"""Where a model drafts for itself: with which of its layers is it measured?"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from specengine import costs_file
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.layer_skipping import READ
from specengine.protocol import Chat, Done, Generate, Load, Message, Raw
from specengine.settings import Limits, Sampling

_QUESTION: Final = "Write a Python class for a bounded queue with a lock, and explain each of its methods."


def take_kept(engine: Engine, load: Load, file: Path) -> bool:
    """Leaves out the layers that were chosen in chats on this machine; whether there were any. To be done before costs
    are measured."""
    kept = costs_file.kept_for(file, load)
    taken = engine.layers is not None and kept is not None and engine.layers.take(kept.skipped)
    if taken:
        _say(engine, "as chosen in chats on this machine")
    return taken


def choose(engine: Engine, should_stop: Callable[[], bool]) -> None:
    """Chooses them on an answer that counts nowhere, once costs are known. Where none seems worth it, the first choice
    stays."""
    if engine.layers is None:
        return
    prompt = Chat((Message("user", _QUESTION),)) if engine.loaded.template else Raw(_QUESTION)
    request = Generate(0, prompt, Sampling(temperature=0), Limits(READ), "off", lookup=False, draft=False)
    controls = Controls(speculation="off")
    first = engine.layers.draft.skipped
    for message in engine.generate(request, controls):
        controls.stop = should_stop()
        if isinstance(message, Done):
            engine.layers.see(message.stats.emitted)
    engine.measure_costs(should_stop)
    chosen = engine.layers.draft.skipped != first
    _say(engine, "chosen on a text written for it" if chosen else "the first choice: no other promised more")


def _say(engine: Engine, why: str) -> None:
    assert engine.layers is not None
    without = f"without {_runs(engine.layers.draft.skipped)} of {engine.layers.draft.layers}"
    loaded = engine.loaded
    notice = f"{loaded.name} drafts for itself {without}: {why}."
    engine.loaded = msgspec.structs.replace(
        loaded, draft=f"{loaded.draft} {without}", notices=(*loaded.notices, notice)
    )


def _runs(layers: Sequence[int]) -> str:
    """Counted from 1: "layers 3–5, 9"."""
    ends: list[list[int]] = []
    for layer in layers:
        if ends and layer == ends[-1][1] + 1:
            ends[-1][1] = layer
        else:
            ends.append([layer, layer])
    runs = [str(first + 1) if first == last else f"{first + 1}–{last + 1}" for first, last in ends]
    return f"{'layer' if len(layers) == 1 else 'layers'} {', '.join(runs)}"

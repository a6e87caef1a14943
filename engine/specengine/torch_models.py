"""From a Load request to models in torch: at which precision, what fits, whether the pair matches."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from specengine import hardware
from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import Found
from specengine.backends.torch_nf4.options import TorchDevice, TorchOptions
from specengine.backends.torch_nf4.plan import plan
from specengine.context_size import Needs, context_size
from specengine.errors import EngineError
from specengine.language_model import LanguageModel
from specengine.model_folder import read_folder
from specengine.opened import Opened, Progress
from specengine.pair import mismatch
from specengine.protocol import Load

if TYPE_CHECKING:
    from specengine.backends.torch_nf4.model import TorchModel

WORKSPACE: Final = 800 * 10**6
"""Bytes for activations, logits, the libraries, and one tensor at full precision while it is quantised."""


@dataclass(frozen=True, slots=True)
class _Loader:
    """What both models are loaded with."""

    progress: Progress
    should_stop: Callable[[], bool]
    kept_dir: Path | None

    def model(self, folder: Path, name: str, options: TorchOptions) -> "TorchModel":
        # bitsandbytes asks Hugging Face for kernels when it is imported, if a package called `kernels` is there.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        # It brings torch, which takes seconds: what could be refused without it was.
        from specengine.backends.torch_nf4.model import TorchModel

        kind = options.precision + ("-head" if options.quantised_head else "")
        kept = self.kept_dir / f"{folder.name}-{kind}.safetensors" if self.kept_dir else None
        return TorchModel(
            read_folder(folder),
            replace(options, kept=kept),
            lambda done: self.progress(f"loading {name}", done),
            self.should_stop,
        )


def open_models(
    request: Load,
    folder: Path,
    device: TorchDevice,
    found: Found,
    progress: Progress,
    should_stop: Callable[[], bool],
) -> Opened:
    """Loads the target from `folder`, and the draft model if it fits and matches.

    Raises:
        EngineError: the target can't be loaded; what concerns the draft model only is said in the result.
        Stopped: `should_stop` returned true.
    """
    loader = _Loader(progress, should_stop, Path(request.kept_dir) if request.kept_dir else None)
    described = read_folder(folder)
    precision = refusals.precision(found, device)
    sizes = plan(described, precision, device)
    free = _free(device, found)
    needs = Needs(request.called, described.context_length, sizes.weights + WORKSPACE, sizes.kv_per_token)
    n_ctx, notices = context_size(request.n_ctx, needs, free)
    threads, more = hardware.threads(request.threads)
    options = TorchOptions(n_ctx, device, precision, threads=threads)
    target = loader.model(folder, request.called, options)
    try:
        room = None if free is None else free - WORKSPACE - sizes.needed(n_ctx)
        draft, refused = _draft(request, target, options, room, loader)
    except BaseException:
        target.close()
        raise
    warning = refusals.speculation_warning(found)
    return Opened(
        target,
        draft,
        refused,
        "torch, NF4",
        _device(options, found),
        found.in_words(),
        f"{_device(options, found)} {precision} {threads} threads",
        (*notices, *more, *([warning] if warning else [])),
        described.context_length,
        sizes.kv_per_token / sizes.weights,
    )


def _draft(
    request: Load, target: "TorchModel", options: TorchOptions, room: int | None, loader: _Loader
) -> tuple[LanguageModel | None, str | None]:
    """The draft model, or why it isn't used: it is given up before the target's context is."""
    place, name = request.draft_weights or request.draft, request.draft_called
    if place is None and not request.self_draft:
        return None, None
    if target.refusal:
        return None, target.refusal
    if place is None:
        return _self_draft(target)
    try:
        described = read_folder(Path(place))
        why = refusals.model_refusal(described, options.device)
        n_ctx = min(target.n_ctx, described.context_length or target.n_ctx)
        if why:
            return None, f"{name} can't draft in the torch engine: {why}. Prompt lookup drafts alone."
        sizes = plan(described, options.precision, options.device, quantised_head=True)
        if room is not None and sizes.needed(n_ctx) > room:
            return None, f"{name} does not fit into memory beside the target; prompt lookup drafts alone."
        draft = loader.model(Path(place), name, replace(options, n_ctx=n_ctx, quantised_head=True))
    except EngineError as error:
        return None, f"{error} Prompt lookup drafts alone."
    difference = draft.refusal or mismatch(target.vocabulary, draft.vocabulary)
    if difference:
        draft.close()
        return None, f"{name} can't draft for this model: {difference} Prompt lookup drafts alone."
    return draft, None


def _self_draft(target: "TorchModel") -> tuple[LanguageModel | None, str | None]:
    """The target with layers left out; it takes no memory of its own."""
    from specengine.backends.torch_nf4.self_draft import SelfDraft

    try:
        return SelfDraft(target), None
    except EngineError as error:
        return None, f"{error} Prompt lookup drafts alone."


def _free(device: TorchDevice, found: Found) -> int | None:
    if device == "cuda":
        return found.card.free if found.card else None
    return hardware.available_memory()


def _device(options: TorchOptions, found: Found) -> str:
    if options.device == "cuda" and found.card:
        return found.card.name
    return "CPU, 1 thread" if options.threads == 1 else f"CPU, {options.threads} threads"

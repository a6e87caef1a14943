"""Which of the two engines runs a model: torch (safetensors, made for CUDA cards) or llama.cpp (GGUF files)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import Found
from specengine.backends.torch_nf4.options import TorchDevice
from specengine.errors import EngineError
from specengine.model_folder import ModelFolder, read_folder
from specengine.protocol import Load


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine to use, and why it isn't torch where that was thought of."""

    engine: Literal["torch", "llamacpp"]
    device: TorchDevice = "cpu"
    """Of torch."""
    reason: str | None = None
    """One sentence."""


def torch_folder(request: Load) -> Path | None:
    """The target's safetensors, where there are some."""
    if request.weights:
        return Path(request.weights)
    return Path(request.model) if Path(request.model).is_dir() else None


def choose(request: Load, look: Callable[[], Found]) -> Choice:
    """The engine for this request.

    Args:
        look: what torch finds on this machine; asked only where torch may be chosen, since that takes seconds.

    Raises:
        EngineError: the engine or the device that was asked for can't run this model.
    """
    folder = torch_folder(request)
    only_folder = folder is not None and request.weights is None
    if folder is None:
        if request.engine == "torch":
            raise EngineError(
                f"{request.called} is a GGUF file, which the torch engine can't read; name a Hugging Face folder, or a "
                "model of `specchat models list`."
            )
        return Choice("llamacpp")
    if request.engine == "llamacpp":
        if only_folder:
            raise EngineError(
                f"{request.called} is a folder of safetensors, which llama.cpp can't read; name a .gguf file."
            )
        return Choice("llamacpp")
    found = look()
    device: TorchDevice = "cuda" if _on_cuda(request, found) else "cpu"
    reason = torch_refusal(found, device, read_folder(folder))
    wanted = request.engine == "torch" or only_folder
    if reason is None and not wanted and device == "cpu":
        # On a processor llama.cpp is faster: at a single token some two times.
        if request.device == "cpu":
            return Choice("llamacpp")
        reason = refusals.device_refusal(found, "cuda")
    if reason is None:
        return Choice("torch", device)
    if wanted:
        raise EngineError(f"The torch engine can't run {request.called}: {reason}.")
    return Choice("llamacpp", reason=f"llama.cpp runs {request.called}: {reason}.")


def torch_refusal(found: Found, device: TorchDevice, folder: ModelFolder) -> str | None:
    """Why torch can't run this model on this device, as the second half of a sentence."""
    return (
        refusals.not_installed(found)
        or refusals.device_refusal(found, device)
        or refusals.model_refusal(folder, device)
        or refusals.overflow(found, device, folder)
    )


def _on_cuda(request: Load, found: Found) -> bool:
    return request.device == "cuda" or (request.device == "auto" and found.card is not None)

"""What of the torch engine is on this machine. `python -m specengine.backends.torch_nf4.found` prints it as JSON, so
that a program may ask without loading torch into itself."""

import contextlib
from importlib import metadata

import msgspec

PACKAGES = ("torch", "transformers", "bitsandbytes", "accelerate", "safetensors", "tokenizers")
"""What the engine needs; the extra `gpu` brings them."""


class Card(msgspec.Struct, frozen=True):
    """The CUDA device that torch uses first; sizes in bytes."""

    name: str
    capability: tuple[int, int]
    total: int
    free: int


class Found(msgspec.Struct, frozen=True):
    """What is installed, and what torch says of the machine."""

    versions: dict[str, str] = {}
    problem: str | None = None
    """Why torch doesn't load, where it is installed."""
    cuda_build: str | None = None
    """The CUDA version that torch was built for."""
    card: Card | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(name for name in PACKAGES if name not in self.versions)

    def in_words(self) -> str:
        """The packages that the speed of passes depends on."""
        return ", ".join(f"{name} {self.versions[name]}" for name in PACKAGES[:3] if name in self.versions)


def look() -> Found:
    """Looks at the installation; imports torch, which takes seconds, only if everything is there."""
    versions = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    found = Found(versions)
    if found.missing:
        return found
    try:
        import torch

        card = None
        if torch.cuda.is_available():
            free, total = torch.cuda.mem_get_info(0)
            card = Card(torch.cuda.get_device_name(0), torch.cuda.get_device_capability(0), total, free)
    except Exception as error:  # a broken installation fails in many ways
        lines = str(error).strip().splitlines()
        return msgspec.structs.replace(found, problem=lines[0] if lines else type(error).__name__)
    return Found(versions, None, torch.version.cuda, card)


if __name__ == "__main__":
    print(msgspec.json.encode(look()).decode())

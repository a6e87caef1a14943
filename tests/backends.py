"""The tiny models in either engine: a GGUF file for llama.cpp, a folder for torch, of the same weights and words."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import pytest

import tiny

Backend = Literal["llamacpp", "torch"]
Make = Callable[..., Path]
"""Like `tiny.make`, but takes a path without a suffix."""

TORCH: Final = all(importlib.util.find_spec(name) for name in ("torch", "transformers", "bitsandbytes"))
"""Whether the extra `gpu` is installed."""
needs_torch: Final = pytest.mark.skipif(not TORCH, reason="the extra `gpu` is not installed")
FULL: Final = bool(os.environ.get("SPECCHAT_TEST_FULL"))
"""Whether to run what takes an hour, too."""
BOTH: Final = ["llamacpp", pytest.param("torch", marks=needs_torch)]


def maker(backend: Backend) -> Make:
    """What writes the models of a backend."""
    if backend == "llamacpp":
        return lambda path, **given: tiny.make(path.with_name(path.name + ".gguf"), **given)
    import tiny_folder  # brings safetensors

    return tiny_folder.make

"""Requantises a model file with llama.cpp's own quantiser, for formats that no small published file comes in."""

from pathlib import Path
from typing import Final

import llama_cpp

_Q4_0: Final = 2  # LLAMA_FTYPE_MOSTLY_Q4_0 of llama.h


def q4_0(source: Path) -> Path:
    """The path of `source` in Q4_0, written beside it on first use."""
    target = source.with_name(f"{source.stem}-requantised-q4_0.gguf")
    if not target.exists():
        unfinished = target.with_suffix(".unfinished")
        params = llama_cpp.llama_model_quantize_default_params()
        params.ftype = _Q4_0
        params.allow_requantize = True
        assert llama_cpp.llama_model_quantize(str(source).encode(), str(unfinished).encode(), params) == 0
        unfinished.replace(target)
    return target

"""From the words of --against to rivals."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from specchat.bench.rivals import llama_cpp_python, server_modes, transformers_generate
from specchat.bench.rivals.child import Kept
from specchat.bench.rivals.contract import Rival, Setup, ShouldStop
from specchat.bench.rivals.llama_cpp_python import LlamaCppPython
from specchat.bench.rivals.server_program import ServerProgram, program_path
from specchat.bench.rivals.server_url import ServerAtUrl
from specchat.bench.rivals.transformers_generate import Folders, Transformers
from specengine import hardware
from specengine.backends.torch_nf4 import refusals
from specengine.backends.torch_nf4.found import Found, look
from specengine.backends.torch_nf4.options import TorchDevice
from specengine.backends.torch_nf4.vocabulary import HfVocabulary
from specengine.engine_choice import torch_folder
from specengine.errors import EngineError
from specengine.model_folder import read_folder
from specengine.protocol import Load, Loaded


def check(words: Sequence[str], modes: Sequence[str] | None) -> None:
    """Finds out what can be known to be wrong before a model is loaded.

    Raises:
        EngineError: no rival has such a mode, or there is no such program.
    """
    for mode in modes or ():
        if not any(mode.partition(":")[0] in kinds for kinds in _KINDS):
            raise EngineError(
                f"No rival has a mode {mode}; llama-cpp-python has {_joined(llama_cpp_python.KINDS)}, "
                f"transformers has {_joined(transformers_generate.KINDS)}, a llama.cpp server has "
                f"{_joined(server_modes.KINDS)}."
            )
    for word in words:
        if word not in _NAMES and "://" not in word:
            program_path(word)


@contextlib.contextmanager
def rivals(
    words: Sequence[str],
    modes: Sequence[str] | None,
    load: Load,
    loaded: Loaded,
    log_file: Path,
    should_stop: ShouldStop,
) -> Iterator[tuple[Rival, ...]]:
    """The rivals that were asked for; their processes end with the block.

    Args:
        words: "llama-cpp-python", "transformers", URLs of llama.cpp servers, programs that are llama.cpp servers.
        modes: names of modes; each rival runs in those of its kind. None: in its usual ones.
        load, loaded: our engine, whose files and settings they take over.

    Raises:
        EngineError: a rival can't be found, isn't what it should be, serves another model or lacks a mode, or can't
            run what ours does.
        Stopped: `should_stop` returned true.
    """
    if not words:
        yield ()
        return
    with contextlib.closing(Kept()) as kept:
        yield tuple(_rival(word, modes, load, loaded, kept, log_file, should_stop) for word in words)


_ALL_LAYERS: Final = 999
_NAMES: Final = (llama_cpp_python.NAME, transformers_generate.NAME)
_KINDS: Final = (llama_cpp_python.KINDS, transformers_generate.KINDS, server_modes.KINDS)


def _rival(
    word: str,
    modes: Sequence[str] | None,
    load: Load,
    loaded: Loaded,
    kept: Kept,
    log_file: Path,
    should_stop: ShouldStop,
) -> Rival:
    if word == transformers_generate.NAME:
        return Transformers(_folders(load, loaded), kept, log_file, _of_kind(modes, transformers_generate.KINDS))
    setup = _setup(load, loaded)
    if word == llama_cpp_python.NAME:
        return LlamaCppPython(setup, kept, log_file, _of_kind(modes, llama_cpp_python.KINDS))
    if "://" in word:
        return ServerAtUrl(word, setup, should_stop)
    return ServerProgram(word, setup, kept, log_file, _of_kind(modes, server_modes.KINDS))


def _setup(load: Load, loaded: Loaded) -> Setup:
    if loaded.backend != "llama.cpp":
        raise EngineError(
            f"These engines are measured on GGUF files, and {loaded.name} runs in {loaded.backend}: take --engine "
            "llamacpp, or --against transformers."
        )
    return Setup(
        model=Path(load.model),
        draft=Path(load.draft) if load.draft and loaded.draft else None,
        n_ctx=loaded.n_ctx,
        n_vocab=loaded.n_vocab,
        threads=hardware.threads(load.threads)[0],
        gpu_layers=0 if _on_cpu(loaded) else load.gpu_layers or _ALL_LAYERS,
        bf16=load.exact,
    )


def _folders(load: Load, loaded: Loaded) -> Folders:
    folder = torch_folder(load)
    if loaded.backend == "llama.cpp" or folder is None:
        raise EngineError(
            f"transformers is measured on Hugging Face folders, and {loaded.name} runs in {loaded.backend}: take "
            "--engine torch."
        )
    device: TorchDevice = "cpu" if _on_cpu(loaded) else "cuda"
    draft = load.draft_weights or load.draft
    return Folders(
        target=folder,
        draft=Path(draft) if draft and loaded.draft else None,
        n_ctx=loaded.n_ctx,
        threads=hardware.threads(load.threads)[0],
        device=device,
        precision=refusals.precision(look() if device == "cuda" else Found(), device),
        end_of_generation=tuple(sorted(HfVocabulary(read_folder(folder), loaded.n_vocab).end_of_generation)),
    )


def _on_cpu(loaded: Loaded) -> bool:
    return loaded.device.startswith("CPU")


def _of_kind(modes: Sequence[str] | None, kinds: Sequence[str]) -> tuple[str, ...] | None:
    return None if modes is None else tuple(mode for mode in modes if mode.partition(":")[0] in kinds)


def _joined(words: Sequence[str]) -> str:
    return ", ".join(words)

"""Where specchat keeps its files. Nothing is created here except by `ensure`."""

import os
from pathlib import Path

import platformdirs

_NAME = "specchat"


def config_dir() -> Path:
    """Settings written by the user: config.toml, and models.toml laid over the catalogue."""
    return _home("config") or Path(platformdirs.user_config_dir(_NAME, appauthor=False))


def data_dir() -> Path:
    """What must survive: conversations and, unless SPECCHAT_MODELS says otherwise, model files."""
    return _home("data") or Path(platformdirs.user_data_dir(_NAME, appauthor=False))


def models_dir() -> Path:
    """Where pulled model files are kept."""
    named = os.environ.get("SPECCHAT_MODELS")
    return Path(named).expanduser().absolute() if named else data_dir() / "models"


def state_dir() -> Path:
    """What may be lost without harm but should outlive a start: logs, prompt history."""
    return _home("state") or Path(platformdirs.user_state_dir(_NAME, appauthor=False))


def cache_dir() -> Path:
    """What can be made again: measured costs."""
    return _home("cache") or Path(platformdirs.user_cache_dir(_NAME, appauthor=False))


def config_file() -> Path:
    return config_dir() / "config.toml"


def log_file() -> Path:
    """The engine process's log; its last lines explain a crash."""
    return state_dir() / "engine.log"


def chats_file() -> Path:
    """All conversations."""
    return data_dir() / "chats.db"


def rivals_log() -> Path:
    """What other engines print while a bench measures them."""
    return state_dir() / "rivals.log"


def history_file() -> Path:
    """Earlier prompts."""
    return state_dir() / "history.jsonl"


def costs_file() -> Path:
    """Pass costs measured on this machine, per model file."""
    return cache_dir() / "costs.json"


def noise_file() -> Path:
    """Width noise measured on this machine, per model file."""
    return cache_dir() / "width_noise.json"


def memory_speed_file() -> Path:
    """How fast this machine reads memory, the best that was measured."""
    return cache_dir() / "memory_speed.json"


def models_overlays() -> tuple[Path, ...]:
    """Catalogues laid over the built-in one: what SPECCHAT_MODELS_TOML names, then the user's own if there is one."""
    named = os.environ.get("SPECCHAT_MODELS_TOML")
    own = config_dir() / "models.toml"
    return (*([Path(named).expanduser().absolute()] if named else []), *([own] if own.is_file() else []))


def ensure(directory: Path) -> Path:
    """Creates `directory`, readable by its owner alone, and returns it.

    Raises:
        OSError: it can't be created.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _home(part: str) -> Path | None:
    home = os.environ.get("SPECCHAT_HOME")
    return Path(home).expanduser().absolute() / part if home else None

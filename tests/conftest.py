"""What all tests share: nothing of the user's is touched, and real models come through the product's own pull."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

import specengine.backends  # noqa: F401 - says how llama.cpp's threads wait, before a test loads it
from backends import TORCH
from specengine import catalog, download

if not TORCH:
    collect_ignore_glob = ["engine/test_torch_*.py", "app/test_rival_transformers.py", "app/test_bench_own_layers.py"]

# Where the tests run in the background of a shell, ctrl+c is ignored by them and by what they start, unless told anew.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_MIRROR = Path(__file__).parent / "data" / "models-mirror.toml"
_MODELS = Path(os.environ.get("SPECCHAT_TEST_MODELS") or Path(platformdirs.user_cache_dir("specchat-tests")))
_NETWORK = {key: value for key, value in os.environ.items() if key.startswith(("PIP_", "UV_", "HF_"))}
_HOME = Path.home()


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; nothing set by SPECCHAT_…, HF_… or XDG_… reaches the test."""
    home = tmp_path_factory.mktemp("home")
    for key in [key for key in os.environ if key.startswith(("SPECCHAT_", "XDG_", "HF_"))]:
        monkeypatch.delenv(key)
    # No test touches the clipboard of whoever runs it.
    for key in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("SSH_CONNECTION", "a test")
    for key in ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(key, str(home))
    return home


@pytest.fixture(scope="session")
def real_model() -> Callable[[str], Path]:
    """`real_model(name)` is the path of that model's file, pulled on first use and kept between runs.

    Names are those of tests/data/models-mirror.toml. SPECCHAT_TEST_MODELS says where the files are kept.
    """
    models = catalog.load([_MIRROR])

    def path(name: str) -> Path:
        with pytest.MonkeyPatch.context() as restored:
            restored.setenv("HOME", str(_HOME))
            for key, value in _NETWORK.items():
                restored.setenv(key, value)
            return download.pull(models.find(name), _MODELS)

    return path

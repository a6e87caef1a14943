"""Who imports whom: the written contracts, and what really gets loaded by each way to start."""

import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[2]
HEAVY = ("textual", "numpy", "llama_cpp", "huggingface_hub", "jinja2", "torch")


def loaded_by(program: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded at the end of `program`."""
    report = "import atexit, sys; atexit.register(lambda: print('LOADED', *{m.split('.')[0] for m in sys.modules}))\n"
    ended = subprocess.run(
        [sys.executable, "-c", report + program],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return set(ended.stdout.rpartition("LOADED")[2].split())


def test_the_import_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(cache_dir=None) == EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_load_nothing_heavy(flag: str) -> None:
    loaded = loaded_by(f"from specchat.cli import main; main(['{flag}'])")
    assert {"specchat", "click"} <= loaded
    assert not loaded.intersection({*HEAVY, "msgspec", "asyncio"})


def test_one_answer_never_loads_textual_or_the_engines_runtime() -> None:
    loaded = loaded_by("from specchat.cli import main; main(['-p', 'hello', '--offline'])")
    assert {"specchat", "asyncio", "msgspec"} <= loaded
    assert not loaded.intersection({"textual", "llama_cpp", "jinja2", "torch"})


@pytest.mark.parametrize(
    "command",
    ["models list --json", "paths", "doctor", "bench --help", "config show", "complete --help", "help commands"],
)
def test_commands_never_load_textual(command: str) -> None:
    loaded = loaded_by(f"from specchat.cli import main; main({command.split()!r})")
    assert "specchat" in loaded
    assert not loaded.intersection({"textual", "llama_cpp", "torch"})


def test_the_engine_process_loads_no_part_of_the_app() -> None:
    loaded = loaded_by("import specengine.serve, specengine.loading, specengine.engine")
    assert "specengine" in loaded
    assert not loaded.intersection({"specchat", "textual", "click"})

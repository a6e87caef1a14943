"""Installs specchat as the README's first line does, from a built wheel in an empty home, and has it answer.

Needs the `build` package and a package index; everything happens in a temporary folder.
"""

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = "smollm2-135m"


def main() -> None:
    """Exits with the step that failed; prints one line for each that passed."""
    with tempfile.TemporaryDirectory(prefix="specchat-smoke-") as folder:
        wheel, sdist = _built(Path(folder) / "dist")
        _check_contents(wheel, sdist)
        home = Path(folder) / "home"
        home.mkdir()
        specchat = _installed(wheel, home)
        _check_headless(specchat, home)
        _check_real_answer(specchat, home)
    print("packaging: ok")


def install_line() -> str:
    """The README's first command line."""
    blocks = (ROOT / "README.md").read_text(encoding="utf-8").split("```sh\n")
    return blocks[1].splitlines()[0]


def _built(folder: Path) -> tuple[Path, Path]:
    """The wheel, built from the source distribution, and that one."""
    _run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)])
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def _check_contents(wheel: Path, sdist: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"specchat", "specengine"}, f"the wheel would put {tops} into site-packages"
    wanted = {"specengine/models.toml", "specchat/py.typed", "specengine/py.typed"}
    sources = [*(ROOT / "app").rglob("*.tcss"), *(ROOT / "app").rglob("*.py"), *(ROOT / "engine").rglob("*.py")]
    wanted |= {path.relative_to(ROOT).as_posix().partition("/")[2] for path in sources}
    assert wanted <= names, f"the wheel lacks {sorted(wanted - names)}"
    assert any(name.endswith("licenses/LICENSE") for name in names), "the wheel lacks the licence"
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"models.toml", "README.md", "tests/data/models-mirror.toml", "packaging/constraints.txt"}
    assert wanted <= packed, f"the source distribution lacks {sorted(wanted - packed)}"
    print(f"packaging: {wheel.name} and {sdist.name} are complete")


def _installed(wheel: Path, home: Path) -> Path:
    """Runs the README's first line with the wheel in the clone's place; returns the command that it starts."""
    line = install_line()
    assert line.count(" . &&") == 1, f"the README's first line no longer installs the clone: {line}"
    line = line.replace(" . &&", f" '{wheel}' &&")
    steps, _, command = line.rpartition("&& ")
    # What was compiled once is taken from the user's own cache, not from the empty home.
    cache = subprocess.check_output([sys.executable, "-m", "pip", "cache", "dir"], text=True).strip()
    _run(["bash", "-ec", steps.rstrip().removesuffix("&&")], home, {"PIP_CACHE_DIR": cache})
    specchat = Path(command.replace("~", str(home)))
    assert specchat.is_file(), f"the README's first line ends in {command}, which it did not install"
    print("packaging: installed in an empty home")
    return specchat


def _check_headless(specchat: Path, home: Path) -> None:
    assert _run([str(specchat), "--version"], home).startswith("specchat ")
    assert "Usage: specchat" in _run([str(specchat), "--help"], home)
    models = json.loads(_run([str(specchat), "models", "list", "--json"], home))["models"]
    assert any(model["name"] == MODEL and model["path"] is None for model in models)
    places = json.loads(_run([str(specchat), "paths", "--json"], home))
    assert all(Path(place).is_relative_to(home) for place in places.values()), places
    print("packaging: --version, --help, models and paths work")


def _check_real_answer(specchat: Path, home: Path) -> None:
    overlay = {"SPECCHAT_MODELS_TOML": str(ROOT / "tests/data/models-mirror.toml")}
    _run([str(specchat), "models", "pull", MODEL], home, overlay)
    arguments = ["--json", "--temperature", "0", "--max-tokens", "24", "--offline"]
    answer = json.loads(_run([str(specchat), *arguments], home, piped="Say hello."))
    assert answer["text"].strip() and answer["stats"]["emitted"] > 1, answer
    print(f"packaging: {MODEL} answered a pipe: {answer['text'].strip()!r}")


def _run(
    command: Sequence[str], home: Path | None = None, extra: Mapping[str, str] | None = None, piped: str = ""
) -> str:
    """The command's stdout. `home` is an empty HOME, with nothing of the caller's settings but those of pip."""
    environment = dict(os.environ)
    if home is not None:
        environment = {k: v for k, v in environment.items() if not k.startswith(("SPECCHAT_", "XDG_", "VIRTUAL_"))}
        environment["HOME"] = str(home)
    environment |= extra or {}
    done = subprocess.run(command, cwd=ROOT, env=environment, input=piped, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()

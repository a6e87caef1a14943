"""Installs specchat as the README's first line does, from a built wheel in an empty home, and has it answer.

Needs the test extra and a package index; everything happens in a temporary folder.
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

import pexpect
import pyte

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
        _check_chat(specchat, home)
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
    """A pipe on a machine without a model fetches the small one, and is answered."""
    overlay = {"SPECCHAT_MODELS_TOML": str(ROOT / "tests/data/models-mirror.toml")}
    arguments = ["--json", "--temperature", "0", "--max-tokens", "24"]
    answer = json.loads(_run([str(specchat), *arguments], home, overlay, piped="Say hello."))
    assert answer["text"].strip() and answer["stats"]["emitted"] > 1, answer
    assert answer["stats"]["model"] == MODEL
    file = _run([str(specchat), "models", "path", MODEL], home).strip()
    assert Path(file).is_relative_to(home)
    again = json.loads(_run([str(specchat), *arguments, "--offline", "-m", file], home, piped="Say hello."))
    assert again["text"] == answer["text"], (answer, again)
    print(f"packaging: {MODEL} was fetched and answered a pipe: {answer['text'].strip()!r}")


def _check_chat(specchat: Path, home: Path) -> None:
    """The chat opens in a terminal, answers and leaves no process behind."""
    environment = {**_environment(home), "TERM": "xterm-256color"}
    arguments = ["--temperature", "0", "--max-tokens", "24", "Say hello."]
    chat = pexpect.spawn(str(specchat), arguments, env=environment, dimensions=(30, 100), timeout=120)
    screen = pyte.Screen(100, 30)
    stream = pyte.ByteStream(screen)
    while "24/" not in (shown := "\n".join(screen.display)) and "Hello" not in shown:
        stream.feed(chat.read_nonblocking(4096))
    chat.sendcontrol("q")
    chat.expect(pexpect.EOF)
    chat.close()
    assert chat.exitstatus == 0, chat
    print("packaging: the chat opens, answers and quits")


def _run(
    command: Sequence[str], home: Path | None = None, extra: Mapping[str, str] | None = None, piped: str = ""
) -> str:
    """The command's stdout. `home` is an empty HOME, with nothing of the caller's settings but those of pip."""
    environment = (_environment(home) if home else dict(os.environ)) | dict(extra or {})
    done = subprocess.run(command, cwd=ROOT, env=environment, input=piped, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def _environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPECCHAT_", "XDG_", "HF_", "VIRTUAL_"))}
    return {**kept, "HOME": str(home)}


if __name__ == "__main__":
    main()

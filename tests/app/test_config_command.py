"""`specchat config`: what is set and where, and changes that keep the user's file as it was meant."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from specchat import config, config_file
from specchat.config import Config
from specchat.settings_table import SETTINGS, template
from specengine.errors import EngineError

WRITTEN = """# my settings
temperature = 0.5  # lively

[keymap]
# moved
chat.new = "f9"
"chat.help" = "f12"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def specchat(
    home: Path, *arguments: str, typed: str = "", env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "import sys; from specchat.cli import main; main(sys.argv[1:])", *arguments]
    environment = {**os.environ, "SPECCHAT_HOME": str(home), **(env or {})}
    return subprocess.run(command, input=typed, capture_output=True, text=True, env=environment, check=False)


def written(home: Path, text: str) -> Path:
    file = home / "config" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_every_setting_is_explained_and_the_template_sets_nothing(tmp_path: Path) -> None:
    assert list(SETTINGS) == list(Config.__struct_fields__)
    assert config.from_text(template(), tmp_path) == Config()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_examples_of_the_template_are_good(name: str, tmp_path: Path) -> None:
    settings = config.from_text(f"{name} = {SETTINGS[name].example}", tmp_path)
    assert settings.made() == (name,)


def test_the_path_is_shown_and_nothing_is_made(home: Path) -> None:
    ended = specchat(home, "config", "path")
    assert (ended.stdout, ended.returncode) == (f"{home / 'config' / 'config.toml'}\n", 0)
    assert not home.exists()


def test_every_value_is_shown_with_what_makes_it(home: Path) -> None:
    file = written(home, "temperature = 0.5\ntop_k = 3\n")
    ended = specchat(home, "config", "show", "--json", env={"SPECCHAT_TOP_K": "7"})
    shown = json.loads(ended.stdout)
    assert list(shown) == list(Config.__struct_fields__)
    assert shown["temperature"] == {"value": 0.5, "from": str(file)}
    assert shown["top_k"] == {"value": 7, "from": "SPECCHAT_TOP_K"}
    assert shown["seed"] == {"value": None, "from": "default"}
    lines = specchat(home, "config", "show").stdout.splitlines()
    assert len(lines) == len(shown)
    assert [line.split() for line in lines if line.startswith(("temperature", "top_p"))] == [
        ["temperature", "0.5", str(file)],
        ["top_p", "0.8", "default"],
    ]


def test_a_setting_is_set_read_back_and_taken_out(home: Path) -> None:
    file = home / "config" / "config.toml"
    for name, value in (
        ("temperature", "0.25"),
        ("top-k", "4"),
        ("exact", "true"),
        ("stop", "END"),
        ("theme", "ansi"),
    ):
        ended = specchat(home, "config", "set", name, value)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout.endswith(f"in {file}.\n")
    assert config.from_file(file) == Config(temperature=0.25, top_k=4, exact=True, stop=("END",), theme="ansi")
    assert specchat(home, "config", "unset", "top-k").stdout == f"top_k is no longer set in {file}.\n"
    assert specchat(home, "config", "unset", "top-k").stdout == f"top_k was not set in {file}.\n"
    assert config.from_file(file).top_k is None


def test_comments_and_order_stay(home: Path) -> None:
    file = written(home, WRITTEN)
    for arguments in (("set", "temperature", "1"), ("set", "seed", "4"), ("set", "chat.new", "f10")):
        assert specchat(home, "config", *arguments).returncode == 0
    text = file.read_text()
    assert text.startswith("# my settings\ntemperature = 1.0  # lively\n")
    assert "# moved\n" in text and text.index("seed") < text.index("[keymap]")
    assert config.from_file(file) == Config(temperature=1.0, seed=4, keymap={"chat.new": "f10", "chat.help": "f12"})
    for action in ("keymap.chat.new", "chat.help"):
        specchat(home, "config", "unset", action)
    assert config.from_file(file) == Config(temperature=1.0, seed=4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("top-p", "7"), "top-p is 7.0; it must lie between 0 and 1."),
        (("temperature", "hot"), "temperature: expected a number, got text."),
        (("temprature", "1"), "There is no setting called temprature; did you mean temperature?"),
        (("theme", "blue"), "theme: there is none called blue; choose dark, light, ansi, "),
        (("keymap.chat.nwe", "f9"), "keymap: there is no action called chat.nwe; did you mean chat.new?"),
        (("chat.stop", "f12"), "keymap: f12 would do "),
        (("keymap", "chat.new"), "keymap: give one ACTION=KEYS a line."),
    ],
)
def test_a_bad_value_is_one_sentence_and_changes_nothing(home: Path, arguments: tuple[str, str], sentence: str) -> None:
    file = written(home, WRITTEN)
    ended = specchat(home, "config", "set", *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(sentence) and ended.stderr.count("\n") == 1
    assert file.read_text() == WRITTEN
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_is_broken_already_is_not_made_worse(home: Path) -> None:
    file = written(home, "temperature = \n")
    ended = specchat(home, "config", "set", "seed", "1")
    assert ended.returncode == 1 and "is not valid TOML" in ended.stderr
    assert file.read_text() == "temperature = \n"


def test_a_variable_that_wins_is_said(home: Path) -> None:
    ended = specchat(home, "config", "set", "seed", "1", env={"SPECCHAT_SEED": "2"})
    assert ended.returncode == 0 and ended.stderr == "SPECCHAT_SEED is set as well, and wins.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are other there")
def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("seed = 1\n")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    config_file.save(link, {"seed": 2})
    assert link.is_symlink() and real.read_text() == "seed = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name != "posix" or (os.geteuid() == 0 and not Path("/proc/self").exists()), reason="needs /proc")
def test_a_folder_that_cannot_be_written_is_one_sentence() -> None:
    with pytest.raises(EngineError, match=r"^/proc/self/nowhere/config\.toml can't be written: "):
        config_file.save(Path("/proc/self/nowhere/config.toml"), {"seed": 1})


def editor(folder: Path, *texts: str) -> str:
    """An editor that saves these texts, one at each call; "" leaves the file as it is."""
    program = folder / "editor.py"
    program.write_text(
        "import pathlib, sys\n"
        f"texts, calls = {list(texts)!r}, pathlib.Path({str(folder / 'calls')!r})\n"
        "file, call = pathlib.Path(sys.argv[1]), len(calls.read_text()) if calls.exists() else 0\n"
        "calls.write_text('x' * (call + 1))\n"
        f"pathlib.Path({str(folder)!r}, f'seen{{call}}').write_text(file.read_text())\n"
        "text = texts[call]\n"
        "text and file.write_text(text)\n"
    )
    return f"{sys.executable} {program}"


def test_the_editor_opens_the_settings_and_good_ones_are_saved(home: Path, tmp_path: Path) -> None:
    file = written(home, WRITTEN)
    ended = specchat(home, "config", "edit", env={"VISUAL": editor(tmp_path, "seed = 3\n")})
    assert (ended.returncode, ended.stdout) == (0, f"Saved {file}.\n")
    assert (tmp_path / "seen0").read_text() == WRITTEN
    assert file.read_text() == "seed = 3\n"


def test_an_editor_that_is_not_there_is_one_sentence(home: Path) -> None:
    ended = specchat(home, "config", "edit", env={"VISUAL": "/nowhere/vi"})
    assert (ended.returncode, ended.stdout) == (1, "") and ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("/nowhere/vi: Editing failed") and "; set EDITOR to another editor" in ended.stderr


def test_the_first_edit_starts_from_all_settings_explained(home: Path, tmp_path: Path) -> None:
    ended = specchat(home, "config", "edit", env={"VISUAL": editor(tmp_path, "")})
    assert ended.returncode == 0 and ended.stdout.endswith("is as it was.\n")
    assert (tmp_path / "seen0").read_text() == template()
    assert not home.exists()


def test_a_bad_edit_is_said_and_can_be_mended(home: Path, tmp_path: Path) -> None:
    file = written(home, WRITTEN)
    program = editor(tmp_path, "seed = -1\n", '[keymap]\n"chat.new" = "x"\n', "seed = 1\n")
    ended = specchat(home, "config", "edit", typed="y\ny\n", env={"VISUAL": program})
    assert ended.returncode == 0 and file.read_text() == "seed = 1\n"
    assert "seed is -1; it must lie between" in ended.stderr and "x types into the prompt" in ended.stderr
    assert (tmp_path / "seen1").read_text() == "seed = -1\n"


def test_a_bad_edit_that_is_given_up_changes_nothing(home: Path, tmp_path: Path) -> None:
    file = written(home, WRITTEN)
    ended = specchat(home, "config", "edit", typed="n\n", env={"VISUAL": editor(tmp_path, "nonsense")})
    assert ended.returncode == 1 and ended.stderr.endswith(f"{file} is as it was.\n")
    assert file.read_text() == WRITTEN


def test_the_keys_are_listed_with_their_actions_as_they_hold(home: Path) -> None:
    written(home, WRITTEN)
    rows = [line.split(maxsplit=2) for line in specchat(home, "config", "keys").stdout.splitlines()]
    assert ["chat.new", "f9", "New chat"] in rows and ["chat.help", "f12", "Help"] in rows

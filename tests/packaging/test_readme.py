"""The README says what works: its commands exist, and its first two lines are the ones that are run in checks."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from specchat import cli, config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> list[list[str]]:
    """The arguments of every example that starts specchat, from the README and from --help."""
    examples = "\n".join(blocks("sh")[2:]) + CliRunner().invoke(cli.chat, ["--help"]).output
    lines = re.findall(r"^\s*(?:[\w ]+ \| )?(specchat .*)$", examples, re.MULTILINE)
    return [shlex.split(re.split(r" {2,}| > ", line.strip())[0], comments=True)[1:] for line in lines]


def test_the_first_line_installs_apart_from_everything_else_and_starts_a_chat() -> None:
    create, install, start = blocks("sh")[0].strip().split(" && ")
    assert create == "python3 -m venv ~/.specchat"
    assert install == "~/.specchat/bin/pip install -c packaging/constraints.txt ."
    assert start == "~/.specchat/bin/specchat"


def test_the_second_line_is_what_ci_runs() -> None:
    script = (ROOT / ".ci/run").read_text()
    (extraction,) = re.findall(r"^line=\$\((.*)\)$", script, re.MULTILINE)
    line = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert line == blocks("sh")[1]
    assert line.endswith(" && .venv/bin/python packaging/check.py\n")


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_example_is_understood(arguments: list[str]) -> None:
    if arguments and arguments[0] in cli.SUBCOMMANDS:
        ended = CliRunner().invoke(cli.subcommand(arguments[0]), [*arguments[1:], "--help"])
        assert ended.exit_code == 0
        return
    context = cli.chat.make_context("specchat", list(arguments))
    config.from_flags(context.params)


def test_there_are_examples_to_check() -> None:
    assert len(commands()) > 15


def test_the_example_of_a_configuration_is_valid(tmp_path: Path) -> None:
    (example,) = blocks("toml")
    (tmp_path / "config.toml").write_text(example)
    settings = config.from_file(tmp_path / "config.toml")
    for name, value in tomllib.loads(example).items():
        assert getattr(settings, name) == value


def test_the_constraints_pin_every_dependency_within_its_bounds() -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "packaging/constraints.txt").read_text().splitlines()
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines if "==" in line)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "\n## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

"""Copying, with programs of our own on the PATH in place of the system's."""

import base64
import os
import re
import subprocess
from pathlib import Path

import pytest

from specchat import clipboard

TEXT = "日本語 🙂 [/b]\n\tx = 1\n"


class Programs:
    """A folder of fake programs that write down what they were given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, body: str = 'cat > "$0.taken"\necho "$@" > "$0.arguments"\n') -> None:
        file = self.folder / name
        file.write_text(f"#!/bin/sh\n{body}")
        file.chmod(0o755)

    def taken(self, name: str) -> bytes:
        return (self.folder / f"{name}.taken").read_bytes()

    def arguments(self, name: str) -> str:
        return (self.folder / f"{name}.arguments").read_text().strip()

    def environment(self, **more: str) -> dict[str, str]:
        return {"PATH": f"{self.folder}{os.pathsep}/usr/bin{os.pathsep}/bin", **more}


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


@pytest.mark.parametrize(
    ("platform", "more", "program", "arguments"),
    [
        ("darwin", {}, "pbcopy", ""),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, "wl-copy", ""),
        ("linux", {"DISPLAY": ":0"}, "xclip", "-selection clipboard -in"),
        ("linux", {"DISPLAY": ":0"}, "xsel", "--clipboard --input"),
        ("linux", {"TERMUX_VERSION": "0.118"}, "termux-clipboard-set", ""),
    ],
)
def test_the_systems_own_program_takes_the_text_as_it_is(
    programs: Programs, platform: str, more: dict[str, str], program: str, arguments: str
) -> None:
    """47. A native clipboard first: an escape sequence alone may fail in silence."""
    programs.add(program)
    assert clipboard.copied_natively(TEXT, programs.environment(**more), platform) == program
    assert programs.taken(program) == TEXT.encode()
    assert programs.arguments(program) == arguments


@pytest.mark.parametrize(
    ("platform", "more"), [("win32", {}), ("linux", {"WSL_DISTRO_NAME": "Ubuntu", "DISPLAY": ":0"})]
)
def test_windows_takes_every_character_too(programs: Programs, platform: str, more: dict[str, str]) -> None:
    """48. Not decoded as Latin-1."""
    programs.add("clip.exe")
    programs.add("xclip")
    assert clipboard.copied_natively(TEXT, programs.environment(**more), platform) == "clip.exe"
    assert programs.taken("clip.exe") == TEXT.encode("utf-16-le")


def test_a_program_that_fails_leaves_it_to_the_next_one(programs: Programs) -> None:
    programs.add("wl-copy", "exit 1\n")
    programs.add("xclip", "cat > /dev/null; exit 3\n")
    programs.add("xsel")
    environment = programs.environment(WAYLAND_DISPLAY="wayland-0", DISPLAY=":0")
    assert clipboard.copied_natively(TEXT, environment, "linux") == "xsel"
    assert programs.taken("xsel") == TEXT.encode()


def test_a_program_that_hangs_is_given_up(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "PATIENCE_S", 0.2)
    programs.add("xclip", "exec sleep 60\n")
    assert clipboard.copied_natively(TEXT, programs.environment(DISPLAY=":0"), "linux") is None


def test_a_program_that_lives_on_to_serve_the_text_keeps_nobody_waiting(programs: Programs) -> None:
    """xclip forks, and its child holds on to whatever output it was given."""
    programs.add("xclip", 'cat > "$0.taken"\n(sleep 5) &\nexit 0\n')
    environment = programs.environment(DISPLAY=":0")
    assert clipboard.copied_natively(TEXT, environment, "linux") == "xclip"
    assert programs.taken("xclip") == TEXT.encode()


def test_without_a_display_or_a_program_nothing_is_claimed(programs: Programs) -> None:
    programs.add("xclip")
    assert clipboard.copied_natively(TEXT, programs.environment(), "linux") is None
    assert clipboard.copied_natively(TEXT, {"PATH": "/nowhere", "DISPLAY": ":0"}, "linux") is None


@pytest.mark.parametrize("name", ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"])
def test_over_ssh_the_remote_machines_clipboard_is_left_alone(programs: Programs, name: str) -> None:
    """49. The terminal in front of the user is on another machine; the escape sequence gets there."""
    programs.add("xclip")
    programs.add("pbcopy")
    environment = programs.environment(DISPLAY="localhost:10.0", **{name: "1"})
    assert clipboard.copied_natively(TEXT, environment, "linux") is None
    assert clipboard.copied_natively(TEXT, environment, "darwin") is None


def test_the_escape_sequence_holds_the_text_in_utf_8() -> None:
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", clipboard.sequence(TEXT, {}))
    assert found and base64.b64decode(found[1]).decode() == TEXT


def test_inside_tmux_it_is_said_to_tmux_and_to_the_terminal_around_it() -> None:
    plain = clipboard.sequence(TEXT, {})
    both = clipboard.sequence(TEXT, {"TMUX": "/tmp/tmux-0/default,1,0"})
    assert both == plain + "\x1bPtmux;\x1b" + plain + "\x1b\\"


def test_only_what_is_known_is_claimed() -> None:
    assert clipboard.told("x" * 1234, "xclip") == "Copied 1,234 characters."
    assert clipboard.told("x", "pbcopy") == "Copied 1 character."
    unsure = clipboard.told("abc", None)
    assert unsure.startswith("Sent 3 characters to the terminal's clipboard; no answer comes back")
    assert "more than many terminals take" not in unsure
    assert "more than many terminals take" in clipboard.told("x" * 100_000, None)


def test_half_a_character_does_not_keep_the_rest_from_being_copied(programs: Programs) -> None:
    programs.add("pbcopy")
    assert clipboard.copied_natively("a\ud83db", programs.environment(), "darwin") == "pbcopy"
    assert programs.taken("pbcopy") == b"a?b"
    assert "YT9i" in clipboard.sequence("a\ud83db", {})


def test_the_program_outlives_a_ctrl_c_in_the_terminal(programs: Programs) -> None:
    programs.add("xclip", 'cat > "$0.taken"\nps -o pgid= -p $$ | tr -d " " > "$0.arguments"\n')
    assert clipboard.copied_natively("x", programs.environment(DISPLAY=":0"), "linux") == "xclip"
    own = subprocess.run(["ps", "-o", "pgid=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
    assert programs.arguments("xclip") != own.stdout.strip()

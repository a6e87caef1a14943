"""Copying: by the system's own program where there is one, by an escape sequence to the terminal where there is not."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

PATIENCE_S: Final = 3.0
"""A clipboard program that takes longer is given up."""
_LONGEST_SEQUENCE: Final = 74_994
"""Base64 characters that terminals with a limit take at least."""


def copied_natively(text: str, environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str | None:
    """Hands the text to the system's clipboard program and returns that program's name; None where none took it.

    Blocks until it did, so it belongs into a thread. Over SSH nothing is tried: that clipboard is on the wrong machine.
    """
    for program, *arguments in programs(environment, platform):
        path = shutil.which(program, path=environment.get("PATH"))
        if path is None:
            continue
        encoding = "utf-16-le" if program.startswith("clip") else "utf-8"
        try:
            # The X11 and Wayland programs live on to serve the text: they must not hold a pipe of ours, nor die of a
            # ctrl+c that is meant for us.
            ended = subprocess.run(
                [path, *arguments],
                input=text.encode(encoding, "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE_S,
                check=False,
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if ended.returncode == 0:
            return program
    return None


def programs(environment: Mapping[str, str], platform: str) -> Iterator[Sequence[str]]:
    """The commands to try, best first; each reads the text from stdin."""
    if over_ssh(environment):
        return
    if platform == "win32":
        yield ("clip.exe",)
    elif platform == "darwin":
        yield ("pbcopy",)
    if "WSL_DISTRO_NAME" in environment or "WSL_INTEROP" in environment:
        yield ("clip.exe",)
    if "TERMUX_VERSION" in environment:
        yield ("termux-clipboard-set",)
    if environment.get("WAYLAND_DISPLAY"):
        yield ("wl-copy",)
    if environment.get("DISPLAY"):
        yield ("xclip", "-selection", "clipboard", "-in")
        yield ("xsel", "--clipboard", "--input")


def over_ssh(environment: Mapping[str, str] = os.environ) -> bool:
    return any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"))


def sequence(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """The escape sequence that asks the terminal to take the text (OSC 52). Inside tmux it is said twice: to tmux,
    which may pass it on, and through tmux to the terminal around it."""
    plain = f"\x1b]52;c;{base64.b64encode(text.encode('utf-8', 'replace')).decode()}\x07"
    if not environment.get("TMUX"):
        return plain
    return plain + "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def told(text: str, program: str | None) -> str:
    """What can truthfully be said about a copy."""
    size = f"{len(text):,} characters" if len(text) != 1 else "1 character"
    if program is not None:
        return f"Copied {size}."
    much = (
        " That is more than many terminals take."
        if len(text.encode("utf-8", "replace")) * 4 / 3 > _LONGEST_SEQUENCE
        else ""
    )
    return (
        f"Sent {size} to the terminal's clipboard; no answer comes back, so look whether they arrived.{much} "
        "To select with the terminal itself, hold shift (option in iTerm)."
    )

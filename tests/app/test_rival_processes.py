"""Rivals' processes: none outlives the bench, and they make room for each other."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rivals import ended, never
from specchat.bench.rivals import child, leash
from specchat.bench.rivals.child import Child, Kept
from specchat.bench.rivals.patience import patiently
from specengine import hardware
from specengine.errors import EngineError, Stopped

TELLS_ITS_ID = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"


def leashed(folder: Path, program: str = TELLS_ITS_ID) -> Child:
    command = (sys.executable, "-c", program, str(folder / "pid"))
    return Child(leash.__name__, command, folder / "log")


def id_in(file: Path) -> int:
    for _ in range(1200):
        if file.exists() and (text := file.read_text()):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the command did not start")


def test_a_leashed_command_ends_with_its_child(tmp_path: Path) -> None:
    running = leashed(tmp_path)
    pid = id_in(tmp_path / "pid")
    assert running.alive
    running.close()
    assert not running.alive
    assert ended(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_leashed_command_ends_even_if_whoever_started_it_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from test_rival_processes import leashed\n"
        "leashed(Path(sys.argv[1])); time.sleep(60)"
    )
    here = Path(__file__)
    starter = subprocess.Popen(
        (sys.executable, "-c", program, str(tmp_path), str(here.parent), str(here.parents[1])),
    )
    pid = id_in(tmp_path / "pid")
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    assert ended(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_ctrl_c_in_the_terminal_does_not_reach_a_rival(tmp_path: Path) -> None:
    running = leashed(tmp_path)
    try:
        assert os.getpgid(id_in(tmp_path / "pid")) != os.getpgid(0)
    finally:
        running.close()


def test_what_a_command_prints_goes_to_the_log_and_says_why_it_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    running = leashed(tmp_path, "import sys; print('out', flush=True); sys.exit('no room left')")
    assert running.last_words() == " (no room left)"
    assert not running.alive
    running.close()
    assert "out" in (tmp_path / "log").read_text()
    assert capfd.readouterr() == ("", "")


def test_a_command_that_is_none_is_named(tmp_path: Path) -> None:
    running = Child(leash.__name__, (str(tmp_path / "missing"),), tmp_path / "log")
    assert "missing can't be started: No such file" in running.last_words()
    running.close()


def test_rivals_run_as_their_own_users_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_SPEC_TYPE", "ngram-mod")
    monkeypatch.setenv("GOMP_SPINCOUNT", "5000")
    assert not {"LLAMA_ARG_SPEC_TYPE", "GOMP_SPINCOUNT"} & set(child._environment())
    monkeypatch.setenv("GOMP_SPINCOUNT", "77")
    assert child._environment()["GOMP_SPINCOUNT"] == "77"


class Thing:
    """What a rival keeps running."""

    def __init__(self, memory: dict[str, int]) -> None:
        self.alive = True
        self._memory = memory
        memory["free"] -= 100

    def close(self) -> None:
        self.alive = False
        self._memory["free"] += 100


def test_processes_are_kept_until_memory_is_short_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = {"free": 250}
    monkeypatch.setattr(hardware, "available_memory", lambda: memory["free"])
    kept, things = Kept(), []
    for mode in ("a", "b", "c"):
        kept.make_room(100, "One more")
        things.append(Thing(memory))
        kept.keep("rival", mode, things[-1])
    assert [thing.alive for thing in things] == [False, True, True]
    assert kept.find("rival", "a", Thing) is None
    assert kept.find("rival", "b", Thing) is things[1]
    things[1].alive = False
    assert kept.find("rival", "b", Thing) is None
    with pytest.raises(EngineError, match=r"One more needs about 0\.5 GB of memory beside our engine"):
        kept.make_room(5 * 10**8, "One more")
    kept.close()
    assert not any(thing.alive for thing in things)


def test_waiting_gives_the_result_or_what_was_raised() -> None:
    assert patiently(lambda: 7, never, 5, lambda: None) == 7
    with pytest.raises(ValueError, match="seven"):
        patiently(lambda: int("seven"), never, 5, lambda: None)


@pytest.mark.parametrize(("stop", "limit_s", "raised"), [(True, 60, Stopped), (False, 0.15, TimeoutError)])
def test_waiting_ends_on_ctrl_c_and_at_its_limit_and_abandons_the_work(
    stop: bool, limit_s: float, raised: type[Exception]
) -> None:
    abandoned = threading.Event()
    with pytest.raises(raised):
        patiently(lambda: abandoned.wait(20), lambda: stop, limit_s, abandoned.set)
    assert abandoned.is_set()

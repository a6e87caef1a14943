"""`specchat models`, run as users run it."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from model_server import Hub, model_bytes, serving
from specchat.models_command import ProgressLine, models
from specengine.transfer import PullProgress

CONTENT = model_bytes()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server with one model, and a catalogue that adds it."""
    overlay = tmp_path / "overlay.toml"
    overlay.write_text(
        '[models.tiny]\nlicence = "MIT"\n[models.tiny.gguf]\nfile = "model.gguf"\nrepo = "owner/models"\n'
        'revision = "abc123"\n'
    )
    monkeypatch.setenv("SPECCHAT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPECCHAT_MODELS_TOML", str(overlay))
    with serving(Hub(CONTENT)) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


def run(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(models, arguments, input=answer)


def test_pull_prints_the_path_alone_on_stdout_and_progress_on_stderr(hub: Hub, tmp_path: Path) -> None:
    result = run("pull", "tiny")
    path = tmp_path / "home" / "data" / "models" / "model.gguf"
    assert (result.exit_code, result.stdout) == (0, f"{path}\n")
    assert path.read_bytes() == CONTENT
    assert "tiny: asking 127.0.0.1" in result.stderr
    assert "\r" not in result.stderr


def test_specchat_models_moves_the_folder(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECCHAT_MODELS", str(tmp_path / "elsewhere"))
    assert run("pull", "tiny").stdout == f"{tmp_path / 'elsewhere' / 'model.gguf'}\n"


def test_path_tells_where_a_model_is_or_how_to_get_it(hub: Hub) -> None:
    missing = run("path", "tiny")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert missing.stderr == "tiny is not here; `specchat models pull tiny` fetches it.\n"
    pulled = run("pull", "tiny").stdout
    assert run("path", "Tiny").stdout == pulled
    assert json.loads(run("path", "tiny", "--json").stdout) == {"name": "tiny", "path": pulled.strip()}
    assert json.loads(run("pull", "tiny", "--json").stdout) == {"name": "tiny", "path": pulled.strip()}


def test_a_path_to_a_model_file_is_its_own_path(hub: Hub, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(CONTENT)
    assert run("path", str(own)).stdout == f"{own}\n"
    assert run("pull", str(own), "--offline").stdout == f"{own}\n"
    refused = run("rm", str(own), "--yes")
    assert (refused.exit_code, own.exists()) == (1, True)


def test_offline_pulls_only_what_is_here(hub: Hub) -> None:
    refused = run("pull", "tiny", "--offline")
    assert (refused.exit_code, hub.asked) == (1, [])
    assert refused.stderr.startswith("tiny is not here and the network is switched off")
    run("pull", "tiny")
    assert run("pull", "tiny", "--offline").exit_code == 0


@pytest.mark.parametrize("command", ["pull", "path", "rm"])
def test_an_unknown_name_is_one_sentence(hub: Hub, command: str) -> None:
    result = run(command, "tinny")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "There is no model called 'tinny'; did you mean tiny? `specchat models list` shows them all.\n"
    )


def test_a_failed_pull_says_why_and_what_else_there_is(hub: Hub) -> None:
    hub.status = 404
    result = run("pull", "tiny")
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith("tiny can't be fetched. 127.0.0.1:")
    assert "it doesn't have the file. smollm2-135m can be had from the package index; or put model.gguf into " in last


def test_rm_asks_first_and_deletes_only_then(hub: Hub) -> None:
    path = Path(run("pull", "tiny").stdout.strip())
    assert run("rm", "tiny", answer="n\n").exit_code == 1
    assert path.exists()
    unanswered = run("rm", "tiny", answer="")
    assert unanswered.exit_code == 1 and "-y deletes it without a question" in unanswered.stderr
    done = run("rm", "tiny", answer="y\n")
    assert (done.exit_code, path.exists()) == (0, False)
    assert json.loads(run("rm", "tiny", "-y", "--json").stdout) == {"name": "tiny", "freed": 0}
    again = run("rm", "tiny", "--yes")
    assert (again.exit_code, again.stderr) == (0, "tiny is not here.\n")


def test_list_shows_every_model_and_what_is_here(hub: Hub) -> None:
    run("pull", "tiny")
    lines = run("list").stdout.splitlines()
    assert len(lines) == 15
    assert [line.split() for line in lines if line.startswith("tiny ")] == [["tiny", "1.0", "MB", "here", "MIT"]]
    assert sum("best for this machine" in line for line in lines) == 1


def test_list_as_json_is_json_and_asks_no_server(hub: Hub) -> None:
    answer = json.loads(run("list", "--json").stdout)
    rows = {row["name"]: row for row in answer["models"]}
    assert (len(rows), answer["default"]) == (15, "smollm2-135m")
    assert answer["best"] in rows
    assert rows["tiny"]["path"] is None
    assert rows["qwen3-8b"]["draft"] == "qwen3-0.6b"
    assert hub.asked == []


def test_a_wrong_overlay_is_one_sentence(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "overlay.toml").write_text("[models")
    result = run("list")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"The catalogue {tmp_path / 'overlay.toml'} is not valid TOML")


@pytest.mark.skipif(sys.platform == "win32", reason="signals a process")
def test_ctrl_c_keeps_what_arrived_and_says_so(hub: Hub, tmp_path: Path) -> None:
    hub.stalls = [400_000]
    process = subprocess.Popen(
        [sys.executable, "-c", "from specchat.models_command import models; models()", "pull", "tiny"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stderr
    while "0.4 MB of 1.0 MB" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "Stopped; 0.4 MB of tiny are kept, and the next pull goes on from there."
    assert (tmp_path / "home" / "data" / "models" / "model.gguf.part").stat().st_size > 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals a process")
def test_ctrl_c_during_the_pull_that_a_pipe_started_keeps_what_arrived_and_says_so(hub: Hub, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.toml"
    overlay.write_text('default = "tiny"\n' + overlay.read_text())
    hub.stalls = [400_000]
    command = [sys.executable, "-c", "from specchat.cli import main; main(['-p', 'hi'])"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ)
    part = tmp_path / "home" / "data" / "models" / "model.gguf.part"
    while not part.exists() or part.stat().st_size < 400_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.strip().splitlines() == [
        "No model is installed yet: fetching tiny.",
        "Stopped; 0.4 MB of tiny are kept, and the next pull goes on from there.",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_rewritten_and_cleared() -> None:
    stream = Terminal()
    line = ProgressLine("tiny", stream)
    line(PullProgress("downloading", "host", 50 * 10**6, 100 * 10**6, 10e6))
    line(PullProgress("checking", "host", 1, 100))
    line.end()
    first, second, blank, rest = stream.getvalue().split("\r")[1:]
    assert first == "tiny: 50% 50 MB of 100 MB, 10.0 MB/s, 5 s left, from host"
    assert second == "tiny: checking 1%".ljust(len(first))
    assert (blank.strip(), rest) == ("", "")
    assert "\n" not in stream.getvalue()


def test_a_stalled_pull_shows_no_speed() -> None:
    stream = io.StringIO()
    ProgressLine("tiny", stream)(PullProgress("downloading", "host", 5 * 10**6, 10**7, None, stalled=True))
    assert stream.getvalue() == "tiny: 50% 5.0 MB of 10 MB, stalled, from host\n"


def test_elsewhere_a_line_is_written_for_each_tenth() -> None:
    stream = io.StringIO()
    line = ProgressLine("tiny", stream)
    for done in range(1001):
        line(PullProgress("downloading", "host", done * 10**6, 10**9))
    assert len(stream.getvalue().splitlines()) == 11

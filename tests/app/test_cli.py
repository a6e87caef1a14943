"""The command line as a user meets it: real processes, with tests/scripted_engine.py in the engine's place."""

import json
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from specchat import cli
from specchat.engine_log import EngineLog
from specengine import __version__

SPECCHAT = (sys.executable, str(Path(__file__).with_name("scripted_specchat.py")))


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(model_file(tmp_path, "toy"))


def model_file(folder: Path, name: str) -> Path:
    """A GGUF file with nothing in it: enough to be found, and the scripted engine needs no more."""
    path = folder / f"{name}.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    return path


def test_it_also_runs_as_a_module() -> None:
    ended = subprocess.run([sys.executable, "-m", "specchat", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in ended.stdout


def specchat(*arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Ended:
    """Runs to the end; without `stdin`, as from a terminal."""
    terminal, far = pty.openpty()
    try:
        process = subprocess.Popen(
            (*SPECCHAT, *arguments),
            stdin=far if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        out, err = process.communicate(stdin, timeout=120)
    finally:
        os.close(terminal)
        os.close(far)
    return Ended(process.returncode, out.decode(), err.decode())


def started(arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        (*SPECCHAT, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_version() -> None:
    for flag in ("-V", "--version"):
        assert specchat(flag) == Ended(0, f"specchat {__version__}\n", "")


def test_help_teaches_by_example_and_names_every_flag_and_command() -> None:
    ended = specchat("-h")
    assert ended == specchat("--help")
    assert ended.code == 0 and ended.err == ""
    for word in (
        *("-p", "-m", "--model", "--draft", "--spec", "--lookup", "--no-lookup", "--gamma", "--temperature", "--top-k"),
        *("--top-p", "--min-p", "--seed", "--coupling", "--max-tokens", "--ctx", "--threads", "-s", "--system", "-f"),
        *(
            "--file",
            "--offline",
            "--stats",
            "--json",
            "--exact",
            "-V",
            "--version",
            "models",
            "complete",
            "bench",
            "doctor",
            "paths",
            "config",
            "--theme",
            "--no-mouse",
        ),
        'git diff | specchat -p "Review this"',
    ):
        assert word in ended.out, word


@pytest.mark.parametrize(
    "command",
    [
        ["models"],
        ["models", "pull"],
        ["complete"],
        ["bench"],
        ["doctor"],
        ["paths"],
        ["config"],
        ["help"],
        ["help", "commands"],
    ],
)
def test_every_command_explains_itself(command: list[str]) -> None:
    ended = specchat(*command, "-h")
    assert ended.code == 0 and ended.err == ""
    assert ended.out.startswith(f"Usage: specchat {' '.join(command)} ")


def test_an_answer_is_all_that_reaches_stdout(model: str) -> None:
    assert specchat("-m", model, "-p", "say one two three") == Ended(0, "one two three\n", "")


def test_what_the_engine_prints_does_not_reach_the_user(model: str) -> None:
    assert specchat("-m", model, "-p", "print clean") == Ended(0, "clean\n", "")


def test_piped_text_is_the_prompt(model: str) -> None:
    assert specchat("-m", model, stdin=b"say piped\n") == Ended(0, "piped\n", "")


def test_piped_text_stands_above_the_prompt_however_it_is_given(model: str) -> None:
    for arguments in (["-p", "request"], ["request"]):
        ended = specchat("-m", model, *arguments, stdin="döcument\n".encode())
        assert r"content='döcument\n\nrequest'" in ended.out


def test_files_stand_above_all_in_fences(model: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.md").write_text("````\nfenced\n````")
    files = ("-f", str(tmp_path / "a.py"), "-f", str(tmp_path / "b.md"))
    ended = specchat("-m", model, *files, "-p", "request", stdin=b"piped")
    wanted = "a.py:\n```\nx = 1\n```\n\nb.md:\n`````\n````\nfenced\n````\n`````\n\npiped\n\nrequest"
    assert f"content={wanted!r}" in ended.out


def test_settings_reach_the_engine(model: str) -> None:
    ended = specchat(
        *("-m", model, "-p", "request", "-s", "Be brief", "--temperature", "0", "--top-k", "5", "--top-p", "0.5"),
        *("--min-p", "0.1", "--seed", "7", "--coupling", "maximal", "--max-tokens", "9", "--spec", "off"),
        *("--gamma", "3", "--no-lookup"),
        env={"SPECCHAT_REPETITION_PENALTY": "1.5", "SPECCHAT_TOP_K": "1"},
    )
    for said in (
        "Message(role='system', content='Be brief'",
        "Sampling(temperature=0.0, top_k=5, top_p=0.5, min_p=0.1, repetition_penalty=1.5,",
        "seed=7, coupling='maximal')",
        "Limits(max_tokens=9, stop=())",
        "speculation='off', gamma=3, lookup=False",
    ):
        assert said in ended.out


def test_a_model_without_a_chat_template_goes_on_with_the_text_as_it_is(tmp_path: Path) -> None:
    ended = specchat("-m", str(model_file(tmp_path, "base")), "-p", "request", "-s", "System")
    assert "Raw(text='System\\n\\nrequest')" in ended.out


def test_a_draft_model_is_used_where_it_is_there_and_missed_aloud_where_it_was_asked_for(
    model: str, tmp_path: Path
) -> None:
    draft = str(model_file(tmp_path, "small"))
    answer = json.loads(specchat("-m", model, "--draft", draft, "-p", "say hello", "--json").out)
    assert answer["stats"]["draft"] == "small"
    ended = specchat("-m", model, "--draft", "qwen2.5-coder-0.5b", "-p", "say hello")
    assert ended.out == "hello\n" and ended.err.count("\n") == 1
    assert "The draft model qwen2.5-coder-0.5b is not installed" in ended.err
    assert specchat("-m", model, "--draft", "none", "-p", "say hello") == Ended(0, "hello\n", "")


def test_without_a_seed_every_start_draws_its_own(model: str) -> None:
    seeds = {re.findall(r"seed=(\d+)", specchat("-m", model, "-p", "request").out)[0] for _ in range(3)}
    assert len(seeds) == 3


def test_json_holds_the_text_and_the_figures(model: str) -> None:
    ended = specchat("-m", model, "-p", "say one two", "--json", "--seed", "5")
    answer = json.loads(ended.out)
    assert list(answer) == ["text", "stats"] and ended.err == ""
    assert answer["text"] == "one two"
    stats = answer["stats"]
    assert (stats["emitted"], stats["target_passes"], stats["reason"], stats["seed"]) == (2, 2, "end", 5)
    assert (stats["drafted"], stats["accepted"], stats["acceptance"]) == (4, 3, 0.75)
    assert stats["sources"] == {"lookup": {"rounds": 1, "drafted": 4, "accepted": 3}}
    assert stats["tokens_per_s"] == 2.0


def test_figures_go_to_stderr(model: str) -> None:
    ended = specchat("-m", model, "-p", "say one two", "--stats")
    assert ended.out == "one two\n"
    assert "2 tokens in 2 target passes, 2.0 tokens/s" in ended.err
    assert "3 of 4 drafted tokens accepted (75%)" in ended.err


def test_a_notice_goes_to_stderr(model: str) -> None:
    assert specchat("-m", model, "-p", "notice turns dropped") == Ended(0, "noticed\n", "turns dropped\n")


@pytest.mark.parametrize("piped", [b"", b"\n \n"])
def test_an_empty_input_is_wrong_usage(model: str, piped: bytes) -> None:
    ended = specchat("-m", model, stdin=piped)
    assert ended.code == 2 and ended.out == ""
    assert "There is nothing to answer: the input is empty." in ended.err


def test_the_chat_needs_a_terminal_to_draw_on(model: str) -> None:
    terminal, far = pty.openpty()
    chat = subprocess.Popen((*SPECCHAT, "-m", model), stdin=far, stdout=far, stderr=subprocess.PIPE)
    _, err = chat.communicate(timeout=120)
    os.close(terminal)
    os.close(far)
    assert chat.returncode == 2 and b"The chat is drawn on stderr" in err


def test_without_a_terminal_there_must_be_a_prompt() -> None:
    ended = specchat()
    assert ended.code == 2
    assert "give a prompt with -p TEXT, or pipe text in." in ended.err


def test_bytes_that_are_no_text_are_replaced_and_said_once(model: str) -> None:
    ended = specchat("-m", model, stdin=b"caf\xe9 \xff\nrequest")
    assert r"content='caf� �\nrequest'" in ended.out
    assert ended.err.count("\n") == 1 and "not valid UTF-8" in ended.err


def test_a_console_that_lacks_characters_shows_the_others(model: str) -> None:
    ended = specchat("-m", model, "-p", "say caf\u00e9 \u65e5\u672c done", env={"PYTHONIOENCODING": "ascii"})
    assert ended == Ended(0, "caf? ?? done\n", "")


@pytest.mark.parametrize("where", ["file", "stdin"])
def test_binary_data_is_refused(model: str, tmp_path: Path, where: str) -> None:
    (tmp_path / "image.png").write_bytes(b"\x89PNG\x00\xff")
    if where == "file":
        ended = specchat("-m", model, "-f", str(tmp_path / "image.png"), "-p", "what is this?")
    else:
        ended = specchat("-m", model, stdin=b"\x89PNG\x00\xff")
    assert (ended.code, ended.out) == (1, "") and "is not a text file" in ended.err


def test_a_megabyte_of_text_comes_through(model: str) -> None:
    text = ("word " * 200_000).encode()
    assert specchat("-m", model, "-p", "length", stdin=text).out == f"{len(text) + len('length') + 2}\n"


def test_a_prompt_that_does_not_fit_is_one_sentence(model: str) -> None:
    assert specchat("-m", model, "-p", "refuse") == Ended(1, "", "The prompt does not fit. Raise --ctx.\n")


def test_a_crash_is_one_sentence_and_keeps_what_was_printed(model: str) -> None:
    ended = specchat("-m", model, "-p", "abort")
    assert ended.code == 1 and ended.err.count("\n") == 1
    assert "SIGABRT" in ended.err and "GGML_ASSERT(the script says so) failed" in ended.err


def test_a_model_that_does_not_load_is_one_sentence(tmp_path: Path) -> None:
    ended = specchat("-m", str(model_file(tmp_path, "fails")), "-p", "say hello")
    assert ended == Ended(1, "", "This file is no model. Choose another one.\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-m", "qwen2.5-coder-1.5"], "did you mean qwen2.5-coder-1.5b"),
        (["-m", "qwen2.5-coder-1.5b"], "`specchat models pull qwen2.5-coder-1.5b` fetches it"),
        (["-m", "/nowhere/model.gguf"], "/nowhere/model.gguf"),
        (["--offline"], "the network is switched off"),
        (["-f", "/nowhere/file"], "/nowhere/file can't be read"),
    ],
)
def test_what_is_not_there_is_one_sentence(arguments: list[str], sentence: str) -> None:
    ended = specchat(*arguments, "-p", "say hello")
    assert ended.code == 1 and ended.out == "" and ended.err.count("\n") == 1
    assert sentence in ended.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--top-p", "3"], "top-p is 3.0; it must lie between 0 and 1."),
        (["--gamma", "-1"], "gamma"),
        (["--max-tokens", "0"], "max-tokens is 0; it must be 1 or more."),
        (["--temperature", "hot"], "'hot' is not a valid float"),
        (["--spec", "maybe"], "maybe"),
        (["--nonsense"], "--nonsense"),
        (["again"], "Give the prompt once"),
    ],
)
def test_wrong_usage_is_said_and_exits_with_2(model: str, arguments: list[str], sentence: str) -> None:
    ended = specchat("-m", model, "-p", "say hello", *arguments)
    assert ended.code == 2 and ended.out == ""
    assert sentence in ended.err and "Traceback" not in ended.err


def test_words_without_quotes_are_a_prompt_too(model: str) -> None:
    assert specchat("-m", model, "say", "one", "two", "-s", "Be brief", stdin=b"a text") == Ended(0, "one two\n", "")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["modles", "list"], "specchat models list"),
        (["model", "list", "--json"], "specchat models list --json"),
        (["doctro"], "specchat doctor"),
        (["hlep"], "specchat help"),
        (["chat"], "specchat chats"),
        (["complte", "app.py:12:9"], "specchat complete app.py:12:9"),
        (["benhc", "--rounds", "3"], "specchat bench --rounds 3"),
    ],
)
@pytest.mark.parametrize("stdin", [None, b"a text"], ids=["at a terminal", "in a pipe"])
def test_a_command_spelled_wrong_is_not_sent_as_a_prompt(given: list[str], meant: str, stdin: bytes | None) -> None:
    ended = specchat(*given, stdin=stdin)
    assert (ended.code, ended.out) == (2, "")
    assert (
        f"There is no command {given[0]!r}; did you mean `{meant}`? To send it as a prompt: `specchat -p " in ended.err
    )


@pytest.mark.parametrize(
    "prompt",
    [
        *(
            ["models of thought"],
            ["path", "to", "enlightenment"],
            ["explain", "this"],
            ["hello"],
            ["review"],
            ["patch"],
        ),
        *(["models"], ["config", "list"], ["complete", "and", "correct", "this"], ["doctor's", "orders"]),
        *(["modern", "art"], ["doctors", "are", "--", "models"]),
    ],
    ids=" ".join,
)
def test_what_may_be_a_prompt_is_never_refused(prompt: list[str]) -> None:
    """Words that begin like none of the commands, or go on as no command does."""
    before = ["--"] if prompt[0] in cli.SUBCOMMANDS else []
    with pytest.raises(SystemExit) as ended, pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "specchat.start.start", lambda said: 40 + (said.words == " ".join(w for w in prompt if w != "--"))
        )
        patch.setattr("specchat.cli._piped", lambda: b"")
        cli.main([*before, *prompt])
    assert ended.value.code == 41


def test_a_sentence_that_begins_with_a_command_is_told_how_to_be_a_prompt() -> None:
    for given in (["models", "of", "thought"], ["help", "me", "with", "this"], ["doctor", "who", "is", "best"]):
        ended = specchat(*given)
        assert ended.code == 2 and f"To send it as a prompt: `specchat -p '{' '.join(given)}'`." in ended.err


@pytest.mark.parametrize("names", [["doctor"], ["chats"], ["models", "pull"]], ids=" ".join)
def test_help_explains_the_commands_that_it_is_asked_about(names: list[str]) -> None:
    asked = specchat("help", *names)
    assert asked == specchat(*names, "--help") and asked.code == 0
    assert asked.out.startswith(f"Usage: specchat {' '.join(names)} ")


def test_help_about_nothing_says_what_there_is() -> None:
    ended = specchat("help", "nothing")
    assert ended.code == 2 and "There is no command 'nothing'; there is only 'commands'. " in ended.err
    assert "did you mean" not in specchat("config", "get", "temperature").err


def test_a_command_of_a_command_spelled_wrong_is_guessed() -> None:
    ended = specchat("models", "lst", "--json")
    assert ended.code == 2
    assert "Error: There is no command 'lst'; did you mean `specchat models list --json`?\n" in ended.err
    ended = specchat("models", "list", "x")
    assert ended.code == 2 and "as a prompt" not in ended.err


@pytest.mark.skipif(sys.platform == "win32", reason="closes file descriptors")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_no_error(closed: str, tmp_path: Path) -> None:
    words = shlex.join([sys.executable, "-m", "specchat", "models", "list"])
    ended = subprocess.run(["sh", "-c", f"{words} {closed}"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ("smollm2-135m" in ended.stdout) == (closed != ">&-" and closed != "<&- >&- 2>&-")


def test_a_command_behind_its_options_is_told_to_come_first(model: str) -> None:
    for given, meant in (
        (["-m", "small", "complete", "a.py:5"], "specchat complete a.py:5 -m small"),
        (["--offline", "chats", "list"], "specchat chats list --offline"),
    ):
        ended = specchat(*given)
        assert ended.code == 2 and f"Commands come first: `{meant}`" in ended.err
    assert specchat("-m", model, "which", "models", "are", "good").err == ""


def test_a_bad_config_file_names_field_and_line(model: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("seed = 1\nctx = 'big'\n")
    ended = specchat("-m", model, "-p", "say hello", env={"SPECCHAT_HOME": str(tmp_path)})
    assert ended.code == 1 and ended.err.endswith("line 2: ctx: expected a whole number, got text.\n")


def test_the_config_file_may_name_the_model(model: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(f"model = '{model}'\n")
    assert specchat("-p", "say hello", env={"SPECCHAT_HOME": str(tmp_path)}).out == "hello\n"


def test_a_prompt_may_be_a_commands_name(model: str) -> None:
    for arguments in (["-p", "paths"], ["--", "paths"]):
        # The scripted engine has nothing to say to it.
        assert specchat(*arguments, env={"SPECCHAT_MODEL": model}) == Ended(0, "", ""), arguments


def test_a_reader_that_leaves_ends_it_without_a_word(model: str) -> None:
    process = started(["-m", model, "-p", "endless"])
    assert process.stdout and process.stderr
    assert process.stdout.read(4) == b"auto"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(120) == 0


def test_the_answer_is_printed_while_it_comes_and_ctrl_c_keeps_it(model: str) -> None:
    process = started(["-m", model, "-p", "endless"])
    assert process.stdout
    assert process.stdout.read(9) == b"auto auto"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and err == b""
    assert out.endswith(b"\n")


def test_ctrl_c_with_json_prints_what_was_there(model: str) -> None:
    process = started(["-m", model, "-p", "hang", "--json"])
    # No output tells when the answer began, so Ctrl+C is pressed until the process listens.
    while not (Path.home() / ".local/state/specchat/engine.log").exists():
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and err == b""
    assert out == b"" or json.loads(out)["stats"]["reason"] == "stopped"


def test_ctrl_c_ends_a_load(tmp_path: Path) -> None:
    process = started(["-m", str(model_file(tmp_path, "deaf")), "-p", "say hello"])
    log = Path.home() / ".local/state/specchat/engine.log"
    while not log.exists():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_paths_shows_everything_under_specchat_home(tmp_path: Path) -> None:
    ended = specchat("paths", "--json", env={"SPECCHAT_HOME": str(tmp_path), "SPECCHAT_MODELS": "/models"})
    places = json.loads(ended.out)
    assert places.pop("models") == "/models"
    assert all(place.startswith(f"{tmp_path}/") for place in places.values())
    assert not list(tmp_path.iterdir()), "looking creates nothing"
    assert specchat("paths").out.startswith("config ")


def test_doctor_says_what_to_do_and_measures_a_model_and_the_list_remembers(model: str, tmp_path: Path) -> None:
    home = {"SPECCHAT_HOME": str(tmp_path / "home"), "SPECCHAT_MODELS": str(tmp_path)}
    ended = specchat("doctor", "--model", model, env=home)
    assert "WARNING  models    none installed → run `specchat models pull smollm2-135m`" in ended.out
    assert "OK       lossless  identical text expected" in ended.out
    assert ended.code == 1 and ended.err == ""
    listed = json.loads(specchat("models", "list", "--json", env=home).out)["models"]
    measured = {row["name"]: row["width_noise"] for row in listed if row["width_noise"]}
    assert list(measured) == ["toy"] and measured["toy"]["identical_text_expected"]


def test_doctor_names_the_log_of_the_engine_that_failed_where_other_windows_have_their_own(tmp_path: Path) -> None:
    home, broken = tmp_path / "home", model_file(tmp_path, "fails")
    logs = home / "state"
    with closing(EngineLog(logs / "engine.log")) as of_a_window, of_a_window.opened("another window's engine"):
        ended = specchat("doctor", "--model", str(broken), env={"SPECCHAT_HOME": str(home)})
    assert f"read {logs / 'engine-2.log'} for what went wrong" in ended.out


def test_doctor_survives_a_broken_config_and_catalogue(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("nonsense")
    (tmp_path / "config" / "models.toml").write_text("nonsense")
    ended = specchat("doctor", env={"SPECCHAT_HOME": str(tmp_path)})
    assert ended.code == 1 and ended.err == ""
    assert "WARNING  settings" in ended.out and "WARNING  models" in ended.out


def test_an_unexpected_error_is_one_sentence_that_names_the_log(tmp_path: Path) -> None:
    program = "from specchat import cli, config; config.from_flags = lambda flags: 1 / 0; cli.main(['-p', 'x'])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 1
    assert ended.stderr.startswith("specchat met an unexpected error (ZeroDivisionError: division by zero); ")
    log = Path(ended.stderr.rpartition("the details are in ")[2].strip().rstrip("."))
    assert "Traceback" in log.read_text()

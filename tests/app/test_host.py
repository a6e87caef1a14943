"""The engine in its own process, played by tests/scripted_engine.py: started, stopped, crashed and started again."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specchat.host import EngineDied, Host
from specengine.errors import EngineError
from specengine.protocol import (
    Adjust,
    Chunk,
    Done,
    Generate,
    Load,
    Loaded,
    MeasureNearTie,
    NearTie,
    Notice,
    Prefilling,
    Progress,
    Raw,
)

SCRIPT = Path(__file__).parents[1] / "scripted_engine.py"
MODEL = Load("/models/toy", name="toy")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    host = scripted(tmp_path / "state" / "engine.log")
    yield host
    await host.close()


def scripted(log: Path) -> Host:
    return Host(log, (sys.executable, str(SCRIPT)))


async def loaded(host: Host, load: Load = MODEL) -> Loaded:
    *_, last = [message async for message in host.load(load)]
    assert isinstance(last, Loaded)
    return last


async def answer(host: Host, text: str, id: int = 1) -> list[Prefilling | Chunk | Notice | Done]:
    return [message async for message in host.generate(Generate(id, Raw(text)))]


def words(messages: list[Prefilling | Chunk | Notice | Done]) -> str:
    return "".join(message.text for message in messages if isinstance(message, Chunk))


def process_of(host: Host) -> int:
    assert host.loaded
    return int(host.loaded.device.removeprefix("process "))


def alive(pid: int) -> bool:
    """An orphan that ended may stay in the process table for a while, as a zombie."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def until_gone(pid: int) -> None:
    while alive(pid):
        await asyncio.sleep(0.005)


async def test_a_model_loads_with_progress_and_answers_in_pieces(host: Host) -> None:
    messages = [message async for message in host.load(MODEL)]
    progress = [message.fraction for message in messages if isinstance(message, Progress)]
    assert progress[0] == 0 and progress[-1] == 1 and progress == sorted(progress)
    assert len(progress) <= 102, "progress is sent once a percent, not for every tensor"
    assert isinstance(messages[-1], Loaded) and host.loaded == messages[-1]
    first, *chunks, done = await answer(host, "say one two three", id=5)
    assert isinstance(first, Prefilling)
    assert [chunk.text for chunk in chunks if isinstance(chunk, Chunk)] == ["one", " two", " three"]
    assert isinstance(done, Done) and done.id == 5 and done.reason == "end" and done.stats.emitted == 3
    assert (await host.measure_width_noise()).identical_text_expected
    asked = MeasureNearTie(Generate(6, Raw("say one")), (1, 2, 3), (4, 5))
    assert await host.measure_near_tie(asked) == NearTie(3.0, 9.0, False)


async def test_a_draft_model_that_is_not_installed_is_said(host: Host) -> None:
    first, *_ = [message async for message in host.load(Load("/models/toy", draft_name="small"))]
    assert isinstance(first, Notice) and "specchat models pull small" in first.text


async def test_nothing_runs_before_the_first_use(tmp_path: Path) -> None:
    host = scripted(tmp_path / "engine.log")
    with pytest.raises(EngineError, match="No model is loaded"):
        await answer(host, "say hello")
    await host.close()
    assert not (tmp_path / "engine.log").exists()


async def test_what_the_engine_prints_goes_to_the_log_and_never_into_the_answer(host: Host, tmp_path: Path) -> None:
    await loaded(host)
    assert words(await answer(host, "print fine")) == "fine"
    log = (tmp_path / "state" / "engine.log").read_text()
    assert "noise on stdout\n" in log and "native noise on fd 1\n" in log


async def test_a_refusal_keeps_the_model(host: Host) -> None:
    pid = (await loaded(host)).device
    with pytest.raises(EngineError, match=r"^The prompt does not fit. Raise --ctx.$"):
        await answer(host, "refuse")
    assert host.loaded and host.loaded.device == pid
    assert words(await answer(host, "say on")) == "on"


async def test_an_error_in_the_engine_is_one_sentence_that_names_the_log(host: Host, tmp_path: Path) -> None:
    await loaded(host)
    log = tmp_path / "state" / "engine.log"
    with pytest.raises(EngineError, match=re.escape(f"(ZeroDivisionError: in the script); the details are in {log}.")):
        await answer(host, "crash")
    assert "Traceback" in log.read_text()
    assert words(await answer(host, "say on")) == "on"


async def test_a_crash_is_reported_with_the_last_words_and_the_model_comes_back(host: Host) -> None:
    before = (await loaded(host)).device
    with pytest.raises(EngineDied, match=r"SIGABRT.*GGML_ASSERT\(the script says so\) failed"):
        await answer(host, "abort")
    assert host.loaded is None
    messages = await answer(host, "say again")
    assert words(messages) == "again"
    assert isinstance(messages[0], Notice) and messages[0].text == "toy was loaded again."
    assert host.loaded is not None and host.loaded.device != before


async def test_a_process_killed_while_idle_is_replaced_and_said(host: Host) -> None:
    await loaded(host)
    os.kill(process_of(host), 9)
    while host.loaded:
        await asyncio.sleep(0.005)
    messages = await answer(host, "say again")
    assert words(messages) == "again"
    assert isinstance(messages[0], Notice)
    assert "SIGKILL" in messages[0].text and "toy was loaded again" in messages[0].text


async def test_a_crash_while_loading_falls_back_to_the_model_that_worked(host: Host) -> None:
    await loaded(host)
    with pytest.raises(EngineDied, match=r"while loading.*SIGABRT"):
        await loaded(host, Load("/models/aborts"))
    assert words(await answer(host, "say again")) == "again"
    assert host.loaded and host.loaded.name == "toy"


async def test_a_load_that_fails_says_why_and_the_model_that_worked_comes_back(host: Host) -> None:
    await loaded(host)
    with pytest.raises(EngineError, match="This file is no model"):
        await loaded(host, Load("/models/fails"))
    assert host.loaded is None
    assert words(await answer(host, "say again")) == "again"


async def test_stop_ends_a_prefill(host: Host) -> None:
    await loaded(host)
    reasons = []
    async for message in host.generate(Generate(3, Raw("hang"))):
        if isinstance(message, Prefilling):
            host.stop(4)
            host.stop(3)
        if isinstance(message, Done):
            reasons.append(message.reason)
    assert reasons == ["stopped"]
    assert words(await answer(host, "say on")) == "on"


async def test_stop_ends_a_load(host: Host) -> None:
    with pytest.raises(EngineError, match="Stopped"):
        async for message in host.load(Load("/models/hangs")):
            if isinstance(message, Progress) and message.fraction == 1:
                host.stop(0)
    assert (await loaded(host)).name == "toy"


async def test_speculation_changes_in_the_middle_of_an_answer(host: Host) -> None:
    await loaded(host)
    seen: list[str] = []
    async for message in host.generate(Generate(1, Raw("endless"))):
        if isinstance(message, Chunk):
            seen.append(message.text.strip())
            if len(seen) == 3:
                host.adjust(Adjust("off"))
            if seen[-1] == "off":
                host.stop(1)
    assert seen[:3] == ["auto"] * 3 and seen[-1] == "off"


async def test_an_answer_whose_reader_leaves_is_stopped(host: Host) -> None:
    await loaded(host)
    async with contextlib.aclosing(host.generate(Generate(1, Raw("endless")))) as messages:
        async for message in messages:
            if isinstance(message, Chunk):
                break
    assert words(await answer(host, "say next", id=2)) == "next"


async def test_a_cancelled_reader_never_garbles_the_next_answer(host: Host) -> None:
    await loaded(host)
    for id in range(20):
        task = asyncio.create_task(answer(host, "endless", id))
        await asyncio.sleep(0.002 * id)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert words(await answer(host, f"say {id}", id=100 + id)) == str(id)


async def test_requests_wait_for_one_another(host: Host) -> None:
    await loaded(host)
    texts = await asyncio.gather(*(answer(host, f"say {number} done", number) for number in range(5)))
    assert [words(text) for text in texts] == [f"{number} done" for number in range(5)]


async def test_a_burst_of_chunks_leaves_the_loop_free(host: Host) -> None:
    await loaded(host)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    chunks = [message for message in await answer(host, "burst 2000") if isinstance(message, Chunk)]
    counting.cancel()
    assert len(chunks) == 2000
    assert turns >= 2000


async def test_a_long_prompt_comes_through(host: Host) -> None:
    await loaded(host)
    text = "é" * 5_000_000 + "\nlength"
    assert words(await answer(host, text)) == str(len(text))


@pytest.mark.parametrize("text", ["deaf", "endless", "burst 10000"])
async def test_close_ends_the_process_whatever_it_is_doing(host: Host, text: str) -> None:
    await loaded(host)
    pid = process_of(host)
    messages = host.generate(Generate(1, Raw(text)))
    await anext(messages)
    await host.close()
    assert not alive(pid)
    with pytest.raises(EngineDied, match="closed"):
        while True:
            await anext(messages)


async def test_close_ends_a_load_that_does_not_listen(host: Host) -> None:
    messages = host.load(Load("/models/deaf"))
    await anext(messages)
    await host.close()
    assert host.loaded is None


async def test_the_process_ends_with_its_pipe(tmp_path: Path) -> None:
    for order in ("deaf", "endless"):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(Path(__file__).with_name("abandoning_host.py")), str(tmp_path / "log"), order),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        await until_gone(int(out))


async def test_fifty_restarts_leak_no_process_and_no_file(tmp_path: Path) -> None:
    host = scripted(tmp_path / "engine.log")
    await loaded(host)
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(50):
        with pytest.raises(EngineDied):
            await answer(host, "killed")
        await loaded(host)
    assert len(list(Path("/dev/fd").iterdir())) <= before
    await host.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


async def test_an_engine_that_cannot_start_is_one_sentence(tmp_path: Path) -> None:
    host = Host(tmp_path / "engine.log", ("/nowhere/python",))
    with pytest.raises(EngineError, match="could not be started"):
        await loaded(host)


async def test_an_engine_that_writes_nonsense_is_put_down(tmp_path: Path) -> None:
    host = Host(tmp_path / "engine.log", (sys.executable, "-c", "print('not a frame', flush=True); input()"))
    with pytest.raises(EngineDied, match="ended while loading"):
        await loaded(host)
    await host.close()


async def test_a_log_that_cannot_be_written_does_not_keep_the_engine_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    host = scripted(tmp_path / "file" / "engine.log")
    await loaded(host)
    await host.close()


async def test_a_long_log_is_begun_anew(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "state" / "engine.log"
    log.parent.mkdir()
    log.write_bytes(b"old\n" * 400_000)
    await loaded(host)
    assert log.stat().st_size < 1000
    assert log.with_name("engine.log.1").read_bytes().startswith(b"old\n")

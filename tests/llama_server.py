"""An imitation of llama.cpp's server: its addresses, its JSON and its ways to fail, without a model.

It "writes" tokens that count up from the prompt's last one, a millisecond each, and reads a prompt at 2 ms a token.
Also a program: `program(folder, …)` writes an executable that takes the real one's flags.
"""

import contextlib
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

HELP: Final = """usage: llama-server [options]
-t,    --threads N                      number of CPU threads
-m,    --model FNAME                    model path to load
-cram, --cache-ram N                    set the maximum cache size in MiB
--host HOST                             ip address to listen
--port PORT                             port to listen
--spec-draft-ngl, -ngld, --gpu-layers-draft N
--spec-draft-n-max N                    number of tokens to draft for speculative decoding (default: 3)
--spec-type none,draft-simple,draft-eagle3,ngram-simple,ngram-map-k,ngram-mod
                                        comma-separated list of types of speculative decoding to use
"""
OLD_HELP: Final = """usage: llama-server [options]
-t,    --threads N                      number of threads
-m,    --model FNAME                    model path
--host HOST                             ip address to listen
--port PORT                             port to listen
--draft-max, --draft, --draft-n N       number of tokens to draft for speculative decoding (default: 16)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
"""


@dataclass
class Imitation:
    """What the server says, and how it fails; tests change it between requests."""

    model_path: str = "/models/model.gguf"
    n_ctx: int = 4096
    kind: str = "none"
    """Its --spec-type."""
    drafts: tuple[int, int] | None = None
    """Drafted and accepted tokens of each answer."""
    old: bool = False
    """It names neither the tokens, nor its --spec-type, nor its model."""
    forgetful: bool = False
    """Reads every prompt anew."""
    fault: str = ""
    """One of "refuses to start", "dies", "hangs", "hangs up", "answers in HTML", "is refused", "cuts short"."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    cache: list[int] = field(default_factory=list)

    def completion(self, asked: dict[str, Any]) -> dict[str, Any]:
        prompt, n = asked["prompt"], asked["n_predict"]
        shared = 0
        if asked["cache_prompt"] and not self.forgetful:
            while shared < min(len(self.cache), len(prompt) - 1) and self.cache[shared] == prompt[shared]:
                shared += 1
        tokens = [prompt[-1] + 1 + i for i in range(n)]
        self.cache = prompt + tokens
        read = len(prompt) - shared
        timings = {"cache_n": shared, "prompt_n": read, "prompt_ms": 2.0 * read, "predicted_n": n}
        timings["predicted_ms"] = float(n - 1)
        if self.drafts is not None:
            timings |= {"draft_n": self.drafts[0], "draft_n_accepted": self.drafts[1]}
        answer = {"content": "…", "timings": timings, "truncated": self.fault == "cuts short"}
        if not self.old:
            answer |= {"tokens": tokens, "generation_settings": {"speculative.types": self.kind}}
        return answer

    def props(self) -> dict[str, Any]:
        settings = {"n_ctx": self.n_ctx, "params": {}}
        named = {} if self.old else {"model_path": self.model_path, "build_info": "b1234-abcdef"}
        return {"default_generation_settings": settings, "total_slots": 1, **named}


@contextlib.contextmanager
def serving(imitation: Imitation, port: int = 0) -> Iterator[Imitation]:
    """Runs it in threads of this process; `imitation.url` is its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/health":
                self._json(200, {"status": "ok"})
            elif self.path == "/props":
                self._json(200, imitation.props())
            else:
                self._json(404, {"error": {"code": 404, "message": "File Not Found"}})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            imitation.requests.append(asked)
            match imitation.fault:
                case "dies":
                    print("GGML_ASSERT(n_tokens > 0) failed", file=sys.stderr, flush=True)
                    os._exit(134)
                case "hangs":
                    imitation.released.wait(20)
                    self.close_connection = True
                case "hangs up":
                    self.close_connection = True
                case "answers in HTML":
                    self._send(200, b"<html>", "text/html")
                case "is refused":
                    self._json(400, {"error": {"code": 400, "message": "no slot is free"}})
                case _:
                    self._json(200, imitation.completion(asked))

        def _json(self, status: int, answer: dict[str, Any]) -> None:
            self._send(status, json.dumps(answer).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # the other side hung up: what the tests are about

    server = Server(("127.0.0.1", port), Handler)
    imitation.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield imitation
    finally:
        imitation.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Program:
    """An executable that behaves as llama-server."""

    path: Path
    started: Path
    """A line of JSON for each start: process id and flags."""

    def starts(self) -> list[tuple[int, list[str]]]:
        if not self.started.exists():
            return []
        return [(start["pid"], start["flags"]) for start in map(json.loads, self.started.read_text().splitlines())]


def program(folder: Path, *, fault: str = "", old: bool = False) -> Program:
    """Writes the executable."""
    made = Program(folder / "llama-server", folder / "started")
    made.path.write_text(
        f"#!{sys.executable}\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"from llama_server import main; main({str(made.started)!r}, {fault!r}, {old!r})\n"
    )
    made.path.chmod(0o755)
    return made


def main(started: str, fault: str, old: bool) -> None:
    """The program."""
    flags = sys.argv[1:]
    if "--help" in flags:
        print(OLD_HELP if old else HELP)
        return
    if "--version" in flags:
        print("version: 1234 (abcdef)\nbuilt with a pencil", file=sys.stderr)
        return
    with Path(started).open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "flags": flags}) + "\n")
    if fault == "refuses to start":
        sys.exit("0.00.006.153 E srv  llama_server: exiting due to model loading error")
    given = dict(itertools.pairwise(flags))
    kind = given.get("--spec-type", "none")
    imitation = Imitation(given["-m"], int(given["-c"]), kind, old=old, fault=fault)
    imitation.drafts = None if kind == "none" else (10, 7)
    with serving(imitation, int(given["--port"])):
        time.sleep(60)

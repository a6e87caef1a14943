"""A real HTTP server on this machine that answers as Hugging Face does, with the faults that networks have."""

import contextlib
import hashlib
import random
import re
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def model_bytes(weights: int = 250_000, seed: int = 0) -> bytes:
    """A whole GGUF file with one F32 tensor of that many weights."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    head += text("token_embd.weight") + struct.pack("<IQIQ", 1, weights, 0, 0)
    return head + bytes(-len(head) % 32) + random.Random(seed).randbytes(4 * weights)


@dataclass
class Hub:
    """What the server has and how it misbehaves; tests change it between requests."""

    content: bytes
    path: str = "/owner/models/resolve/abc123/model.gguf"
    linked: bool = True
    """The first answer redirects, and carries size and digest as Hugging Face's does for large files."""
    etag: str = '"first"'
    ranges: bool = True
    status: int = 200
    cuts: list[int] = field(default_factory=list)
    """For each answer to come: after how many bytes the connection breaks."""
    stalls: list[int] = field(default_factory=list)
    """For each answer to come: after how many bytes nothing more arrives."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Path and headers of every request."""
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def served(self) -> list[str | None]:
        """The Range header of each request for the bytes themselves."""
        place = "/cdn" if self.linked else self.path
        return [headers.get("Range") for path, headers in self.asked if path == place]


@contextlib.contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Runs the server; `hub.url` is its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append((self.path, dict(self.headers)))
            if hub.status != 200:
                self._empty(hub.status, {})
            elif self.path == hub.path and hub.linked:
                digest = hashlib.sha256(hub.content).hexdigest()
                linked = {"X-Linked-Size": str(len(hub.content)), "X-Linked-Etag": f'"{digest}"'}
                self._empty(302, {"Location": hub.url.replace("127.0.0.1", "localhost") + "/cdn", **linked})
            elif self.path in (hub.path, "/cdn"):
                self._file()
            else:
                self._empty(404, {})

        def _empty(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def _file(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start, size = int(asked[1]) if asked and hub.ranges else 0, len(hub.content)
            if start >= size:
                self._empty(416, {"Content-Range": f"bytes */{size}", "ETag": hub.etag})
                return
            self.send_response(206 if asked and hub.ranges else 200)
            if asked and hub.ranges:
                self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
            self.send_header("Content-Length", str(size - start))
            self.send_header("ETag", hub.etag)
            self.end_headers()
            cut = hub.cuts.pop(0) if hub.cuts else size
            stall = hub.stalls.pop(0) if hub.stalls else size
            with contextlib.suppress(OSError):
                self.wfile.write(hub.content[start : start + min(cut, stall)])
                self.wfile.flush()
                if stall < size - start:
                    hub.released.wait(20)
            if min(cut, stall) < size - start:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # the other side hung up: what the tests are about

    server = Server(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.released.set()
        server.shutdown()
        server.server_close()
        thread.join()

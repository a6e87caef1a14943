"""A real HTTP server on this machine that answers as Hugging Face does for a repository of several files."""

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c0ffee"


@dataclass
class Repository:
    """What the server has and how it misbehaves; tests change it between requests."""

    files: dict[str, bytes]
    repo: str = "owner/tiny"
    cuts: dict[str, int] = field(default_factory=dict)
    """Of the next answer for a file: after how many bytes the connection breaks."""
    wrong: dict[str, bytes] = field(default_factory=dict)
    """Sent in the place of a file."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """File and Range header of every request for bytes."""
    url: str = ""

    def listing(self) -> bytes:
        siblings = []
        for name, content in self.files.items():
            one: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            if name.endswith(".safetensors"):
                one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            siblings.append(one)
        return json.dumps({"id": self.repo, "sha": COMMIT, "siblings": siblings}).encode()


@contextlib.contextmanager
def serving(repository: Repository) -> Iterator[Repository]:
    """Runs the server; `repository.url` is its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == f"/api/models/{repository.repo}/revision/main?blobs=true":
                self._send(repository.listing(), None)
                return
            found = re.fullmatch(rf"/{repository.repo}/resolve/{COMMIT}/([^/]+)", self.path)
            name = found[1] if found else ""
            if name not in repository.files:
                self._send(b"", None, 404)
                return
            repository.asked.append((name, self.headers.get("Range")))
            self._send(repository.wrong.pop(name, repository.files[name]), name)

        def _send(self, content: bytes, name: str | None, status: int = 200) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(asked[1]) if asked else 0
            self.send_response(206 if asked else status)
            if asked:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            digest = hashlib.sha256(content) if (name or "").endswith(".safetensors") else hashlib.sha1(content)
            self.send_header("ETag", f'"{digest.hexdigest()}"')
            self.end_headers()
            cut = repository.cuts.pop(name or "", len(content))
            with contextlib.suppress(OSError):
                self.wfile.write(content[start : start + cut])
                self.wfile.flush()
            if cut < len(content) - start:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # the other side hung up

    server = Server(("127.0.0.1", 0), Handler)
    repository.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield repository
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

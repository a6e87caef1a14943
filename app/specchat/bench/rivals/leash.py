"""`python -m specchat.bench.rivals.leash COMMAND…`: runs a command and kills it when stdin ends.

The pipe ends with the process that holds its other end, however that dies; so no rival outlives the bench.
"""

import os
import signal
import subprocess
import sys
import threading
from typing import NoReturn


def main() -> NoReturn:
    """Exits as the command does; 127 where it can't be started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.exit(f"{sys.argv[1]} can't be started: {error.strerror or error}")
    try:
        threading.Thread(target=_kill_when_stdin_ends, args=(command,), daemon=True).start()
        code = command.wait()
    finally:
        command.kill()
    os._exit(code if code >= 0 else 128 - code)


def _kill_when_stdin_ends(command: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 4096):
        pass
    command.kill()


if __name__ == "__main__":
    main()

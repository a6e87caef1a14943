"""Starts an engine, prints its process id and vanishes without a goodbye: `python abandoning_host.py LOG ORDER`."""

import asyncio
import os
import sys
from pathlib import Path

from specchat.host import Host
from specengine.protocol import Generate, Load, Raw


async def main() -> None:
    script = Path(__file__).parents[1] / "scripted_engine.py"
    host = Host(Path(sys.argv[1]), (sys.executable, str(script)))
    async for _ in host.load(Load("/models/toy")):
        pass
    assert host.loaded
    print(host.loaded.device.removeprefix("process "), flush=True)
    async for _ in host.generate(Generate(1, Raw(sys.argv[2]))):
        os.kill(os.getpid(), 9)


asyncio.run(main())

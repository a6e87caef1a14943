"""The command line with the scripted engine in place of the real one: `python scripted_specchat.py ARGUMENTS…`."""

import sys
from pathlib import Path

from specchat import cli, host

host.ENGINE = (sys.executable, str(Path(__file__).parents[1] / "scripted_engine.py"))  # type: ignore[assignment]
cli.main()

"""Everything that must hold before a change lands: style, types, packaging and all tests, real models included.

Run it with the environment's own Python: `.venv/bin/python packaging/check.py [PYTEST ARGUMENTS…]`. With arguments it
runs those tests alone, one after another.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = ("-m", "pytest", "-q", "-rs", "--durations=10")  # -rs names every skipped test with its reason
# One process a core, a file at a time: tiny models take one thread each, and the screen is one of the tests' own.
SIDE_BY_SIDE = ("tests/engine", "tests/app", "tests/tui", "tests/packaging")
PARALLEL = ("-n", "logical", "--maxprocesses", "4", "--dist", "loadfile")
TESTS = {
    "tests": (*PARALLEL, "-m", "not real", *SIDE_BY_SIDE),
    "tests in a terminal": ("-m", "not real", *(f"--ignore={folder}" for folder in SIDE_BY_SIDE)),
    "tests on real models": ("-m", "real"),
}


def main() -> int:
    """Runs every step, also after one failed; returns 1 if any did."""
    chosen = sys.argv[1:]
    steps = {
        "style": ("-m", "ruff", "check", "."),
        "format": ("-m", "ruff", "format", "--check", "."),
        "types": ("-m", "mypy"),
        "packaging": ("packaging/smoke.py",),
        **({"tests": (*PYTEST, *chosen)} if chosen else {name: (*PYTEST, *those) for name, those in TESTS.items()}),
    }
    failed = []
    for name, step in steps.items():
        print(f"{name}: python {' '.join(step)}", flush=True)
        if subprocess.run([sys.executable, *step], cwd=ROOT, check=False).returncode:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

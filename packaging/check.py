"""Everything that must hold before a change lands: style, types, packaging and all tests, real models included.

Run it with the environment's own Python: `.venv/bin/python packaging/check.py [PYTEST ARGUMENTS…]`.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Runs every step, also after one failed; returns 1 if any did."""
    steps = {
        "style": ["-m", "ruff", "check", "."],
        "format": ["-m", "ruff", "format", "--check", "."],
        "types": ["-m", "mypy"],
        "packaging": ["packaging/smoke.py"],
        # -rs names every skipped test with its reason.
        "tests": ["-m", "pytest", "-q", "-rs", *sys.argv[1:]],
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

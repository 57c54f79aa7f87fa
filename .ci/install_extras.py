# SPDX-License-Identifier: Apache-2.0
"""Install the packages that tests, checks and documentation use: python .ci/install_extras.py [MISSING_FILE].

Requirements of the extras `test`, `lint` and `docs` must all be there. The extras that `test` includes are peers:
readers of other tools' files. A peer that cannot be installed is printed and written to MISSING_FILE (default:
build/missing-peers), one line "name: reason" each, and the tests that need the peer are skipped by its name.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("test", "lint", "docs")
_INCLUDED = re.compile(r"quipu\[([\w,]+)\]")


def pip_install(requirements: list[str]) -> str:
    """Install requirements. Return why pip could not, empty if it did."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *requirements]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if not done.returncode:
        return ""
    errors = [line.strip() for line in done.stdout.splitlines() if re.match(r"\s*(error|ERROR)\b", line)]
    return errors[-1] if errors else f"pip ended with exit code {done.returncode}"


def requirements(extras: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return what must be there, and the peers."""
    needed, peers = [], []
    for extra in EXTRAS:
        for requirement in extras[extra]:
            included = _INCLUDED.fullmatch(requirement)
            if included is None:
                needed.append(requirement)
            else:
                peers += [peer for name in included[1].split(",") for peer in extras[name]]
    return needed, sorted(set(peers))


def main() -> None:
    """Install everything; exit with 1 if something that must be there cannot be installed."""
    missing = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "missing-peers"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed, peers = requirements(project["optional-dependencies"])
    print("Installing the Python packages of tests, checks and documentation ...", flush=True)
    lines = []
    if pip_install([*needed, *peers]):
        if reason := pip_install(needed):
            sys.exit(f"The Python packages of the tests cannot be installed: {reason}")
        for peer in peers:
            if reason := pip_install([peer]):
                name = re.split(r"[<>=!~ \[;]", peer, maxsplit=1)[0]
                lines.append(f"{name}: {reason}")
                print(f"Not installed, its tests will be skipped: {lines[-1]}", flush=True)
    missing.parent.mkdir(parents=True, exist_ok=True)
    missing.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()

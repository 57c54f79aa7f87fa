# SPDX-License-Identifier: Apache-2.0
"""Kill commands of Quipu (SIGKILL) just before one of their changes of files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_KILLED = """
import os, signal, sys
left, inside = int(sys.argv.pop(1)), sys.argv.pop(1)

def changes(event, arguments):
    if event == "open":
        return isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    return event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.link")

def hook(event, arguments):
    global left
    if changes(event, arguments) and inside in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
from quipu.agent.cli.main import main
main()
"""


def killed_before(change: int, inside: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `quipu WORDS...`, and kill it before its `change`-th change of a file below a folder; 0: do not kill it."""
    command = [sys.executable, "-c", _KILLED, str(change), str(inside), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

"""The program `quipu`: Ctrl-C ends it without a traceback, also while the command line is loaded."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from .main import main as command
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    command()

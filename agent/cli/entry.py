# SPDX-License-Identifier: Apache-2.0
"""The entry point of `quipu`. A signal ends it with one line and no traceback, even during the imports of Python."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_USUAL: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_SAID = {signal.SIGINT: b"quipu: error: interrupted\n", signal.SIGTERM: b"quipu: error: ended by SIGTERM\n"}


def _end(number: int, _: object) -> None:
    """Handle a signal: end the process without an exception, which a module that is being imported could catch."""
    os.write(2, _SAID[signal.Signals(number)])
    os._exit(128 + number)


def main() -> None:
    """Import the command line and run it."""
    # A signal with another handler is left alone: the parent process chose to ignore it.
    ours = [number for number, usual in _USUAL.items() if signal.getsignal(number) is usual]
    for number in ours:
        signal.signal(number, _end)
    try:
        from .main import main as command
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    for number in ours:
        signal.signal(number, _USUAL[number])
    command()

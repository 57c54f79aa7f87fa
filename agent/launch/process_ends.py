# SPDX-License-Identifier: Apache-2.0
"""Record the ends of processes of this host.

Times are nanoseconds of CLOCK_MONOTONIC, like in the headers of profiles. This module imports only the standard
library, so that the node agent starts fast.
"""

from __future__ import annotations

import os
import select
import time

_RECHECK = 0.05  # seconds between two checks of processes whose end the kernel does not report


class ProcessEnds:
    """Watches processes other than children: the kernel reports their end at once (pidfd, Linux 5.3)."""

    def __init__(self) -> None:
        """Start without processes."""
        self.ended: dict[int, int] = {}
        self.known: set[int] = set()
        self._poll = select.poll()
        self._handles: dict[int, int] = {}
        self._without: set[int] = set()

    def watch(self, pid: int) -> None:
        """Watch a process. If it has already ended, its end is recorded as now."""
        if pid in self.known or pid <= 0:
            return
        self.known.add(pid)
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            self.ended[pid] = time.monotonic_ns()
        except (OSError, AttributeError, OverflowError):
            self._without.add(pid)  # an old kernel, or too many open files
        else:
            self._handles[handle] = pid
            self._poll.register(handle, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Wait, and record the processes that end; return early after the end of the last one."""
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            watching = bool(self._handles or self._without)
            pause = min(left, _RECHECK) if self._without else left
            gone = self._poll.poll(pause * 1000)
            now = time.monotonic_ns()
            for handle, _ in gone:
                self._poll.unregister(handle)
                os.close(handle)
                self.ended[self._handles.pop(handle)] = now
            for pid in [pid for pid in self._without if not exists(pid)]:
                self._without.remove(pid)
                self.ended[pid] = now
            if left == 0 or (watching and not self._handles and not self._without):
                return


def exists(pid: int) -> bool:
    """Return whether a process with this id is running on this host."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

# SPDX-License-Identifier: Apache-2.0
"""Record when processes of this host end.

Times are nanoseconds of CLOCK_MONOTONIC, as in the headers of profiles. This module imports only the standard library,
so that the node agent starts fast.
"""

from __future__ import annotations

import os
import select
import time

_RECHECK = 0.05  # seconds between two checks of processes that have no pidfd, so that the kernel reports no end


class ProcessEnds:
    """Watches processes that need not be children. With pidfd (Linux 5.3), the kernel reports their end at once.

    ended: time of the end of each process that has ended (ns), by process id. known: ids of all watched processes.
    """

    def __init__(self) -> None:
        """Create the object without processes."""
        self.ended: dict[int, int] = {}
        self.known: set[int] = set()
        self._poll = select.poll()
        self._handles: dict[int, int] = {}
        self._without: set[int] = set()

    def watch(self, pid: int) -> None:
        """Watch a process. If it has already ended, record the current time as its end."""
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
        """Wait, and record the processes that end meanwhile; return early when the last watched process ends."""
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

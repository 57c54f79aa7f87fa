# SPDX-License-Identifier: Apache-2.0
"""When processes of this host ended: what the node agent knows and what is made of it at the merge.

Times are nanoseconds of CLOCK_MONOTONIC, which profiles begin with, too. The standard library alone is imported: the
node agent must be there soon.
"""

from __future__ import annotations

import os
import select
import time

_RECHECK = 0.05  # seconds between two looks at processes that the kernel does not report


class ProcessEnds:
    """Watches processes that are not ours: the kernel reports at once when one of them ends (pidfd, Linux 5.3)."""

    def __init__(self) -> None:
        """Watch nothing yet."""
        self.ended: dict[int, int] = {}
        self.known: set[int] = set()
        self._poll = select.poll()
        self._handles: dict[int, int] = {}
        self._without: set[int] = set()

    def watch(self, pid: int) -> None:
        """Take up a process. One that is gone already counts as ended now."""
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
        """Wait and note which processes end meanwhile; returns early when the last one has."""
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
    """Whether a process of this id runs on this host."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True

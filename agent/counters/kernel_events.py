# SPDX-License-Identifier: Apache-2.0
"""Check whether the kernel can count an event for a thread, by opening the event once with perf_event_open(2)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from pathlib import Path

from .libpfm import Encoding

_CALLS = {"x86_64": 298, "aarch64": 241}  # numbers of the system call perf_event_open (asm/unistd.h)
_SIZE = 112  # PERF_ATTR_SIZE_VER5: bytes of struct perf_event_attr
_EXCLUDE_KERNEL, _EXCLUDE_HV, _DISABLED = 1 << 5, 1 << 6, 1
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def _open(event: Encoding) -> int:
    """Return 0 if the event can be opened, otherwise the error number (errno)."""
    number = _CALLS.get(platform.machine())
    if number is None:
        return errno.ENOSYS
    flags = _DISABLED | _EXCLUDE_HV | (0 if event.kernel else _EXCLUDE_KERNEL)
    fields = (event.type, _SIZE, event.config, 0, 0, 0, flags, 0, 0, event.config1, event.config2)
    attributes = struct.pack("<IIQQQQQIIQQ", *fields).ljust(_SIZE, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, attributes, 0, -1, -1, 8)  # PERF_FLAG_FD_CLOEXEC
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0


def refused(event: Encoding) -> str:
    """Return why the kernel cannot count an event, and what to do; empty if the kernel can count it."""
    code = _open(event)
    if code in (errno.EACCES, errno.EPERM):
        try:
            level = _PARANOID.read_text(encoding="ascii").strip()
        except OSError:
            level = "not known"
        least = 1 if event.kernel else 2
        return f"the kernel forbids it (perf_event_paranoid is {level}): sysctl kernel.perf_event_paranoid={least}"
    if code in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this machine does not offer this hardware counter (a virtual machine without PMU?)"
    if code == errno.ENOSYS:
        return "this kernel has no perf events"
    return f"perf_event_open: {os.strerror(code)}" if code else ""

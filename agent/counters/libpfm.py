# SPDX-License-Identifier: Apache-2.0
"""Convert names of events to numbers of perf_event_attr with libpfm4, if it is installed.

The interface is from perfmon/pfmlib.h and perfmon/pfmlib_perf_event.h of libpfm 4.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

INSTALL = "apt-get install libpfm4"
_USER = 8  # PFM_PLM3: user space
_PERF_EVENT = 1  # PFM_OS_PERF_EVENT: the attributes of the event alone
_SUCCESS = 0


@dataclass(frozen=True)
class Encoding:
    """An event: type, config, config1, config2 of perf_event_attr. kernel: whether to count in the kernel, too."""

    type: int
    config: int
    config1: int = 0
    config2: int = 0
    kernel: bool = False

    def text(self) -> str:
        """Return the event in the format of the variable QUIPU_COUNTERS: `type:config[:config1:config2][k]`."""
        more = f":{self.config1:#x}:{self.config2:#x}" if self.config1 or self.config2 else ""
        return f"{self.type}:{self.config:#x}{more}{'k' if self.kernel else ''}"


class _Attributes(ctypes.Structure):
    """The part of struct perf_event_attr (linux/perf_event.h) that libpfm fills in."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sample_period", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup_events", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
        ("config2", ctypes.c_uint64),
        ("rest", ctypes.c_uint8 * 256),
    )


class _Argument(ctypes.Structure):
    """pfm_perf_encode_arg_t."""

    _fields_ = (
        ("attr", ctypes.POINTER(_Attributes)),
        ("fstr", ctypes.POINTER(ctypes.c_char_p)),
        ("size", ctypes.c_size_t),
        ("idx", ctypes.c_int),
        ("cpu", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
    )


@cache
def library() -> ctypes.CDLL | None:
    """Return the initialized libpfm4; None if it is not installed or cannot be initialized."""
    try:
        found = ctypes.CDLL("libpfm.so.4")
    except OSError:
        return None
    found.pfm_strerror.restype = ctypes.c_char_p
    return found if found.pfm_initialize() == _SUCCESS else None


def encode(name: str) -> Encoding | str:
    """Return the numbers of an event of this processor, or an error text if libpfm4 or the event is missing.

    name: as in the manual of the vendor (MEM_LOAD_RETIRED.L1_HIT) or in libpfm (LS_DISPATCH:LD_DISPATCH).
    """
    found = library()
    if found is None:
        return f"libpfm4, which knows the names of events, is not installed: {INSTALL}"
    attributes = _Attributes()
    argument = _Argument(ctypes.pointer(attributes), None, ctypes.sizeof(_Argument), 0, 0, 0, 0)
    code = found.pfm_get_os_event_encoding(
        name.encode("utf-8", "surrogateescape"), _USER, _PERF_EVENT, ctypes.byref(argument)
    )
    if code != _SUCCESS:
        return f"libpfm4 does not know the event {name} of this processor ({found.pfm_strerror(code).decode()})"
    return Encoding(attributes.type, attributes.config, attributes.config1, attributes.config2)

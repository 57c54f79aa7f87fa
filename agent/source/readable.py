# SPDX-License-Identifier: Apache-2.0
"""Convert linker names of functions to readable names with the demangler of the C++ library on this machine."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
_RUST_WORDS = {"$SP$": "@", "$BP$": "*", "$RF$": "&", "$LT$": "<", "$GT$": ">", "$LP$": "(", "$RP$": ")", "$C$": ","}


@cache
def readable_name(name: str) -> str:
    """Return the readable name of a function in C++ or Rust (legacy mangling); other names are returned unchanged.

    The pass stores a readable name only if this function would return another one (readableName in llvm_pass/names.h).
    """
    if not name.startswith(("_Z", "__Z")):
        return name
    demangle = _demangler()
    status = ctypes.c_int()
    pointer = demangle(name.encode(), None, None, ctypes.byref(status)) if demangle else None
    if not pointer:
        return name
    text = ctypes.cast(pointer, ctypes.c_char_p).value or b""
    ctypes.CDLL(None).free(ctypes.c_void_p(pointer))
    readable = text.decode("utf-8", "replace")
    if _RUST_HASH.search(readable):
        return _of_rust(_RUST_HASH.sub("", readable))
    while "> >" in readable:
        readable = readable.replace("> >", ">>")
    return readable


def _of_rust(name: str) -> str:
    """Return a name with the escape words of Rust replaced by their characters (rustc-demangle, legacy.rs)."""
    name = re.sub(r"\$u([0-9a-f]{1,6})\$", lambda found: chr(int(found[1], 16)), name)
    for word, character in _RUST_WORDS.items():
        name = name.replace(word, character)
    return name.replace("..", "::").replace("::_<", "::<").removeprefix("_" if name.startswith("_<") else "")


@cache
def _demangler() -> Any:
    """Return the function __cxa_demangle; None if there is no C++ library."""
    try:
        function = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    except OSError:
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    return function

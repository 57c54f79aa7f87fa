# SPDX-License-Identifier: Apache-2.0
"""Mark regions, phases and parameters in a Python program.

    from quipu.region import parameter, phase, region

    parameter("n", n)
    with region("assemble"):
        ...
    for i in range(steps):
        with phase("step", i):
            ...

    @region("solve")
    def solve(): ...

Without `quipu run`, the marks have no effect. This file imports no other module of Quipu. A program can therefore
contain a copy of this file, and then also runs without Quipu.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

__all__ = ["parameter", "phase", "region"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _native() -> ctypes.PyDLL | None:
    """Return this process as a ctypes library if Quipu measures it; otherwise None."""
    process = ctypes.PyDLL(None)
    try:
        if not process.quipu_active():
            return None
        process.quipu_region_begin.argtypes = process.quipu_region_end.argtypes = [ctypes.c_char_p]
        process.quipu_phase_begin.argtypes = [ctypes.c_char_p, ctypes.c_longlong]
        process.quipu_phase_end.argtypes = [ctypes.c_char_p]
        process.quipu_parameter.argtypes = [ctypes.c_char_p, ctypes.c_double]
    except AttributeError:
        return None
    for name in ("region_begin", "region_end", "phase_begin", "phase_end", "parameter"):
        process[f"quipu_{name}"].restype = None
    return process


_runtime = _native()


class region:
    """A region of the call tree, as context manager (`with region(name):`) or as decorator of a function."""

    def __init__(self, name: str) -> None:
        """Create the object; the region begins with the `with` statement."""
        self.name = name
        self._bytes = name.encode(errors="replace")

    def __enter__(self) -> region:
        """Begin the region."""
        if _runtime is not None:
            _runtime.quipu_region_begin(self._bytes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the region, also if the block raised an exception."""
        if _runtime is not None:
            _runtime.quipu_region_end(self._bytes)

    def __call__(self, function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        """Return the function, changed so that each of its calls is inside of this region."""

        @functools.wraps(function)
        def measured(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            with self:
                return function(*args, **kwargs)

        return measured


class phase:
    """One iteration of a phase, as context manager: `with phase("step", i):`.

    `quipu show --iterations step` compares the iterations of the phase `step`.
    """

    def __init__(self, name: str, iteration: int) -> None:
        """Create the object. name: of the phase. iteration: number of the iteration."""
        self._bytes = name.encode(errors="replace")
        self.iteration = iteration

    def __enter__(self) -> phase:
        """Begin the iteration."""
        if _runtime is not None:
            _runtime.quipu_phase_begin(self._bytes, self.iteration)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iteration, also if the block raised an exception."""
        if _runtime is not None:
            _runtime.quipu_phase_end(self._bytes)


def parameter(name: str, value: float) -> None:
    """Set a parameter of the run, so that `quipu run` needs no `--param` for it."""
    if _runtime is not None:
        _runtime.quipu_parameter(name.encode(errors="replace"), float(value))

# SPDX-License-Identifier: Apache-2.0
"""Import the sitecustomize of the user if there is one, then start to measure the functions of the Python program.

The interpreter imports a module sitecustomize at its start. quipu-exec puts this folder first in PYTHONPATH, so that
the interpreter finds this module and not the one of the user.
"""

# This module uses os.path, which is already imported: importing pathlib would delay every program by milliseconds.
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from types import FrameType


def _start() -> None:
    """Load the native library for this interpreter, as the environment variables request."""
    import ctypes
    import os
    import sys
    import threading

    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    files = os.environ.pop("QUIPU_PYTHON_PATHS", "")
    if files:
        counted = ctypes.PyDLL(os.path.join(folder, "libquipu_python_paths.so"))
        if not counted.quipu_python_paths_start(os.fsencode(files), sys.version_info.minor):
            sys.stderr.write("quipu: this Python cannot be counted: its functions get no counts\n")
        return
    wanted = os.environ.get("QUIPU_PYTHON_WORKERS" if _is_worker() else "QUIPU_PYTHON", "0")
    if not os.environ.get("QUIPU_DIR") or wanted in ("", "0"):
        return
    everything = wanted == "all"
    os.environ["QUIPU_PYTHON_WORKERS"] = wanted
    os.environ["QUIPU_PYTHON"] = "0"  # other interpreters that the program starts are not measured
    native = ctypes.PyDLL(os.path.join(folder, "libquipu_python.so"))
    if not everything:
        native.quipu_python_fold(os.fsencode(os.path.dirname(os.__file__)))
    if sys.version_info >= (3, 12):
        _monitor(native)
        return

    if sys.version_info < (3, 11):  # noqa: UP036  (the Python of the program)
        _name_loaded(native)

    def start_thread(frame: FrameType, event: str, argument: object) -> None:
        native.quipu_python_start()

    if native.quipu_python_start():
        threading.setprofile(start_thread)
    else:
        sys.stderr.write("quipu: this Python cannot be measured: its functions have no regions\n")


def _is_worker() -> bool:
    """Return whether the module multiprocessing started this interpreter as a worker of the program."""
    import sys

    starts = ("from multiprocessing.spawn import ", "from multiprocessing.forkserver import ")
    return any(word.startswith(starts) for word in getattr(sys, "orig_argv", ()))


def _name_loaded(native: ctypes.PyDLL) -> None:
    """Pass the qualified names of functions in already loaded modules to the native library.

    Code objects of Python before 3.11 do not contain these names.
    """
    import ctypes
    import sys

    keep = native.quipu_python_name_code
    keep.argtypes = [ctypes.py_object, ctypes.c_char_p]
    for module in list(sys.modules.values()):
        classes = [value for value in vars(module).values() if isinstance(value, type)]
        for owner in (module, *classes):
            for value in list(vars(owner).values()):
                function = getattr(value, "__func__", value)
                code = getattr(function, "__code__", None)
                if code is not None:
                    keep(code, function.__qualname__.encode())


def _monitor(native: ctypes.PyDLL) -> None:
    """Register the native callbacks with sys.monitoring (Python 3.12 and newer)."""
    import ctypes
    import sys

    monitoring = getattr(sys, "monitoring")  # noqa: B009  (Python 3.12 and newer)
    free = [tool for tool in (3, 4, 5, 2, 1, 0) if monitoring.get_tool(tool) is None]
    make = native.quipu_python_callback
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_int, ctypes.py_object, ctypes.py_object]
    if not free:
        sys.stderr.write("quipu: all tools of sys.monitoring are in use: Python functions have no regions\n")
        return
    monitoring.use_tool_id(free[0], "quipu")
    events = monitoring.events
    enter, throw, leave = (make(which, None, monitoring.DISABLE) for which in range(3))
    callbacks = {
        events.PY_START: enter,
        events.PY_RESUME: enter,
        events.PY_THROW: throw,
        events.PY_RETURN: leave,
        events.PY_YIELD: leave,
        events.PY_UNWIND: leave,
    }
    for event, callback in callbacks.items():
        monitoring.register_callback(free[0], event, callback)
    monitoring.set_events(free[0], sum(callbacks))


def _next() -> None:
    """Remove this folder from sys.path, and execute the next sitecustomize in sys.path if there is one."""
    import importlib.machinery
    import importlib.util
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    rest = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.path[:] = rest
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_next()
_start()

# SPDX-License-Identifier: Apache-2.0
"""Answers of compilers, kept from one launch to the next while the files that they depend on are the same.

An answer is a JSON file in the user's cache. Asking again costs a launch a fifth of a second of processor time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from quipu.modeling.prefix import user_cache

_VARIABLES = re.compile(
    r"(PATH|.*_PATH|CPATH|(I_)?MPI_.*|(O|P)MPI_.*|OPAL_.*|PMIX_.*|PRTE_.*|MPICH_.*|MV2_.*|SMPI_.*|QUIPU_(CC|HOME|MPICC))"
)
"""Variables that choose a compiler, or say what it prints."""


def remembered(kind: str, question: Sequence[str], ask: Callable[[], tuple[Any, Iterable[Path]]]) -> Any:
    """Return the answer to a question (as JSON gives it back): that of an earlier launch, else what `ask` returns.

    ask: returns the answer and the files that it depends on. Size, time or place of one of these files being another,
    or a variable of the environment that chooses compilers, the question is asked again. Where nothing can be written,
    it is asked each time. What `ask` raises is raised.
    """
    cache = user_cache()
    if cache is None:
        return ask()[0]
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if _VARIABLES.fullmatch(name))
    key = hashlib.sha256("\0".join((kind, *question, *variables)).encode("utf-8", "surrogateescape")).hexdigest()
    path = cache / "known" / f"{kind}-{key[:32]}.json"
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["files"] and all(_state(name) == state for name, state in known["files"].items()):
            return known["answer"]
    answer, files = ask()
    states = {str(Path(file).absolute()): _state(file) for file in files}
    with suppress(OSError, UnicodeEncodeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"answer": answer, "files": states}), encoding="utf-8")
        temporary.replace(path)
    return answer


def _state(file: str | Path) -> list[int]:
    """Return what changes when a file does: size, time of the last change, number; -1 if it is not there."""
    try:
        status = Path(file).stat()
    except OSError:
        return [-1]
    return [status.st_size, status.st_mtime_ns, status.st_ino]

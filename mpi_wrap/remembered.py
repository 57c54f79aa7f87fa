# SPDX-License-Identifier: Apache-2.0
"""Store information from compilers on disk, so that later starts of `quipu run` need not call the compilers again.

Each answer is a JSON file in ${XDG_CACHE_HOME:-~/.cache}/quipu/known. It is valid while the files that it depends on
are unchanged. Without stored answers, `quipu run` starts 0.2 s later.
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
"""Environment variables that select a compiler or change its output."""


def remembered(kind: str, question: Sequence[str], ask: Callable[[], tuple[Any, Iterable[Path]]]) -> Any:
    """Return the stored answer to a question; if there is none, call `ask` and store its answer.

    kind, question: identify the answer. ask: returns the answer and the files that it depends on. A stored answer is
    read from JSON, so its tuples have become lists.

    `ask` is called again if the size, modification time or inode number of one of the files has changed, or if an
    environment variable that selects compilers has another value. It is called each time if the cache is not writable.
    Exceptions of `ask` are passed on.
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
    """Return size (bytes), modification time (ns) and inode number of a file; [-1] if the file is missing."""
    try:
        status = Path(file).stat()
    except OSError:
        return [-1]
    return [status.st_size, status.st_mtime_ns, status.st_ino]

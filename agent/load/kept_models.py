# SPDX-License-Identifier: Apache-2.0
"""Cache models on disk, so that several commands fit the models of an experiment only once.

`quipu model`, `predict`, `diagnose`, `suggest` and `report` all need the models of an experiment. The cache is in
${XDG_CACHE_HOME:-~/.cache}/quipu/models. The name of a file is a hash of the measurements, the options, and the code
of the modeler. Files are written atomically. If a file cannot be read, the models are fitted again. If the cache is
too large, the least recently used files are removed.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import quipu.modeling
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.document import from_document, to_document
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.options import DEFAULT, Options
from quipu.modeling.prefix import user_cache
from quipu.modeling.times.predictions import time_models

# Models are cached only if fitting them took at least so many seconds. Reading them takes about as long.
LEAST_SECONDS = 0.5
# Largest size of all files of the cache together.
MOST_BYTES = 2**28


def analyze_once(experiment: Experiment, options: Options = DEFAULT) -> Analysis:
    """Return `analyze(experiment, options)`, from the cache if possible. Raises the errors of `analyze`."""
    folder = models_folder()
    if folder is None:
        return analyze(experiment, options)
    file = folder / f"{_key(experiment, options)}.json"
    with suppress(OSError, msgspec.DecodeError, FormatError):
        found = from_document(msgspec.json.decode(file.read_bytes()), file)
        os.utime(file)
        counts = count_models(experiment) if options.selector == DEFAULT.selector else None
        times = time_models(experiment, counts, found.exclusive)
        return replace(found, tree=experiment.tree, quality=experiment.quality, counts=counts, times=times)
    began = time.monotonic()
    made = analyze(experiment, options)
    if time.monotonic() - began >= LEAST_SECONDS:
        with suppress(OSError):
            _keep(file, msgspec.json.encode(to_document(made)))
    return made


def models_folder() -> Path | None:
    """Return the folder of the cache, which may not exist yet; None if there is no home folder."""
    cache = user_cache()
    return None if cache is None else cache / "models"


def _keep(file: Path, content: bytes) -> None:
    """Write a file atomically. Then remove the least recently used files if the cache has more than MOST_BYTES."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".writing-", delete=False) as scratch:
        try:
            scratch.write(content)
            scratch.close()
            Path(scratch.name).replace(file)
        except BaseException:
            Path(scratch.name).unlink()
            raise
    kept = sorted(((one.stat(), one) for one in file.parent.glob("*.json")), key=lambda one: -one[0].st_mtime)
    total = 0
    for facts, one in kept:
        total += facts.st_size
        if total > MOST_BYTES and one != file:
            one.unlink(missing_ok=True)


def _key(*values: object) -> str:
    digest = hashlib.sha256()
    for piece in (_code(), *values):
        _add(digest.update, piece)
    return digest.hexdigest()


def _code() -> tuple[str, ...]:
    """Return texts that identify the modeler: a hash of its code, and the versions of Python, numpy and scipy."""
    folder = Path(quipu.modeling.__path__[0])
    sources = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        sources.update(path.read_bytes())
    return sources.hexdigest(), platform.python_version(), version("numpy"), version("scipy")


def _add(update: Callable[[bytes], object], value: Any) -> None:
    """Add a value to a hash, with types and lengths so that two different values never add the same bytes."""
    update(f"{type(value).__name__}:".encode())
    if isinstance(value, np.ndarray):
        update(f"{value.dtype.str}{value.shape}".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, str | bytes):
        content = value.encode(errors="surrogatepass") if isinstance(value, str) else value
        update(f"{len(content)}:".encode())
        update(content)
    elif value is None or isinstance(value, int | float | Fraction | Enum):
        update(f"{value!r};".encode())
    else:
        parts = list(_parts(value))
        update(f"{len(parts)}:".encode())
        for part in parts:
            _add(update, part)


def _parts(value: Any) -> Iterator[Any]:
    if is_dataclass(value):
        yield from (getattr(value, one.name) for one in fields(value) if one.compare)
    elif isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, tuple | list | frozenset):
        yield from sorted(value) if isinstance(value, frozenset) else value
    else:
        raise TypeError(f"a {type(value).__name__} cannot be part of the name of a cached model")

# SPDX-License-Identifier: Apache-2.0
"""Properties of MPI operations by the names of their regions: the rows of mpi_wrap/operations.toml.

operations.toml explains the columns. The file is package data of quipu.mpi_wrap. This module finds the file without an
import of quipu.mpi_wrap, and reads the file at the first use.
"""

from __future__ import annotations

import importlib.util
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from .errors import FormatError

Kind = Literal["point-to-point", "collective", "one-sided", "io", "persistent", "completion", "uncounted"]
Completes = Literal["one", "any", "some", "all", "free", "start", "startall"]
WaitsFor = Literal[
    "sender", "receiver", "peers", "buffer", "message", "requests", "all", "root", "leaves", "neighbours", "file"
]
Span = Literal["mpi", "session", "job"]

# Names of regions, optionally with the P of the profiling interface, the underscores of Fortran, and the suffixes for
# large counts and the Fortran 2008 module.
_REGION = re.compile(r"p?mpi_(\w+?)(?:_c|_f08|_f08ts)*_*")
_STATUS = "status"


@dataclass(frozen=True)
class MpiOperation:
    """One MPI function: the columns of its row in operations.toml.

    persistent: the function only creates a request; the operation happens when the request is started.
    """

    name: str
    kind: Kind
    arguments: tuple[str, ...] = ()
    model: str | None = None
    waits_for: WaitsFor | None = None
    completes: Completes | None = None
    begins: Span | None = None
    ends: Span | None = None
    persistent: bool = False

    @property
    def waits_for_others(self) -> bool:
        """Return whether the operation usually waits for other processes. (A send only copies a short message.)"""
        return self.waits_for not in (None, "buffer")

    @property
    def polls(self) -> bool:
        """Return whether the operation tests for an event and returns at once, so that programs call it repeatedly."""
        return self.model in ("completion", "probe") and self.waits_for is None

    @property
    def completes_requests(self) -> bool:
        """Return whether the operation waits for requests, or tests them."""
        return self.model == "completion"

    @property
    def posts(self) -> bool:
        """Return whether the operation begins a nonblocking or persistent operation that another call completes."""
        if self.kind == "completion":
            return self.completes in ("start", "startall")
        return "request" in self.arguments and not self.persistent

    @property
    def begins_or_ends(self) -> bool:
        """Return whether the operation starts or ends MPI, a session, or the job."""
        return self.begins is not None or self.ends is not None


def operation_of(region: str) -> MpiOperation | None:
    """Return the operation of a region: MPI_Bcast for PMPI_Bcast, mpi_bcast__, MPI_Bcast_c, MPI_Bcast_f08.

    Returns None for regions of other kinds, and for MPI functions without a row.
    """
    name = _REGION.fullmatch(region.lower())
    return _operations().get(name[1]) if name else None


@cache
def _operations() -> Mapping[str, MpiOperation]:
    """Return all operations by their names in lower case without MPI_."""
    found = {}
    for name, entry in read_rows(table_path()).items():
        base = MpiOperation(name, **columns_of(entry))
        for operation in forms_of(base, entry.get("alike", ()), entry.get("forms", ())):
            found[operation.name.lower().removeprefix("mpi_")] = operation
    return found


def table_path() -> Path:
    """Return the path of operations.toml."""
    package = importlib.util.find_spec("quipu.mpi_wrap")
    assert package is not None and package.origin is not None
    return Path(package.origin).with_name("operations.toml")


def read_rows(path: Path) -> dict[str, Any]:
    """Return the rows of a table by the names of their operations, unchecked.

    Raises FormatError if the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(path, f"cannot read the table of MPI operations: {error}") from error


def columns_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an MpiOperation, without its name, from a valid row."""
    return {
        "kind": entry["kind"],
        "arguments": tuple(entry.get("arguments", "").split()),
        "persistent": entry["kind"] == "persistent",
        **{key: entry.get(key) for key in ("model", "waits_for", "completes", "begins", "ends")},
    }


Operation = TypeVar("Operation", bound=MpiOperation)


def forms_of(base: Operation, alike: Iterable[str], forms: Iterable[str]) -> Iterator[Operation]:
    """Yield the operations of a row.

    base: the operation that the row names. alike: names of operations with the same properties. forms: further forms of
    all of them, "nonblocking" (MPI_Ibcast) and "persistent" (MPI_Bcast_init).
    """
    for name in (base.name, *alike):
        yield replace(base, name=name)
        request = (*(argument for argument in base.arguments if argument != _STATUS), "request")
        if "nonblocking" in forms:
            yield replace(base, name=f"MPI_I{name[4].lower()}{name[5:]}", arguments=request, waits_for=None)
        if "persistent" in forms:
            if base.kind == "collective":
                request = (*request[:-1], "info", "request")
            made = replace(base, name=f"{name}_init", arguments=request, persistent=True)
            yield replace(made, model=None, waits_for=None)

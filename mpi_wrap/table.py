# SPDX-License-Identifier: Apache-2.0
"""Read and check the table of MPI operations (operations.toml), with the expressions for bytes in its rows.

`load_table` returns the rows. `operations_of` expands them into the functions that mpi.h may declare: functions with
the same rule, nonblocking and persistent forms, and forms with large counts (MPI_Send_c).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from quipu.modeling import mpi_operations
from quipu.modeling.errors import FormatError

from .expression import Expression, parse

TABLE = mpi_operations.table_path()

# Keys with a fixed set of values.
CHOICES = {
    "kind": get_args(mpi_operations.Kind),
    "completes": get_args(mpi_operations.Completes),
    "waits_for": get_args(mpi_operations.WaitsFor),
    "begins": get_args(mpi_operations.Span),
    "ends": get_args(mpi_operations.Span),
}
FORMS = ("nonblocking", "persistent")
# Keys that a row of the kind "uncounted" must not have.
COUNTED = frozenset({"arguments", "forms", "sent", "received", "room", "to", "from"})
KEYS = COUNTED | frozenset(CHOICES) | {"alike", "convention", "model"}
STATUS = "status"
# Variables of generated wrappers. Arguments must not have these names.
RESERVED = frozenset(
    {"result", "call", "region", "group", "sent", "received", "to_peer", "from_peer", "completion", "own_status", "i"}
)


@dataclass(frozen=True)
class Operation(mpi_operations.MpiOperation):
    """One MPI function of the table, with the bytes that its wrapper counts.

    - sent, received: expressions for bytes; None: this direction counts nothing, or see the next line.
    - received_from_status: the status of the completed operation contains the received bytes; `received` is None.
    - room: bytes of the receive buffer, which count if the nonblocking form sets no status (MPICH); None: not needed.
    - to, source: names of the arguments with the rank of the peer; None: there is no such argument.
    - convention: how the bytes are counted, in words.
    """

    sent: Expression | None = None
    received: Expression | None = None
    received_from_status: bool = False
    room: Expression | None = None
    to: str | None = None
    source: str | None = None
    convention: str = ""

    @property
    def group_argument(self) -> str | None:
        """Return the name of the argument that determines the participating processes: comm, win or file; else None."""
        return next((name for name in ("comm", "win", "file") if name in self.arguments), None)

    @property
    def counts_messages(self) -> bool:
        """Return whether each direction (sent, received) that the row gives counts one message, even for 0 bytes."""
        return self.kind in ("point-to-point", "one-sided") or (self.kind == "persistent" and self.to_or_from)

    @property
    def to_or_from(self) -> bool:
        """Return whether the operation has an argument with the rank of a peer."""
        return self.to is not None or self.source is not None


@dataclass(frozen=True)
class Row:
    """One row of the file: an operation, and further functions that follow the same rule.

    alike: names of these functions. forms: which of `FORMS` exist. line: number of the line where the row begins.
    """

    operation: Operation
    alike: tuple[str, ...]
    forms: tuple[str, ...]
    line: int

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the blocking functions of the row."""
        return (self.operation.name, *self.alike)


def load_table(path: Path = TABLE) -> tuple[Row, ...]:
    """Read the table. Raises FormatError with the line of the wrong row."""
    data = mpi_operations.read_rows(path)
    lines = {line.strip(): number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)}
    rows = tuple(_row(name, entry, path, lines.get(f"[{name}]", 1)) for name, entry in data.items())
    seen: set[str] = set()
    for row in rows:
        for name in row.names:
            if name in seen:
                raise FormatError(path, f"{name} has two rows", row.line)
            seen.add(name)
    return rows


def operations_of(rows: Iterable[Row]) -> Mapping[str, Operation]:
    """Return all counted functions of the table by name, in all forms, including the forms with large counts."""
    found: dict[str, Operation] = {}
    for row in rows:
        if row.operation.kind != "uncounted":
            for operation in mpi_operations.forms_of(row.operation, row.alike, row.forms):
                found[operation.name] = operation
    found.update({f"{name}_c": replace(operation, name=f"{name}_c") for name, operation in list(found.items())})
    return found


def _row(name: str, entry: object, path: Path, line: int) -> Row:
    if not isinstance(entry, dict):
        raise FormatError(path, f"{name}: a row starts with [{name}]", line)
    _check_keys(name, entry, path, line)
    columns = mpi_operations.columns_of(entry)
    arguments = columns["arguments"]
    if taken := sorted(RESERVED & set(arguments)):
        raise FormatError(path, f"{name}: an argument cannot be called {taken[0]!r}; choose another name", line)
    for key in ("to", "from"):
        if key in entry and entry[key] not in arguments:
            raise FormatError(path, f"{name}: {key} is not the name of an argument", line)
    sent, received, room = (
        None if entry.get(key) in (None, STATUS) else parse(_text(entry, key, name, path, line), arguments, path, line)
        for key in ("sent", "received", "room")
    )
    if entry.get("sent") == STATUS:
        raise FormatError(path, f"{name}: a status contains no sent bytes; name another argument", line)
    operation = Operation(
        name,
        **columns,
        sent=sent,
        received=received,
        received_from_status=entry.get("received") == STATUS,
        room=room,
        to=entry.get("to"),
        source=entry.get("from"),
        convention=_text(entry, "convention", name, path, line),
    )
    forms = _texts(entry, "forms", name, path, line)
    if set(forms) - set(FORMS):
        raise FormatError(path, f"{name}: forms are {', '.join(FORMS)}", line)
    return Row(operation, _texts(entry, "alike", name, path, line), forms, line)


def _check_keys(name: str, entry: Mapping[str, object], path: Path, line: int) -> None:
    """Raise FormatError for an unknown key, a key that is missing or not allowed for the kind, or a wrong value."""
    if unknown := sorted(set(entry) - KEYS):
        raise FormatError(path, f"{name}: unknown key {unknown[0]!r}", line)
    for key, choices in CHOICES.items():
        if (key in entry or key == "kind") and _text(entry, key, name, path, line) not in choices:
            raise FormatError(path, f"{name}: {key} must be one of {', '.join(choices)}", line)
    if (entry["kind"] == "completion") != ("completes" in entry):
        raise FormatError(path, f"{name}: kind completion needs completes, and no other kind has it", line)
    if entry["kind"] != "uncounted":
        _text(entry, "arguments", name, path, line)
    elif superfluous := sorted(COUNTED & set(entry)):
        raise FormatError(path, f"{name}: kind uncounted has no {superfluous[0]}: remove it", line)


def _text(entry: Mapping[str, object], key: str, name: str, path: Path, line: int) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise FormatError(path, f"{name}: {key} must be a text", line)
    return value


def _texts(entry: Mapping[str, object], key: str, name: str, path: Path, line: int) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise FormatError(path, f"{name}: {key} must be a list of texts", line)
    return tuple(value)

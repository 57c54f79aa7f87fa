"""The table of MPI operations that move data (operations.toml), read and checked.

`load_table` gives the rows; `operations_of` expands them into the functions that mpi.h may declare: alike
functions, nonblocking and persistent forms, large-count twins.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from quipu.modeling.errors import FormatError

from .expression import Expression, parse

TABLE = Path(__file__).with_name("operations.toml")

Kind = Literal["point-to-point", "collective", "one-sided", "io", "persistent", "completion"]
KINDS = ("point-to-point", "collective", "one-sided", "io", "persistent", "completion")
Completes = Literal["one", "any", "some", "all", "free", "start", "startall"]
COMPLETES = ("one", "any", "some", "all", "free", "start", "startall")
FORMS = ("nonblocking", "persistent")
KEYS = frozenset(
    {"kind", "arguments", "alike", "forms", "sent", "received", "room", "to", "from", "convention", "completes"}
)
STATUS = "status"
# Names of variables in generated wrappers.
RESERVED = frozenset(
    {"result", "call", "region", "group", "sent", "received", "to_peer", "from_peer", "completion", "own_status", "i"}
)


@dataclass(frozen=True)
class Operation:
    """One MPI function of the table.

    `received_from_status` says that the status of the completed operation gives the received bytes; `received`
    is then None, and `room` may say how much fits into the buffer. `persistent` says that bytes count when the
    request is started, not here.
    """

    name: str
    kind: Kind
    arguments: tuple[str, ...]
    sent: Expression | None
    received: Expression | None
    received_from_status: bool
    room: Expression | None
    to: str | None
    source: str | None
    convention: str
    completes: Completes | None = None
    persistent: bool = False

    @property
    def group_argument(self) -> str | None:
        """The argument that tells the processes that take part: comm, win or file."""
        return next((name for name in ("comm", "win", "file") if name in self.arguments), None)

    @property
    def counts_messages(self) -> bool:
        """Whether a direction with an expression is one message, however many bytes it has."""
        return self.kind in ("point-to-point", "one-sided") or (self.kind == "persistent" and self.to_or_from)

    @property
    def to_or_from(self) -> bool:
        """Whether a peer is named."""
        return self.to is not None or self.source is not None


@dataclass(frozen=True)
class Row:
    """One row of the file: the operation that it names, and the others that follow the same rule."""

    operation: Operation
    alike: tuple[str, ...]
    forms: tuple[str, ...]
    line: int

    @property
    def names(self) -> tuple[str, ...]:
        """The blocking functions of the row."""
        return (self.operation.name, *self.alike)


def load_table(path: Path = TABLE) -> tuple[Row, ...]:
    """Read the table. Raises FormatError with the line of the row at fault."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FormatError(path, f"cannot read the table of MPI operations: {error}") from error
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    rows = tuple(_row(name, entry, path, lines.get(f"[{name}]", 1)) for name, entry in data.items())
    seen: set[str] = set()
    for row in rows:
        for name in row.names:
            if name in seen:
                raise FormatError(path, f"{name} has two rows", row.line)
            seen.add(name)
    return rows


def operations_of(rows: Iterable[Row]) -> Mapping[str, Operation]:
    """Every function of the table by name, in all forms and with large-count twins."""
    found: dict[str, Operation] = {}
    for row in rows:
        for name in row.names:
            base = replace(row.operation, name=name)
            found[name] = base
            if "nonblocking" in row.forms:
                form = _nonblocking(base)
                found[form.name] = form
            if "persistent" in row.forms:
                form = _persistent(base)
                found[form.name] = form
    found.update({f"{name}_c": replace(operation, name=f"{name}_c") for name, operation in list(found.items())})
    return found


def _nonblocking(base: Operation) -> Operation:
    name = "MPI_I" + base.name[4].lower() + base.name[5:]
    arguments = tuple(argument for argument in base.arguments if argument != STATUS)
    return replace(base, name=name, arguments=(*arguments, "request"))


def _persistent(base: Operation) -> Operation:
    arguments = tuple(argument for argument in base.arguments if argument != STATUS)
    if base.kind == "collective":
        arguments += ("info",)
    return replace(base, name=base.name + "_init", arguments=(*arguments, "request"), persistent=True)


def _row(name: str, entry: object, path: Path, line: int) -> Row:
    if not isinstance(entry, dict):
        raise FormatError(path, f"{name}: a row starts with [{name}]", line)
    if unknown := sorted(set(entry) - KEYS):
        raise FormatError(path, f"{name}: unknown key {unknown[0]!r}", line)
    kind = _text(entry, "kind", name, path, line)
    if kind not in KINDS:
        raise FormatError(path, f"{name}: kind must be one of {', '.join(KINDS)}", line)
    arguments = tuple(_text(entry, "arguments", name, path, line).split())
    if taken := sorted(RESERVED & set(arguments)):
        raise FormatError(path, f"{name}: an argument cannot be called {taken[0]!r}; choose another name", line)
    completes = entry.get("completes")
    if (kind == "completion") != (completes in COMPLETES):
        raise FormatError(path, f"{name}: kind completion needs completes = one of {', '.join(COMPLETES)}", line)
    for key in ("to", "from"):
        if key in entry and entry[key] not in arguments:
            raise FormatError(path, f"{name}: {key} names no argument", line)
    sent, received, room = (
        None if entry.get(key) in (None, STATUS) else parse(_text(entry, key, name, path, line), arguments, path, line)
        for key in ("sent", "received", "room")
    )
    if entry.get("sent") == STATUS:
        raise FormatError(path, f"{name}: a status says nothing of what was sent", line)
    operation = Operation(
        name=name,
        kind=cast(Kind, kind),
        arguments=arguments,
        sent=sent,
        received=received,
        received_from_status=entry.get("received") == STATUS,
        room=room,
        to=entry.get("to"),
        source=entry.get("from"),
        convention=_text(entry, "convention", name, path, line),
        completes=cast(Completes | None, completes),
        persistent=kind == "persistent",
    )
    forms = _texts(entry, "forms", name, path, line)
    if set(forms) - set(FORMS):
        raise FormatError(path, f"{name}: forms are {', '.join(FORMS)}", line)
    return Row(operation, _texts(entry, "alike", name, path, line), forms, line)


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

# SPDX-License-Identifier: Apache-2.0
"""Read databases of HPCToolkit as an experiment, with Hatchet.

Older databases have experiment.xml and metric-db files, newer ones meta.db and profile.db.
"""

from __future__ import annotations

import contextlib
import io
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
from quipu.modeling.errors import EnvironmentProblem, FormatError
from quipu.modeling.experiment import Experiment, FloatArray, Region
from quipu.modeling.limits import Reading, reading
from quipu.modeling.metrics import metric_named

from ...views import Over
from ..extrap.collect import kind_of
from .folders import Profile, in_order, parameters_in
from .stacked import Stacked

_CALL_SITE = re.compile(r"\d+:(?=\D)")  # Hatchet writes the line of a call before the name of the callee
_INCLUSIVE = re.compile(r"(.+) \((?:inc|I)\)\Z")
_BYTES_PER_BYTE = 60  # bytes of memory that Hatchet needs per byte of the database
# Header of a metric-db file: tag with version and byte order, number of nodes, number of values of each node.
_HEAD = struct.Struct(">24sII")
_DAMAGED = (LookupError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError, OSError, EOFError)
_DAMAGED_FILE = (ParseError, struct.error, RecursionError, *_DAMAGED)


def read_databases(source: Path, folders: list[Path], over_ranks: Over = "mean") -> Experiment:
    """Return databases as an experiment.

    folders: the databases; their names have the parameters (see `folders`). If `source` is itself the only database,
    the number of its ranks is the parameter p. over_ranks: how to combine the values of the ranks.

    Values are exclusive values of functions. Loops and statements count for their function. Calls of the same function
    from several lines of a caller are one call path. Raises EnvironmentProblem without Hatchet, FormatError for invalid
    names and damaged databases.
    """
    try:
        import hatchet
    except ImportError as error:
        raise EnvironmentProblem(
            f"{source}: reading databases of HPCToolkit needs Hatchet: pip install 'quipu[hatchet]'"
        ) from error
    alone = folders == [source]
    profiles = [] if alone else in_order([Profile(path, *parameters_in(path.name, path)) for path in folders])
    reader = _Reader(over_ranks)
    ranks = [reader.read(hatchet.GraphFrame, path) for path in ([source] if alone else [one.path for one in profiles])]
    profiles = profiles or [Profile(source, {"p": float(ranks[0])}, 1)]
    return reader.experiment(source, profiles, sum(map(_size, folders)))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class _Reader(Stacked):
    """Reads several databases, one after the other."""

    def read(self, graph_frame: Any, folder: Path) -> int:
        """Add a database, and return its number of ranks. Raises FormatError if it is damaged.

        graph_frame: the class GraphFrame of Hatchet.
        """
        try:
            with reading(folder, _size(folder)) as cost, contextlib.redirect_stdout(io.StringIO()):
                cost.spend(_BYTES_PER_BYTE * _size(folder))
                older = (folder / "experiment.xml").is_file()
                if older and not any(folder.glob("*.metric-db")):
                    raise FormatError(folder, "has no metric-db files: write the values of each rank with hpcprof-mpi")
                if older:
                    _check_values(folder, cost)
                read = graph_frame.from_hpctoolkit if older else graph_frame.from_hpctoolkit_latest
                frame = read(str(folder))
                return self._take(frame, 1e-6 if older and _microseconds(folder) else 1.0, cost)
        except _DAMAGED_FILE as error:
            raise FormatError(folder, f"cannot be read as a database of HPCToolkit: {error!r}") from error

    def _take(self, frame: Any, seconds: float, cost: Reading) -> int:
        """Add the values of a frame of Hatchet, and return its number of ranks. seconds: per unit of its times."""
        table = frame.dataframe.reset_index()
        metrics = {found[1]: name for name in table.columns if (found := _INCLUSIVE.match(str(name)))}
        if not metrics:
            raise ValueError("it contains no inclusive metrics")
        numbers = table["rank"].to_numpy() if "rank" in table else np.zeros(len(table), dtype=np.int64)
        rank = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
        rows: dict[Any, list[int]] = {}
        for row, node in enumerate(table["node"]):
            rows.setdefault(node._hatchet_nid, []).append(row)
        values: dict[str, dict[int, FloatArray]] = {name: {} for name in metrics}
        columns = {name: table[column].to_numpy(dtype=np.float64, na_value=0.0) for name, column in metrics.items()}
        files = table["file"].to_numpy() if "file" in table else None
        lines = table["line"].to_numpy() if "line" in table else None
        ranks = int(rank.max()) + 1
        pending = [(root, -1, 0) for root in reversed(frame.graph.roots)]
        while pending:
            node, caller, depth = pending.pop()
            cost.check_depth(depth)
            cost.check_time()
            here, at = caller, rows.get(node._hatchet_nid, [])
            if node.frame.get("type") == "function" or caller < 0:
                name = _CALL_SITE.sub("", str(node.frame.get("name") or "<unnamed>"), count=1)
                file = str(files[at[0]] or "") if files is not None and at else ""
                line = int(lines[at[0]] or 0) if lines is not None and at else 0
                file = "" if file.startswith("<") else file
                here = self.tree.node(caller, Region(name, name, kind_of(name), file, line))
                for metric, column in columns.items():
                    inclusive = np.zeros(ranks)
                    np.add.at(inclusive, rank[at], column[at])
                    of = values[metric]
                    of[here] = of.get(here, np.zeros(ranks)) + inclusive
                    if caller >= 0:
                        of[caller] = of[caller] - inclusive
            pending += [(child, here, depth + 1) for child in reversed(node.children)]
        self.values.append({metric: self._over_ranks(metric, of, seconds) for metric, of in values.items()})
        return ranks

    def _over_ranks(self, metric: str, by_node: dict[int, FloatArray], seconds: float) -> dict[int, float]:
        """Return the values of a metric, combined over ranks, by call path. by_node: values of each rank."""
        described = self.metrics.setdefault(metric, metric_named(metric))
        factor = seconds if described.unit == "s" else 1.0
        every = np.arange(len(next(iter(by_node.values()))))
        # Differences of inclusive values that are tiny relative to the largest rank are rounding errors and become 0.
        return {
            node: self.combined(
                np.where(np.abs(one) < 1e-9 * np.abs(one).max(initial=0), 0.0, one) * factor, every, described
            )
            for node, one in by_node.items()
        }


def _check_values(folder: Path, cost: Reading) -> None:
    """Check the sizes in the headers of metric-db files. Raises FormatError if a file is too short for its header.

    Hatchet allocates memory of these sizes before it reads the values.
    """
    for path in folder.glob("*.metric-db"):
        with path.open("rb") as file:
            _, nodes, metrics = _HEAD.unpack(file.read(_HEAD.size))
        if _HEAD.size + 8 * nodes * metrics > path.stat().st_size:
            raise FormatError(path, f"is cut off: {nodes} nodes with {metrics} values do not fit into it")
        cost.spend(8 * nodes * (metrics + 3))


def _microseconds(folder: Path) -> bool:
    """Return whether the times of an older database are in microseconds, as the names of its metrics show."""
    with (folder / "experiment.xml").open(encoding="utf-8", errors="replace") as file:
        head = file.read(1 << 20)
    return "(usec)" in head

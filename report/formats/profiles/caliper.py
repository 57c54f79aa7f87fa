# SPDX-License-Identifier: Apache-2.0
"""Read files of Caliper (.cali) as an experiment, with caliper-reader."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.documents import check_document, is_parameter, json_of
from quipu.modeling.errors import EnvironmentProblem, FormatError
from quipu.modeling.experiment import Experiment, Region
from quipu.modeling.limits import Reading, current, reading_file

from ...views import Over
from ..extrap.collect import kind_of
from ..extrap.content import decode
from ..stacks.caliper import LINKER_NAMES, PARAMETERS, PREDEFINED, REPETITION
from .caliper_columns import chosen, column_of
from .folders import Profile, in_order, parameters_in
from .stacked import Stacked

OUTSIDE = "<outside of regions>"
_SIZE = "mpi.world.size"
_NUMBER = r"(?<!\\),{}=(\d+)(?=[,\s]|\Z)"
_ID, _PARENT = re.compile(_NUMBER.format("id")), re.compile(_NUMBER.format("parent"))
# Memory of a node, of a step of a call path, and of a record in caliper-reader (measured).
_NODE_BYTES, _STEP_BYTES, _RECORD_BYTES = 1200, 16, 600
# Names of metadata whose numbers may differ between runs, but which are not parameters.
_NO_PARAMETER = re.compile(
    r"(cali[.]|quipu[.]|.*(uid|gid|pid|time|date|hash|version|memory|jobid|job_id|figure_of_merit))", re.IGNORECASE
)
_DAMAGED = (LookupError, ValueError, TypeError, AttributeError, StopIteration, RecursionError)


def read_caliper(source: Path, files: list[Path], over_ranks: Over = "mean") -> Experiment:
    """Return files of Caliper as an experiment. Each file is one run.

    The parameters of a run are in the name of its file, such as app.p4.n100.r1.cali (see `folders`). If the names have
    no parameters, the numbers in the metadata that differ between the files are the parameters. For a single file, the
    number of ranks is the parameter p. Files that Quipu wrote name their parameters in their metadata.

    Values are converted to exclusive values. over_ranks: how to combine the values of the ranks; Caliper may already
    have combined them in this way.

    Raises EnvironmentProblem without caliper-reader, FormatError for damaged files and if no parameters are known.
    """
    try:
        from caliperreader import CaliperStreamReader
        from caliperreader.readererror import ReaderError
    except ImportError as error:
        raise EnvironmentProblem(
            f"{source}: reading files of Caliper needs caliper-reader: pip install 'quipu[caliper]'"
        ) from error
    reader = _Reader(over_ranks)
    metadata: dict[Path, Mapping[str, Any]] = {}
    bare: list[Path] = []
    for path in files:
        with reading_file(path, special=path == source) as content:
            lines = _Lines(decode(content, path), current())
            stream = CaliperStreamReader()
            records: list[dict[str, Any]] = []
            try:
                stream.read(lines, lambda record, kept=records: kept.append(_counted(record)))
                ranks = reader.take(stream, records, _linker_names(stream.globals, path))
            except (*_DAMAGED, ReaderError) as error:
                reason = str(getattr(error, "message", "") or repr(error))[:200]
                raise FormatError(path, f"cannot be read as a file of Caliper: {reason}", lines.number) from error
        size = _number(stream.globals.get(_SIZE))
        bare += [] if stream.globals else [path]
        metadata[path] = {**stream.globals, _SIZE: size if size and size > 0 else float(ranks)}
    values = dict(zip(files, reader.values, strict=True))
    profiles = in_order(_profiles(metadata, bare))
    reader.values = [values[profile.path] for profile in profiles]
    # Files of Quipu also contain zeros. A missing value in them is therefore unknown; in files of Caliper it is 0.
    missing = math.nan if all(PARAMETERS in one for one in metadata.values()) else 0.0
    return reader.experiment(source, profiles, sum(path.stat().st_size for path in files), missing)


class _Lines:
    """The lines of a file. Raises ValueError for a node whose parent does not precede it.

    caliper-reader would not end if parents formed a cycle.
    """

    def __init__(self, text: str, cost: Reading) -> None:
        self._text, self._cost = text, cost
        self._depth = dict.fromkeys(range(PREDEFINED), 0)
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for line in io.StringIO(self._text):
            self.number += 1
            if not line.strip():
                continue
            self._cost.check_time()
            if line.startswith("__rec=node,"):
                self._check(line)
            yield line

    def _check(self, line: str) -> None:
        number, parent = _ID.search(line), _PARENT.search(line)
        if number is None or int(number[1]) in self._depth or (parent and int(parent[1]) not in self._depth):
            raise ValueError("a node needs a unique id and a parent that comes before it")
        depth = self._depth[int(number[1])] = self._depth[int(parent[1])] + 1 if parent else 0
        self._cost.check_depth(depth)
        self._cost.spend(_NODE_BYTES)


def _counted(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record, and count its memory towards the limit."""
    current().spend(_RECORD_BYTES + _STEP_BYTES * len(record.get("path", ())))
    return record


class _Reader(Stacked):
    """Reads several files, one after the other."""

    def __init__(self, over_ranks: Over) -> None:
        super().__init__(over_ranks)
        self._names: dict[str, str] = {}
        self._of: dict[str, str] = {}

    def take(self, stream: Any, records: list[dict[str, Any]], linker_names: Mapping[str, str]) -> int:
        """Add the records of one file, and return its number of ranks. Raises ValueError if it has no usable column.

        linker_names: result of `_linker_names`.
        """
        records = [one for one in records if one.get("spot.channel", "regionprofile") == "regionprofile"]
        names = {name for record in records for name in record if name != "path"}
        columns = [column for name in sorted(names) if (column := column_of(stream.attribute(name)))]
        columns = chosen(columns, self.over_ranks)
        if not columns:
            raise ValueError(f"it has no column of sums that is combined over ranks by {self.over_ranks}")
        numbers = {int(record.get("mpi.rank", 0)) for record in records}
        places = {number: place for place, number in enumerate(sorted(numbers))}
        ranks = np.arange(len(places))
        paths = [self._node(record, linker_names) for record in records]
        result: dict[str, dict[int, float]] = {}
        for column in columns:
            found: dict[int, Any] = {}
            for record, path in zip(records, paths, strict=True):
                if column.attribute in record:
                    of = found.setdefault(path[-1], np.zeros(len(places)))
                    of[places[int(record.get("mpi.rank", 0))]] += _finite(record[column.attribute]) * column.factor
            if column.inclusive:
                found = _exclusive(found, {path[-1]: path for path in paths})
            metric = self.metrics.setdefault(column.metric.name, column.metric)
            result[metric.name] = {node: self.combined(values, ranks, metric) for node, values in found.items()}
        self.values.append(result)
        return len(places)

    def _name(self, text: str, linker_names: Mapping[str, str]) -> str:
        """Return the linker name of a region; its displayed name `text` if another region has the same linker name.

        The result is the same in all files.
        """
        if text not in self._names:
            name = linker_names.get(text, text)
            self._names[text] = name if self._of.setdefault(name, text) == text else text
        return self._names[text]

    def _node(self, record: dict[str, Any], linker_names: Mapping[str, str]) -> tuple[int, ...]:
        """Return the indices of all call paths from the root to the call path of a record."""
        chain: list[int] = []
        for text in map(str, record.get("path") or [OUTSIDE]):
            region = Region(self._name(text, linker_names), text, kind_of(text))
            chain.append(self.tree.node(chain[-1] if chain else -1, region))
        return tuple(chain)


def _linker_names(metadata: Mapping[str, Any], path: Path) -> Mapping[str, str]:
    """Return the linker names of regions by displayed name, from a file that Quipu wrote; empty for other files.

    Raises FormatError if they are damaged.
    """
    text = metadata.get(LINKER_NAMES)
    if not isinstance(text, str):
        return {}
    check_document(text.encode("utf-8", "replace"))
    names = json_of(text, path)
    if not isinstance(names, dict) or not all(isinstance(name, str) and name for name in names.values()):
        raise FormatError(path, f"{LINKER_NAMES} is not a JSON object of names")
    return names


def _exclusive(inclusive: dict[int, Any], paths: Mapping[int, tuple[int, ...]]) -> dict[int, Any]:
    """Return exclusive values: inclusive values minus the inclusive values of the nearest call paths below with values.

    paths: for each call path, the indices from the root to it.
    """
    exclusive = {node: values.copy() for node, values in inclusive.items()}
    for node, values in inclusive.items():
        caller = next((one for one in reversed(paths[node][:-1]) if one in inclusive), None)
        if caller is not None:
            exclusive[caller] -= values
    return exclusive


def _finite(text: Any) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _profiles(metadata: Mapping[Path, Mapping[str, Any]], bare: list[Path]) -> list[Profile]:
    """Return the parameters of each file, as `read_caliper` describes. Raises FormatError if there are none.

    metadata: numbers and texts by file. bare: the files without metadata, which may have been cut off.
    """
    if all(PARAMETERS in one for one in metadata.values()):
        return [_quipu_file(path, one) for path, one in metadata.items()]
    if len(metadata) == 1:
        ((path, only),) = metadata.items()
        return [Profile(path, {"p": only[_SIZE]}, 1)]
    try:
        return [Profile(path, *parameters_in(path.name.removesuffix(".cali"), path)) for path in metadata]
    except FormatError:
        if 0 < len(bare) < len(metadata):
            raise FormatError(
                bare[0], "has no metadata of its run (cut off?), and its name has no parameters"
            ) from None
        numbers = [{name: _number(value) for name, value in one.items()} for one in metadata.values()]
        common = set.intersection(*({name for name, value in one.items() if value is not None} for one in numbers))
        differ = {name for name in common if len({one[name] for one in numbers}) > 1}
        names = sorted(name for name in differ if not _NO_PARAMETER.fullmatch(name))
        if not names:
            raise
        typed = {name: "p" if name == _SIZE else re.sub(r"\W", "_", name, flags=re.ASCII) for name in names}
        return [
            Profile(path, {typed[name]: one[name] or 0.0 for name in names}, 1)
            for path, one in zip(metadata, numbers, strict=True)
        ]


def _quipu_file(path: Path, metadata: Mapping[str, Any]) -> Profile:
    """Return the parameters of a file that Quipu wrote. Raises FormatError if they are damaged."""
    names = [name for name in str(metadata[PARAMETERS]).split(" ") if name]
    if wrong := [name for name in names if not is_parameter(name) or _number(metadata.get(name)) is None]:
        raise FormatError(path, f"{PARAMETERS} names {wrong[0]!r}, which is not a number in its metadata")
    repetition = _number(metadata.get(REPETITION, 1)) or 1
    return Profile(path, {name: _number(metadata[name]) or 0.0 for name in names}, int(repetition))


def _number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None

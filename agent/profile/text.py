# SPDX-License-Identifier: Apache-2.0
"""Read the texts of raw profiles: the table of metrics, regions, attributes, names of threads, and delays."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

import numpy as np
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import IntArray, Metric, Region, RegionKind
from quipu.modeling.limits import whole_number

from ..archive.metadata import RESERVED
from ..layout import LAYOUT

REGION, _ATTRIBUTE, _LOCATION, _REST, _DELAY = (
    LAYOUT.numbers[f"TEXT_{name}"] for name in ("REGION", "ATTRIBUTE", "LOCATION", "REST", "DELAY")
)
_KINDS = {str(LAYOUT.numbers[kind.name]): kind for kind in RegionKind}
_HOOKS = tuple(str(LAYOUT.numbers[name]) for name in ("HOOKED", "LEFT_OUT", "QUIET", "INLINED"))
_HOOKED, _LEFT_OUT = _HOOKS[:2]
UNKNOWN_REGION = Region("(unknown region)", "(unknown region)", RegionKind.USER)
_RECORD = LAYOUT.packed("profile_text")
_NUMBERS = re.compile(r"(?:[0-9]{1,20} )*[0-9]{1,20}", re.ASCII)
_DELAYED = re.compile(r"(?:[0-9]{1,20} )*[0-9]{1,20}\x1f(?:(?:[0-9]{1,20} )*[0-9]{1,20})?\x1f[0-9]{1,19}", re.ASCII)


def parse_metric_table(path: Path, table: bytes, count: int) -> tuple[Metric, ...]:
    """Return the metrics in the header of a profile. Raises FormatError if the table is invalid.

    table: the text of the table. count: expected number of metrics.
    """
    try:
        return _metrics(table.split(b"\0", 1)[0], count)
    except ValueError as error:
        raise FormatError(path, f"is damaged: {error}") from error


@lru_cache(16)  # the tables of all processes of a run are usually equal
def _metrics(table: bytes, count: int) -> tuple[Metric, ...]:
    lines = [line for line in table.decode("utf-8", "replace").split("\n") if line]
    if len(lines) != count or not lines:
        raise ValueError(f"the header promises {count} metrics and describes {len(lines)}")
    metrics = []
    for line in lines:
        fields = line.split("\t")
        if len(fields) != 5 or fields[2] not in ("effort", "cost") or fields[3] not in ("sum", "max"):
            raise ValueError(f"metric entry {line[:60]!r}")
        name, unit, kind, over, description = fields
        if not name.isidentifier() or name in RESERVED:
            raise ValueError(f"metric name {name[:60]!r}")
        metrics.append(
            Metric(name, unit, cast(Literal["effort", "cost"], kind), cast(Literal["sum", "max"], over), description)
        )
    if len({metric.name for metric in metrics}) != count:
        raise ValueError("a metric is described twice")
    return tuple(metrics)


@dataclass(frozen=True)
class ResidualCounts:
    """The counts that one call path got after the ranks had combined their profiles over MPI (reduction).

    location: number of the thread. regions: ids of the regions of the call path, from the root. counts: the increase of
    each metric of the profile (the value itself for metrics that are a maximum), then visits and additions (see rest in
    profile.def).
    """

    location: int
    regions: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class DelayRecord:
    """How long other ranks waited in an MPI operation because this process was late.

    Call paths are tuples of region ids from the root. operation: the MPI operation in which the others waited. cause:
    the call path of this process that made it late; empty if unknown. location: the late thread. ticks: the waiting
    time in clock ticks.
    """

    location: int
    operation: tuple[int, ...]
    cause: tuple[int, ...]
    ticks: int


class ProfileTexts:
    """Collects the text records of a profile.

    - regions: by id. left_out: ids of regions that a filter excludes. without_hook: ids of all regions without hooks:
      excluded, small or inlined ones.
    - attributes: of the process. location_attributes: by location. locations: names of the threads by location.
    - residuals, delays: see the classes of the records.
    """

    def __init__(self) -> None:
        """Create the object without records."""
        self.regions: dict[int, Region] = {}
        self.left_out: set[int] = set()
        self.without_hook: set[int] = set()
        self.attributes: dict[str, str] = {}
        self.location_attributes: dict[int, dict[str, str]] = {}
        self.locations: dict[int, str] = {}
        self.residuals: list[ResidualCounts] = []
        self.delays: list[DelayRecord] = []
        self._digest = hashlib.blake2b(digest_size=16)

    @property
    def names(self) -> bytes:
        """Return a digest of all records of regions that were read so far; equal digests mean equal regions."""
        return self._digest.digest()

    def parse(self, chunk: bytes, problems: list[str]) -> None:
        """Read the records of one text chunk.

        A damaged record is left out; after a record that exceeds the chunk, the rest is left out, too. `problems` gets
        a text for both.
        """
        offset = 0
        while offset + _RECORD.size <= len(chunk):
            kind, length, number = _RECORD.unpack_from(chunk, offset)
            if kind == 0 and length == 0:
                break
            start = offset + _RECORD.size
            if start + length > len(chunk):
                problems.append("a text record is longer than its chunk: the rest of the chunk is left out")
                return
            if kind == REGION:
                self._digest.update(chunk[offset : start + length])
            text = chunk[start : start + length].decode("utf-8", "replace").replace("\0", "\ufffd")
            if not self._take(kind, number, text):
                problems.append(f"a text record is damaged and was left out: {text[:60]!r}")
            offset = start + (length + 7) // 8 * 8

    def _take(self, kind: int, number: int, text: str) -> bool:
        """Store a record. number: its id. Returns False if the record is invalid."""
        fields = text.split("\x1f")
        if kind == REGION and len(fields) == 6 and 0 < number < 1 << 62 and fields[0]:
            name, display, file, line, region_kind, hook = fields
            number_of_line = whole_number(line, 9)
            if number_of_line is None:
                return False
            if region_kind not in _KINDS or hook not in _HOOKS:
                return False
            if hook == _LEFT_OUT:
                self.left_out.add(number)
            if hook != _HOOKED:
                self.without_hook.add(number)
            self.regions[number] = Region(name, display or name, _KINDS[region_kind], file, number_of_line)
            return True
        if kind == _ATTRIBUTE and len(fields) == 2 and fields[0]:
            owner = self.attributes if number == 0 else self.location_attributes.setdefault(number - 1, {})
            owner[fields[0]] = fields[1]
            return True
        if kind == _LOCATION:
            self.locations[number] = text
            return True
        if kind == _REST and len(fields) == 2 and number < 1 << 31 and _NUMBERS.fullmatch(fields[0] + fields[1]):
            path, counts = (tuple(map(int, field.split())) for field in fields)
            self.residuals.append(ResidualCounts(number, path, counts))
            return True
        if kind == _DELAY and len(fields) == 3 and number < 1 << 31 and _DELAYED.fullmatch(text):
            operation, cause, ticks = (tuple(map(int, field.split())) for field in fields)
            self.delays.append(DelayRecord(number, operation, cause, ticks[0]))
            return True
        return False

    def regions_for(self, used: IntArray, problems: list[str]) -> dict[int, Region]:
        """Return the regions with the ids `used`, by id; an id without a record becomes `UNKNOWN_REGION`.

        Id 0, the root of a location, is left out.
        """
        found: dict[int, Region] = {}
        unknown = 0
        for number in used.astype(np.int64).tolist():
            if number == 0:
                continue
            unknown += number not in self.regions
            found[number] = self.regions.get(number, UNKNOWN_REGION)
        if unknown:
            problems.append(f"{unknown} regions have no name: their counts are under {UNKNOWN_REGION.display}")
        return found

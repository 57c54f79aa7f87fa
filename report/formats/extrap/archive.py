# SPDX-License-Identifier: Apache-2.0
"""Read experiment files of Extra-P 4 (.extra-p): ZIP archives with experiment.json, and arrays in NumPy's format.

The reader reads members of the archive by name into memory. It unpacks nothing to disk, and executes and unpickles
nothing.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from quipu.modeling.documents import check_document, json_of
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment, FloatArray
from quipu.modeling.limits import current

from .collect import Collector, number
from .content import decode
from .json_experiment import entries_of, parameter_names

DATA = "experiment.json"
_INDEX_MAGIC = b"Extra-P INDEX\0\0\0"
_VALUES_MAGIC = b"Extra-P VALUES\0\0"
_ARRAY_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|=][fiu][1248])', 'fortran_order': (?:False|True), 'shape': \(([0-9, ]*)\),? *\} *\n?"
)
_CHUNK = 1 << 20
# Exceptions of the standard library for damaged, encrypted or unsupported ZIP files.
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
_NOTE = "only means over repetitions are in the file: extrap --keep-values keeps the single values"


def parse_archive(content: bytes, source: object, name: str) -> Experiment:
    """Return the measurements in the bytes of a .extra-p file; its models are ignored. name: of the experiment.

    The file contains the values of single repetitions only if Extra-P was set to keep them. The reader uses them if
    their mean equals the stored mean. Otherwise it uses the mean, because Extra-P may have added up call paths after
    storing the values. Raises FormatError for a damaged file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _collect(_Members(archive, source), source).experiment(name)
    except _DAMAGE as error:
        raise FormatError(source, f"is a damaged .extra-p file: {error}") from error


class _Members:
    """Reads the members of a ZIP archive, and the arrays of values in them."""

    def __init__(self, archive: zipfile.ZipFile, source: object) -> None:
        self.archive = archive
        self.source = source
        self._chunks: dict[int, tuple[bytes, bytes]] = {}

    def read(self, member: str) -> bytes:
        try:
            info = self.archive.getinfo(member)
        except KeyError:
            raise FormatError(self.source, f"is a ZIP file without {member}, not an experiment of Extra-P 4") from None
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(self.source, f"{member} is compressed in a way that Extra-P does not use")
        parts = []
        with self.archive.open(info) as file:
            while part := file.read(_CHUNK):  # the size in the archive may be wrong
                current().spend(len(part))
                current().check_time()
                parts.append(part)
        return b"".join(parts)

    def array(self, place: Any, what: str) -> FloatArray:
        """Return the array at place [chunk, index]. Raises FormatError, which names the measurement `what`."""
        if not isinstance(place, list) or len(place) != 2 or not all(type(part) is int and part >= 0 for part in place):
            raise FormatError(self.source, f'{what}: "values" is not [chunk, index]')
        chunk, index = place
        if chunk not in self._chunks:
            self._chunks[chunk] = (self.read(f"values/{chunk}.indx"), self.read(f"values/{chunk}.vals"))
        offsets, values = self._chunks[chunk]
        entry = len(_INDEX_MAGIC) + 8 * (index + 1)
        if not offsets.startswith(_INDEX_MAGIC) or not values.startswith(_VALUES_MAGIC) or entry + 8 > len(offsets):
            raise FormatError(self.source, f"{what}: its values are not in values/{chunk}.indx")
        (start,) = struct.unpack_from("<Q", offsets, entry)
        found = _array(values, start)
        if found is None:
            raise FormatError(self.source, f"{what}: its values are not in values/{chunk}.vals, or are not numbers")
        return found


def _array(content: bytes, start: int) -> FloatArray | None:
    """Return the array at offset `start` of `content`, in NumPy's format 1.0; None if there is no valid array."""
    if content[start : start + 8] != _ARRAY_MAGIC or start + 10 > len(content):
        return None
    (length,) = struct.unpack_from("<H", content, start + 8)
    begin = start + 10 + length
    header = _HEADER.fullmatch(content[start + 10 : begin])
    if header is None or (header[1][1:2] == b"f" and header[1][2:] == b"1"):
        return None
    shape = [int(part) for part in header[2].split(b",") if part.strip()]
    kind = np.dtype(header[1].decode())
    size = math.prod(shape)
    if begin + size * kind.itemsize > len(content):
        return None
    current().spend(8 * size)  # counted for each use, because many measurements may use the same array
    return np.frombuffer(content, kind, size, begin).astype(np.float64).reshape(shape)


def _collect(members: _Members, source: object) -> Collector:
    where = f"{source}: {DATA}"
    raw = members.read(DATA)
    check_document(raw)
    content = json_of(decode(raw, where), where)
    if not isinstance(content, dict) or not isinstance(content.get("measurements"), dict):
        raise FormatError(where, '"measurements" is missing or not an object')
    collector = Collector(where, parameter_names(content, where))
    means_only = False
    for callpath, metric, what, entry in entries_of(content["measurements"], where):
        if not isinstance(entry, dict) or "coordinate" not in entry or "mean" not in entry:
            raise FormatError(where, f'{what}: "coordinate" or "mean" is missing')
        mean = number(entry["mean"], where, what)
        single = [] if entry.get("values") is None else _per_repetition(members.array(entry["values"], what))
        if not single or not math.isclose(math.fsum(single) / len(single), mean, rel_tol=1e-9):
            means_only, single = True, [mean]
        collector.add(callpath, metric, collector.point(entry["coordinate"], what), single)
    if means_only:
        collector.notes.append(_NOTE)
    return collector


def _per_repetition(values: FloatArray) -> list[float]:
    """Return the mean of each repetition; an empty list if not all values are finite.

    values: the first axis is the repetition, further axes are ranks and threads.
    """
    if not values.size or not np.all(np.abs(values) < 1e300):
        return []
    flat = values.reshape(values.shape[0] if values.ndim else 1, -1)
    means: list[float] = flat.mean(axis=1).tolist()
    return means

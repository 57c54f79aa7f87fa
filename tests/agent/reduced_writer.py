# SPDX-License-Identifier: Apache-2.0
"""Write the files of a reduction over MPI of two ranks, as mpi_wrap/native/reduction/file.c does, byte by byte."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from profile_writer import METRICS, Node, Profile, rank_profile

ID = "0123456789abcdef"
RANKS = 2
OUTSIDE = "(outside any region)"
COSTS = {"pair_ns": "30.00", "pair_inside_ns": "10.00", "quiet_ns": "2.00", "counter_ns": "0.50", "clock_ns": "12.00"}
NOBODY = (1 << 32) - 1
Section = tuple[bytes, bytes]
# parent, region (0: outside) and the nodes of rank_profile that have the call path
PATHS = ((NOBODY, 0, (1, 5)), (NOBODY, 1, (2,)), (1, 2, (3,)), (2, 3, (4,)), (NOBODY, 2, (6,)), (1, 4, (7,)))


def reduced_rank(rank: int) -> Profile:
    """Return the profile of a rank that took part in the reduction, and then continued in main and called `free`."""
    profile = rank_profile(rank)
    more = {"reduction": ID, "rests": "2", **COSTS}
    profile.attributes = {**profile.attributes, **more}
    profile.regions = {**profile.regions, 5: "release\x1frelease\x1fapp.c\x1f30\x1f0\x1f0"}
    profile.rests = ((0, "1\x1f0 500 3 0 0 0 1"), (0, "1 5\x1f2 50 7 0 2 4 5"))
    return profile


def whole_rank(rank: int) -> Profile:
    """Return the profile of the same rank without a reduction: it contains all values except events."""
    profile = rank_profile(rank)
    profile.attributes = {**profile.attributes, **COSTS}
    nodes = [*profile.nodes, Node(8, 2, 5, (2, 50, 7, 0))]
    nodes[1] = Node(2, 1, 1, (1, 1500, 8, 0))
    profile.nodes = nodes
    profile.regions = {**profile.regions, 5: "release\x1frelease\x1fapp.c\x1f30\x1f0\x1f0"}
    return profile


def sections(columns: bool, ranks: Sequence[Profile]) -> list[Section]:
    """Return the sections of a file with columns or statistics of these ranks, without values after the reduction."""
    regions = [f"{OUTSIDE}\x1f{OUTSIDE}\x1f\x1f0\x1f3\x1f0", *(ranks[0].regions[number] for number in range(1, 5))]
    head = struct.pack("<8I20s", 4, RANKS, len(METRICS), len(PATHS), len(regions), columns, 1, 0, ID.encode())
    tree = [parent for parent, _, _ in PATHS] + [region for _, region, _ in PATHS]
    found = [
        (b"HEAD", head),
        (b"METR", "".join(line + "\n" for line in METRICS).encode()),
        (b"REGI", b"".join(text.encode() + b"\0" for text in regions)),
        (b"TREE", struct.pack(f"<{len(tree)}I", *tree)),
        (b"RANK", struct.pack(f"<{RANKS}I", *(profile.pid for profile in ranks))),
        (b"COST", b"".join(_events(profile) for profile in ranks)),
    ]
    if columns:
        found += [(b"COLS", _rows(rank, profile)) for rank, profile in enumerate(ranks)]
    else:
        found += [(b"STAT", _statistics(ranks)), (b"OPEN", _open(1, ranks))]
    return [*found, (b"DONE", b"")]


def packed(content: Iterable[Section]) -> bytes:
    """Return the file, with checksums."""
    return b"".join(
        struct.pack("<4sIQ", tag, zlib.crc32(section), len(section)) + section + bytes(-len(section) % 8)
        for tag, section in content
    )


def write_reduced(folder: Path, columns: bool) -> list[Section]:
    """Write the profiles and the reduced file of a run into a folder; return the sections."""
    ranks = [reduced_rank(rank) for rank in range(RANKS)]
    for profile in ranks:
        profile.write(folder)
    found = sections(columns, ranks)
    (folder / f"reduced-{ID}.quipu").write_bytes(packed(found))
    return found


def _events(profile: Profile) -> bytes:
    visits = sum(node.values[0] for node in profile.nodes)
    of_mpi = sum(node.values[0] for node in profile.nodes if node.region == 3)
    ticks = sum(node.values[1] for node in profile.nodes if node.region != 0)
    return struct.pack("<5Q", visits, of_mpi, ticks, 0, 0)


def _rows(rank: int, profile: Profile) -> bytes:
    path = {number: place for place, (_, _, nodes) in enumerate(PATHS) for number in nodes}
    count = len(profile.nodes)
    places = [path[node.id] for node in profile.nodes] + [node.location for node in profile.nodes]
    values = b"".join(struct.pack("<7Q", *node.values, node.values[0], 0, 0) for node in profile.nodes)
    return struct.pack(f"<II{2 * count}I", rank, count, *places) + values


def _of_rank(profile: Profile, nodes: Sequence[int]) -> list[float] | None:
    """Return visits, seconds, blocks, communicator size and overhead of a call path; None if the rank lacks it."""
    found = [node for node in profile.nodes if node.id in nodes]
    if not found:
        return None
    visits, ticks, blocks = (sum(node.values[column] for node in found) for column in range(3))
    return [visits, ticks * 1e-9, blocks, max(node.values[3] for node in found), visits * 30 * 1e-9]


def _statistics(ranks: Sequence[Profile]) -> bytes:
    cells = []
    for _, _, nodes in PATHS:
        rows = {rank: row for rank, profile in enumerate(ranks) if (row := _of_rank(profile, nodes)) is not None}
        for metric in range(len(METRICS) + 1):
            values = {rank: row[metric] for rank, row in rows.items()}
            low, high = min(values.values()), max(values.values())
            mean = math.fsum(values.values()) / len(values)
            squares = sum((value - mean) ** 2 for value in values.values())
            low_rank, high_rank = (min(rank for rank in values if values[rank] == end) for end in (low, high))
            found = sorted(_bucket(value) for value in values.values())
            distinct = sorted(set(found))
            cells.append(
                struct.pack("<?IIddI", False, len(values), len(values), sum(values.values()), low, low_rank)
                + struct.pack("<ddIBB", squares, high, high_rank, 0, len(distinct))
                + struct.pack(f"<{len(distinct)}H", *distinct)
                + struct.pack(f"<{len(distinct)}I", *(found.count(bucket) for bucket in distinct))
            )
    return struct.pack("<II", 0, len(cells)) + b"".join(cells)


def _bucket(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits >> 47


def _open(path: int, ranks: Sequence[Profile]) -> bytes:
    rows = [_of_rank(profile, PATHS[path][2]) for profile in ranks]
    return struct.pack("<II", path, 0) + b"".join(struct.pack("<6d", 1, *row) for row in rows if row is not None)

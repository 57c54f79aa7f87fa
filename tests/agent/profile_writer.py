# SPDX-License-Identifier: Apache-2.0
"""Write raw profiles byte by byte in the format of the runtime, independently of the tested reader."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

METRICS = (
    "visits\t1\teffort\tsum\ttimes the region was entered",
    "time\ts\tcost\tsum\twall-clock time",
    "blocks\t1\teffort\tsum\texecuted basic blocks",
    "comm_size\t1\teffort\tmax\tprocesses in the communicator",
)
CHUNK = 4096
Content = bytes  # inside of Profile this name is a method
NODE = 64 + 8 * len(METRICS)
_MOST_WRITTEN = 1 << 20  # bytes of one chunk; the size in a header may be larger than the disk


@dataclass
class Node:
    """One call-path record: values are visits, ticks, blocks, comm_size."""

    id: int
    parent: int
    region: int
    values: Sequence[int] = (1, 0, 0, 0)
    location: int = 0
    counters: Sequence[int] = ()


@dataclass
class Weights:
    """Rows of static weights of a region, from row `first` on; columns are metrics from `metric` on."""

    region: int
    rows: Sequence[Sequence[int]]
    first: int = 0
    metric: int = 2


@dataclass
class Thread:
    """The state of a thread: the id of its active node, the clock at its latest event."""

    here: int
    last: int
    location: int = 0
    in_use: int = 1


@dataclass
class Profile:
    """The complete content of a profile file."""

    nodes: Sequence[Node] = ()
    regions: Mapping[int, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    location_attributes: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    weights: Sequence[Weights] = ()
    rests: Sequence[tuple[int, str]] = ()
    threads: Sequence[Thread] = ()
    pid: int = 100
    state: int = 2
    clock: int = 1
    version: int = 2
    chunk_size: int = CHUNK
    node_size: int = NODE
    metrics: Sequence[str] = METRICS
    ticks: tuple[int, int] = (1000, 2000)
    nanoseconds: tuple[int, int] = (0, 500)
    start_epoch_ns: int = 1_700_000_000_000_000_000
    lost: int = 0
    setup_ns: int = 0
    error: str = ""
    sealed: bool = False

    def bytes(self) -> Content:
        """Return the file."""
        header = struct.pack(
            "<8s8I6Q128s3848s16xQ8x",
            b"QUIPUPRF",
            self.version,
            4096,
            self.chunk_size,
            self.node_size,
            len(self.metrics),
            self.state,
            self.pid,
            self.clock,
            self.ticks[0],
            self.nanoseconds[0],
            self.ticks[1],
            self.nanoseconds[1],
            self.start_epoch_ns,
            self.lost,
            self.error.encode(),
            "".join(line + "\n" for line in self.metrics).encode(),
            self.setup_ns,
        )
        chunks = self._text() + self._nodes() + self._counters() + self._weights() + self._threads()
        if not self.sealed:
            return header + chunks
        pieces = [chunks[at : at + self.chunk_size] for at in range(0, len(chunks), self.chunk_size)]
        filled = [64 + struct.unpack_from("<I", piece, 8)[0] for piece in pieces]
        header = header[:4068] + struct.pack("<I", len(pieces)) + header[4072:]
        sealed = [seal(piece[:used], 12) + piece[used:] for piece, used in zip(pieces, filled, strict=True)]
        return b"".join([seal(header, 4064), *sealed])

    def _text(self) -> Content:
        records = [
            (1, number, text if "\x1f" in text else f"{text}\x1f\x1f\x1f0\x1f0\x1f0")
            for number, text in self.regions.items()
        ]
        owners = {0: self.attributes, **{number + 1: own for number, own in self.location_attributes.items()}}
        records += [(2, owner, f"{key}\x1f{value}") for owner, own in owners.items() for key, value in own.items()]
        records += [(4, location, text) for location, text in self.rests]
        packed = []
        for kind, number, text in records:
            content = text.encode()
            packed.append(struct.pack("<IIQ", kind, len(content), number) + content + bytes(-len(content) % 8))
        return self._chunks(2, 0, packed)

    def _nodes(self) -> Content:
        chunks = b""
        for location in sorted({node.location for node in self.nodes}):
            packed = [
                struct.pack(f"<IIQ48x{len(node.values)}Q", node.id, node.parent, node.region, *node.values)
                for node in self.nodes
                if node.location == location
            ]
            chunks += self._chunks(1, location, packed)
        return chunks

    def _counters(self) -> Content:
        packed = [
            struct.pack(f"<II{len(node.counters)}Q", node.id, len(node.counters), *node.counters)
            for node in self.nodes
            if node.counters
        ]
        return self._chunks(3, 0, packed)

    def _weights(self) -> Content:
        packed = []
        for entry in self.weights:
            width = len(entry.rows[0])
            cells = [cell for row in entry.rows for cell in row]
            head = struct.pack("<QIIII", entry.region, entry.first, len(entry.rows), entry.metric, width)
            packed.append(head + struct.pack(f"<{len(cells)}q", *cells))
        return self._chunks(4, 0, packed)

    def _threads(self) -> Content:
        packed = [
            struct.pack("<IIQQ40x", thread.location, thread.in_use, self.address(thread.here), thread.last)
            for thread in self.threads
        ]
        return self._chunks(5, 0, packed)

    def address(self, number: int) -> int:
        """Return the address of the record of a node in the memory of the process; 0 for a node that does not exist."""
        room = (self.chunk_size - 64) // self.node_size
        for location in {node.location for node in self.nodes}:
            ids = [node.id for node in self.nodes if node.location == location]
            if number in ids:
                chunk, place = divmod(ids.index(number), room)
                return self._mapped(1, location, chunk) + 64 + place * self.node_size
        return 0

    def _mapped(self, kind: int, location: int, chunk: int) -> int:
        return 0x7F0000000000 + (kind << 36) + (location << 28) + chunk * self.chunk_size

    def _chunks(self, kind: int, location: int, records: Sequence[Content]) -> Content:
        chunks = b""
        count = 0
        content = b""
        room = self.chunk_size - 64
        for record in [*records, None]:
            if record is None or len(content) + len(record) > room:
                header = struct.pack("<IIIIQ40x", kind, location, len(content), 0, self._mapped(kind, location, count))
                chunks += header + content.ljust(min(room, _MOST_WRITTEN), b"\0")
                count += 1
                content = b""
            content += record or b""
        return chunks if records else b""

    def write(self, folder: Path, host: str = "n1") -> Path:
        """Write profile-<host>-<pid>.quipu."""
        path = folder / f"profile-{host}-{self.pid}.quipu"
        path.write_bytes(self.bytes())
        return path


def seal(content: bytes, at: int) -> bytes:
    """Return the bytes with their checksum in four bytes at `at`."""
    crc = zlib.crc32(content[:at] + bytes(4) + content[at + 4 :]) or 1
    return content[:at] + struct.pack("<I", crc) + content[at + 4 :]


def rank_profile(rank: int, ranks: int = 2, work: int = 100, **changes: object) -> Profile:
    """Return the profile of a rank: main → solve → MPI_Send, and main → init on rank 0 alone; two threads."""
    nodes = [
        Node(1, 0, 0, (0, 7, 0, 0)),
        Node(2, 1, 1, (1, 1000, 5, 0)),
        Node(3, 2, 2, (10, 2000, work * (rank + 1), 0)),
        Node(4, 3, 3, (20, 3000, 0, ranks)),
        Node(5, 0, 0, (0, 0, 0, 0), 1),
        Node(6, 5, 2, (3, 500, 50, 0), 1),
    ]
    if rank == 0:
        nodes.append(Node(7, 2, 4, (1, 100, 9, 0)))
    profile = Profile(
        nodes=nodes,
        regions={
            1: "main\x1fmain\x1fapp.c\x1f10\x1f0\x1f0",
            2: "_Z5solvei\x1fsolve(int)\x1fapp.c\x1f3\x1f0\x1f0",
            3: "MPI_Send\x1fMPI_Send\x1f\x1f0\x1f1\x1f0",
            4: "init\x1finit\x1fapp.c\x1f20\x1f0\x1f0",
        },
        attributes={
            "rank": str(rank),
            "ranks": str(ranks),
            "host": "n1",
            "affinity": "0-1",
            "partners:0": f"{(rank + 1) % ranks}:{8 * work}:{work}:0:0",
            "max_rss_bytes": "4096",
            "voluntary_switches": "5",
            "mpi_library": "Open MPI",
            "mpi_finalized": "1",
        },
        pid=100 + rank,
    )
    for name, value in changes.items():
        setattr(profile, name, value)
    return profile


QUIET = "inline\x1finline\x1fapp.c\x1f5\x1f0\x1f1"


def counted(rank: int = 0) -> Profile:
    """Return a profile in which every kind of record is used."""
    profile = rank_profile(rank)
    nodes = [*profile.nodes, Node(8, 3, 5, (4, 0, 1, 0), counters=(6,)), Node(9, 6, 5, (1, 0, 0, 9), 1, (2, 1))]
    nodes[2].counters = (3, 4)
    nodes[5].counters = (1, 2)
    profile.nodes = nodes
    profile.regions = {**profile.regions, 5: QUIET}
    profile.weights = [
        Weights(1, [[7]]),
        Weights(2, [[1], [100]]),
        Weights(2, [[-10]], first=2),
        Weights(5, [[0], [1000], [5]]),
    ]
    profile.threads = [Thread(3, 1500), Thread(6, 1600, 1), Thread(5, 0, 2, in_use=0)]
    return profile

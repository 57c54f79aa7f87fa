# SPDX-License-Identifier: Apache-2.0
"""Define the targets of benchmarks/fuzz_readers.py: every reader of files from unknown sources, with first inputs.

A target writes its input bytes to files in a scratch folder, and reads these files. It may only raise FormatError.
"""

from __future__ import annotations

import gzip
import json
import struct
import sys
from abc import ABC, abstractmethod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "agent"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

import numpy as np
import pyarrow.parquet as pq
from class_counts import classes_of
from profile_writer import Thread, counted, rank_profile
from quipu.agent.archive.checksums import NAME as SUMS
from quipu.agent.archive.checksums import write_checksums
from quipu.agent.archive.class_tables import COUNTS, read_source, source_metrics, write_classes
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import SourceEffort, SourceLine
from quipu.agent.archive.run_json import read_json
from quipu.agent.campaign.file import read_campaign
from quipu.agent.launch.raw_folder import read_launch, read_raw_folder, write_launch
from quipu.agent.merge.ranks import assign_ranks
from quipu.agent.merge.reduced import read_reduced
from quipu.agent.merge.reduced_run import costs_of_ranks, run_of
from quipu.agent.merge.run import combine, merge_run
from quipu.agent.source.functions import static_functions
from quipu.modeling.analysis import analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Metric, Region, RegionKind
from quipu.modeling.metrics import WEIGHTED
from quipu.report.formats.detect import read_experiment
from quipu.report.formats.scorep_filter import read_filter
from reduced_writer import packed, write_reduced

from tests.agent.heat_campaign import HEAT
from tests.agent.source.test_functions import entry
from tests.report import extrap_samples, test_caliper, test_extrap_fuzz

PAGE = 4096
BLOCKS = [Metric(f"counted{number}", "1", "effort") for number in range(WEIGHTED - 1)]


class Target(ABC):
    """One reader. folder: an empty scratch folder of this target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prepare()

    def prepare(self) -> None:  # noqa: B027
        """Create further files that the reader needs; by default none."""

    @abstractmethod
    def seeds(self) -> list[bytes]:
        """Return the initial inputs."""

    @abstractmethod
    def read(self, data: bytes) -> None:
        """Read a file made of these bytes."""

    def file(self, name: str, content: bytes) -> Path:
        """Write a file into the scratch folder."""
        path = self.folder / name
        path.write_bytes(content)
        return path


class Profiles(Target):
    """Raw profiles and their merge.

    The input is a sequence of pages: length (uint16), then the bytes without the zeros that fill the page; bit 15 of
    the length: the page is not filled.
    """

    def seeds(self) -> list[bytes]:
        shared = rank_profile(0, location_attributes={0: {"rank": "0"}, 1: {"rank": "1"}})
        profiles = (rank_profile(0), counted(), rank_profile(1, state=0, threads=[Thread(3, 1500)]), shared)
        return [self.packed(profile.bytes()) for profile in profiles]

    @staticmethod
    def packed(content: bytes) -> bytes:
        pages = [content[at : at + PAGE].rstrip(b"\0") for at in range(0, len(content), PAGE)]
        return b"".join(struct.pack("<H", len(page)) + page for page in pages)

    @staticmethod
    def unpacked(data: bytes) -> bytes:
        pages = []
        while len(data) >= 2:
            (length,) = struct.unpack("<H", data[:2])
            page = data[2 : 2 + (length & 0x7FFF)][:PAGE]
            pages.append(page if length & 0x8000 else page.ljust(PAGE, b"\0"))
            data = data[2 + (length & 0x7FFF) :]
        return b"".join(pages)

    def read(self, data: bytes) -> None:
        self.file("profile-n1-100.quipu", self.unpacked(data))
        raw = read_raw_folder(self.folder)
        if raw.profiles:
            metadata = RunMetadata({"p": 2}, started="2023-11-14T22:13:20+00:00", seconds=100.0, exit_code=0)
            assert combine(raw, metadata).values is not None


class Reduced(Target):
    """Reduced files, and the runs that they form with profiles of participating ranks.

    The input is a sequence of sections: number of the tag (uint8), length (uint32), content; they get correct
    checksums.
    """

    TAGS = (b"HEAD", b"METR", b"REGI", b"TREE", b"RANK", b"COST", b"COLS", b"STAT", b"OPEN", b"DONE")

    def prepare(self) -> None:
        self.sections = [write_reduced(self.folder, columns) for columns in (False, True)]
        self.processes = assign_ranks(read_raw_folder(self.folder).profiles, ())

    def seeds(self) -> list[bytes]:
        return [
            b"".join(struct.pack("<BI", self.TAGS.index(tag), len(content)) + content for tag, content in sections)
            for sections in self.sections
        ]

    def read(self, data: bytes) -> None:
        sections = []
        while len(data) >= 5:
            number, length = struct.unpack("<BI", data[:5])
            sections.append((self.TAGS[number % len(self.TAGS)], data[5 : 5 + length]))
            data = data[5 + length :]
        found = read_reduced(self.file("reduced-x.quipu", packed(sections)))
        if run_of(found, self.processes) is not None:
            costs_of_ranks(found, self.processes)


class RawJson(Target):
    """The JSON files next to raw profiles: the first byte selects one, or all of them together."""

    NAMES = ("rank-0.json", "node-n1.json", "launch.json")

    def prepare(self) -> None:
        rank_profile(0).write(self.folder)
        (self.folder / "rank-0.json").write_text('{"rank": 0, "pid": 100, "host": "n1", "affinity": [0, 1]}')
        ranks = '[{"rank": 0, "pid": 100, "max_rss_bytes": 1, "affinity": [0]}]'
        (self.folder / "node-n1.json").write_text(
            f'{{"ended": true, "host": "n1", "cpus": 2, "ranks": {ranks}, "samples": [{{"seconds": 1, "load": 2}}]}}'
        )
        write_launch(self.folder, RunMetadata({"p": 2, "n": 0.5}, command=("./app",), exit_code=0))
        self.whole = {name: (self.folder / name).read_bytes() for name in self.NAMES}

    def seeds(self) -> list[bytes]:
        return [bytes([number]) + content for number, content in enumerate(self.whole.values())]

    def read(self, data: bytes) -> None:
        name = self.NAMES[data[0] % len(self.NAMES)] if data else self.NAMES[0]
        self.file(name, data[1:])
        try:
            combine(read_raw_folder(self.folder), read_launch(self.folder).metadata)
        finally:
            self.file(name, self.whole[name])


class Archives(Target):
    """Run archives: the first byte selects the file that the rest replaces.

    Seeds are neither compressed nor checksummed, so that changes reach the reader; the list of checksums only exists if
    it is changed.
    """

    NAMES = (
        "run.json",
        "regions.parquet",
        "callpaths.parquet",
        "values.parquet",
        "statistics.parquet",
        "ranks.parquet",
    )

    def prepare(self) -> None:
        raw = self.folder / "raw"
        raw.mkdir()
        for rank in (0, 1):
            rank_profile(rank).write(raw)
        self.path = merge_run(raw, self.folder, RunMetadata({"p": 2}, exit_code=0)).path
        for name in self.NAMES[1:]:
            table = pq.read_table(self.path / name)
            pq.write_table(table, self.path / name, compression="none", store_schema=False)
        write_checksums(self.path)
        read_archive(self.path)
        self.whole = {name: (self.path / name).read_bytes() for name in (*self.NAMES, SUMS)}
        (self.path / SUMS).unlink()

    def seeds(self) -> list[bytes]:
        return [bytes([number]) + content for number, content in enumerate(self.whole.values())]

    def read(self, data: bytes) -> None:
        name = list(self.whole)[data[0] % len(self.whole)] if data else self.NAMES[0]
        try:
            (self.path / name).write_bytes(data[1:])
            assert read_archive(self.path).values is not None
        finally:
            (self.path / name).write_bytes(self.whole[name])
            (self.path / SUMS).unlink(missing_ok=True)


class Source(Target):
    """The table of the counts of classes of an archive; the seed is neither packed nor checksummed."""

    def prepare(self) -> None:
        raw = self.folder / "raw"
        raw.mkdir()
        rank_profile(0).write(raw)
        archive = combine(read_raw_folder(raw), RunMetadata({"p": 1}, exit_code=0))
        self.metrics, self.tree = (*archive.metadata.metrics, *BLOCKS), archive.tree
        places = np.array([0, 1, 1, 2], dtype=np.int64)
        lines = tuple(SourceLine(name, f"_Z{name}", f"{name}.c", 10) for name in ("main", "solve", "tiny"))
        counts = dict.fromkeys(source_metrics(self.metrics), places * 10)
        write_classes(self.folder, classes_of(SourceEffort(places, np.array([0, 1, 2, 2]), lines, counts)))
        table = pq.read_table(self.folder / COUNTS)
        pq.write_table(table, self.folder / COUNTS, compression="none", store_schema=False)
        self.whole = (self.folder / COUNTS).read_bytes()

    def seeds(self) -> list[bytes]:
        return [self.whole]

    def read(self, data: bytes) -> None:
        self.file(COUNTS, data)
        found = read_source(self.folder, RunMetadata(metrics=self.metrics), self.tree)
        assert found is not None
        assert found.callpath.max(initial=0) < len(self.tree)
        assert found.line.max(initial=-1) < len(found.lines)


class Models(Target):
    """Files of models, and their predictions."""

    def seeds(self) -> list[bytes]:
        path = self.file("x.txt", extrap_samples.TEXT.split("METRIC visits")[0].encode())
        longer = "PARAMETER p\nPOINTS 2 4 8 16 32\nMETRIC time\nREGION main\n" + "".join(
            f"DATA {p * p} {p * p + 1}\n" for p in (2, 4, 8, 16, 32)
        )
        found = [analyze(read_experiment(path))]
        found.append(analyze(read_experiment(self.file("y.txt", longer.encode()))))
        return [json.dumps(to_document(analysis)).encode() for analysis in found]

    def read(self, data: bytes) -> None:
        path = self.file("models.json", data)
        analysis = from_document(read_json(path), path)
        for metric in analysis.exclusive:
            try:
                evaluate(analysis, dict.fromkeys(analysis.parameters, 64.0), metric).ranking()
            except ModelingError:
                continue


class ExtraP(Target):
    """Files of Extra-P: the first byte selects the suffix, or that the rest is the text in a compressed file."""

    SUFFIXES = (".txt", ".json", ".jsonl", ".extra-p")

    def seeds(self) -> list[bytes]:
        found = []
        for suffix, content in test_extrap_fuzz.SAMPLES.values():
            if suffix in self.SUFFIXES:
                found.append(bytes([self.SUFFIXES.index(suffix)]) + content)
        found.append(bytes([4]) + test_extrap_fuzz._EXPERIMENT)
        found.append(bytes([5]) + extrap_samples.JSON.encode())
        return found

    def read(self, data: bytes) -> None:
        which = data[0] % 6 if data else 0
        rest = data[1:]
        if which == 4:
            path = self.file("x.extra-p", test_extrap_fuzz.archive(rest))
        elif which == 5:
            path = self.file("x.json.gz", gzip.compress(rest, compresslevel=0))
        else:
            path = self.file("x" + self.SUFFIXES[which], rest)
        read_experiment(path)


class Caliper(Target):
    """A file of Caliper."""

    def seeds(self) -> list[bytes]:
        return [(test_caliper.HEAD + test_caliper.BODY.format(3.0, 8)).encode()]

    def read(self, data: bytes) -> None:
        read_experiment(self.file("x.cali", data))


class Cube(Target):
    """A folder with one Cube profile."""

    def prepare(self) -> None:
        self.path = self.folder / "x.p4.r1" / "profile.cubex"

    def seeds(self) -> list[bytes]:
        rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        metrics: dict[str, extrap_samples.CubeMetric] = {
            "time": ("DOUBLE", "INCLUSIVE", rows),
            "visits": ("UINT64", "EXCLUSIVE", [[1, 1], [1, 1], [1, 1]]),
        }
        extrap_samples.write_cube(self.path, metrics)
        return [self.path.read_bytes()]

    def read(self, data: bytes) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_bytes(data)
        read_experiment(self.folder)


class Filters(Target):
    """Score-P filter files, read in Python; the runtime's own reader is `runtime-filter`."""

    TEXTS = (
        "SCOREP_REGION_NAMES_BEGIN # a comment\n EXCLUDE *\n INCLUDE MANGLED main _Z*\n\tbar? 'x y'\n"
        "SCOREP_REGION_NAMES_END\nSCOREP_FILE_NAMES_BEGIN EXCLUDE */test/[a-c]*.c SCOREP_FILE_NAMES_END\n",
        "SCOREP_REGION_NAMES_BEGIN\nEXCLUDE\n\\#a\\ b\\\\ \nINCLUDE [!x]*\nSCOREP_REGION_NAMES_END",
    )

    def seeds(self) -> list[bytes]:
        return [text.encode() for text in self.TEXTS]

    def read(self, data: bytes) -> None:
        rules = read_filter(self.file("filter", data))
        rules.includes(Region("_Z3barv", "bar()", RegionKind.USER, "a/test/b.c"))


class Campaigns(Target):
    """Campaign files, and the commands that they produce."""

    def seeds(self) -> list[bytes]:
        listed = '[experiment]\nname = "x"\ncommand = "./x {p} {{}}"\npoints = [[1], [2]]\n[parameters]\np = []\n'
        return [HEAT.encode(), listed.encode()]

    def read(self, data: bytes) -> None:
        campaign = read_campaign(self.file("x.toml", data))
        for point in campaign.points[:5]:
            campaign.command_at(point)


class Facts(Target):
    """Static facts in programs: an object file is enough."""

    def seeds(self) -> list[bytes]:
        text = entry("main") + "\n" + entry("tiny", hook=False) + "\n"
        return [_object_file(text.encode()), _object_file(b"")]

    def read(self, data: bytes) -> None:
        static_functions(self.file("program", data))


def _object_file(facts: bytes) -> bytes:
    """Return the smallest ELF file with a section .quipu.facts."""
    names = b"\0.quipu.facts\0.shstrtab\0"
    at = 64 + len(facts) + len(names)
    header = b"\x7fELF\2\1\1" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, at, 0, 64, 0, 0, 64, 3, 2)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 64, len(facts), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 14, 3, 0, 0, 64 + len(facts), len(names), 0, 0, 1, 0)
    return header + facts + names + sections


TARGETS: dict[str, type[Target]] = {
    "profile": Profiles,
    "reduced": Reduced,
    "raw-json": RawJson,
    "archive": Archives,
    "source": Source,
    "models": Models,
    "extra-p": ExtraP,
    "caliper": Caliper,
    "cube": Cube,
    "filter": Filters,
    "campaign": Campaigns,
    "facts": Facts,
}
ALLOWED = (FormatError,)

__all__ = ["ALLOWED", "TARGETS", "Target"]

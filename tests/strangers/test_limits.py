# SPDX-License-Identifier: Apache-2.0
"""Small files that would become large: refused within a fixed memory and time, with an error that names the limit."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from profile_writer import Node, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.campaign.file import read_campaign
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.run import merge_run
from quipu.agent.profile.reader import read_profile
from quipu.modeling.analysis import analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.limits import current, reading, whole_number
from quipu.report.formats.detect import read_experiment

from .hostile import experiment

MEMORY_MIB, SECONDS = 900, 60
COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))
from quipu.agent.cli.main import run_command_line
code = run_command_line(sys.argv[1:])
status = open("/proc/self/status").read()  # unlike getrusage it knows nothing of the process before exec
print("MIB", int(status.split("VmHWM:")[1].split()[0]) >> 10, file=sys.stderr)
sys.exit(code)
"""


def refused(*arguments: object, **environment: str) -> str:
    """Run a command that must fail, within the limits of this file; return what it says."""
    code, said = limited(*arguments, **environment)
    assert (code, len(said)) == (1, 1), said
    return said[0]


def limited(*arguments: object, **environment: str) -> tuple[int, list[str]]:
    """Run a command within the limits of this file; return its exit code and the lines that it says."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(seconds=SECONDS), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        check=False,
    )
    *said, peak = done.stderr.splitlines()
    assert int(peak.split()[1]) < MEMORY_MIB, done.stderr[-2000:]
    return done.returncode, said


def write_json_bomb(folder: Path) -> Path:
    path = folder / "x.json"
    with gzip.open(path, "wb") as file:
        file.write(b'{"parameters": ["p"], "measurements": {"a": {"time": [')
        for _ in range(64):
            file.write(b"[]," * 350_000)
    return path


def write_array_bomb(folder: Path) -> Path:
    """Write thousands of measurements that refer to one array, which has 30 MB unpacked."""
    size = 4_000_000
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }\n" % size
    values = b"Extra-P VALUES\0\0\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(8 * size)
    entries = [{"coordinate": [p], "mean": 0.0, "values": [0, 0]} for p in range(1, 4000)]
    content = {"parameters": ["p"], "measurements": {"main": {"time": entries}}}
    path = folder / "x.extra-p"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("experiment.json", json.dumps(content))
        archive.writestr("values/0.indx", b"Extra-P INDEX\0\0\0" + struct.pack("<3Q", 1, 16, 0))
        archive.writestr("values/0.vals", values)
    return path


def write_lying_zip(folder: Path) -> Path:
    """Write a member of 280 MB whose header claims 10 bytes."""
    path = folder / "x.extra-p"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("experiment.json", b" " * (280 << 20))
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", 280 << 20), struct.pack("<I", 10)))
    return path


def write_scattered(folder: Path) -> Path:
    """Write each call path at a different point: a table of 16,000 × 16,000 values."""
    path = folder / "x.jsonl"
    lines = (f'{{"params":{{"p":{n}}},"callpath":"f{n}","metric":"time","value":1}}' for n in range(1, 16_000))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def write_cube_bomb(folder: Path) -> Path:
    """Write a Cube profile whose data member has 600 MB unpacked."""
    path = folder / "x.p4.r1" / "profile.cubex"
    path.parent.mkdir()
    piece = zlib.compress(bytes(60 << 20))
    header = b"ZCUBEX.DATA" + struct.pack("<q", 10) + b"".join(struct.pack("<qqq", 0, 0, len(piece)) for _ in range(10))
    with tarfile.open(path, "w") as archive:
        for name, content in {"anchor.xml": b"<?xml version='1.0'?><cube/>", "0.data": header + piece * 10}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return folder


@pytest.mark.parametrize(
    "write", [write_json_bomb, write_array_bomb, write_lying_zip, write_scattered, write_cube_bomb]
)
def test_packed_measurements_do_not_fill_the_memory(write: Callable[[Path], Path], tmp_path: Path) -> None:
    said = refused("show", write(tmp_path))
    assert str(tmp_path) in said
    assert "QUIPU_READ_EXPANSION" in said or "damaged" in said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment(tmp_path_factory.mktemp("whole") / "x")


def with_regions(whole: Path, run: Path, rows: int, text: str) -> Path:
    """Make an archive of run.json and a table of so many equal regions."""
    run.mkdir()
    (run / "run.json").write_bytes((whole / "p=2.r1" / "run.json").read_bytes())
    zero, texts = pa.repeat(pa.scalar(0, pa.int32()), rows), pa.repeat(text, rows)
    columns = {"region": zero, "name": texts, "display": texts, "file": texts, "line": zero}
    table = pa.table({**columns, "kind": zero.cast(pa.int8())})
    pq.write_table(table, run / "regions.parquet", compression="zstd")
    assert (run / "regions.parquet").stat().st_size < 200_000
    return run


@pytest.mark.parametrize(("rows", "text"), [(3_200_000, ""), (1, "x" * (90 << 20)), (100_000, "x" * 9_000)])
def test_tables_do_not_fill_the_memory(whole: Path, tmp_path: Path, rows: int, text: str) -> None:
    said = refused("show", with_regions(whole, tmp_path / "run", rows, text))
    few = rows == 100_000  # one text for all rows is held once: what is wrong with the table is something else
    assert ("two regions have the same name" if few else "QUIPU_READ_EXPANSION") in said or few


def test_a_limit_is_raised_by_the_variable_that_the_error_names(whole: Path, tmp_path: Path) -> None:
    run = with_regions(whole, tmp_path / "run", 3_200_000, "")
    assert "QUIPU_READ_EXPANSION" in refused("show", run)
    assert "column region is not 0, 1, 2, …" in refused("show", run, QUIPU_READ_EXPANSION="100000")
    assert "takes more than 8 MiB of memory" in refused("show", run, QUIPU_READ_MIB="8")


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "²", "٣", "1" * 19, "1" * 5000])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None
    assert (whole_number("007"), whole_number("9" * 18), whole_number("10", 1)) == (7, 10**18 - 1, None)


def test_a_limit_that_is_no_number_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("-1", "0", "many", "1" * 5000):
        monkeypatch.setenv("QUIPU_READ_MIB", text)
        with pytest.raises(UsageError, match=r"QUIPU_READ_MIB=.*: give a whole number above 0"):
            current()


def test_a_file_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_READ_SECONDS", "1")
    with reading("x") as cost:
        cost.check_time()
        cost._end -= 2  # as if it had
        with pytest.raises(FormatError, match=r"x: takes more than 1 s to read: .* a larger QUIPU_READ_SECONDS"):
            cost.check_time()


def test_a_sparse_profile_is_read_as_what_it_holds(tmp_path: Path) -> None:
    profile = rank_profile(0).write(tmp_path)
    whole_profile = read_profile(profile)
    with profile.open("r+b") as file:
        file.truncate(1 << 42)
        file.seek((1 << 41) - 4096)  # one chunk far away, of an unknown type
        file.write(struct.pack("<IIII", 99, 0, 64, 0))
    began = time.process_time()
    found = read_profile(profile)
    assert time.process_time() - began < SECONDS
    assert found.parent.tolist() == whole_profile.parent.tolist()
    assert found.problems == ("1 chunks are of an unknown type and were left out",)


def test_chunks_that_claim_more_than_the_file_holds_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "profile-n1-100.quipu"
    path.write_bytes(rank_profile(0).bytes()[:4096])
    with path.open("r+b") as file:
        file.seek(16)  # the size of a chunk
        file.write(struct.pack("<I", 1 << 28))
        for number in range(1, 64):
            file.seek(4096 + (number << 28))
            file.write(struct.pack("<IIII", 1, 0, (1 << 28) - 64, 0))
        file.truncate(4096 + (64 << 28))
    with pytest.raises(FormatError, match="QUIPU_READ_EXPANSION"):
        read_profile(path)


LINE = '{"parameters":{"p":4};"metric":"time";"callpath":"main";"value":1.0}\n'
DEEP = 100_000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.txt", LINE + '{"parameters":{"p":"' + '\\"' * 500_000, "x.txt:2: is not JSON"),
        ("x.json", "[" * DEEP + "]" * DEEP, "nested more than 1000 levels deep"),
        ("x.json", '{"parameters": ["p"], "measurements": ' + '{"a":' * DEEP + "1" + "}" * DEEP + "}", "nested more"),
        ("x.json", '{"parameters": [' + "1" * 5000 + "]}", "a number with too many digits"),
        ("x.txt", "PARAMETER p\nPOINTS 1\nREGION " + "a->" * 2000 + "a\nDATA 1\n", "nested more than 1000 levels deep"),
        ("x.txt", "PARAMETER " + " ".join(f"p{n}" for n in range(100_000)) + "\nPOINTS 1\n", "POINTS of several"),
    ],
)
def test_texts_that_take_long(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(FormatError, match=words):
        read_experiment(path)
    assert time.process_time() - began < SECONDS / 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * DEEP + "]" * DEEP, "nested"),
        (".".join("a" * DEEP) + " = 1", "nested"),
        ("a = " + "1" * 5000, "too many digits"),
        (" " * 1_000_000 + "a = 1", "a: is unknown"),
        ("a = " + "{b = " * 3000 + "1" + "}" * 3000, "nested"),
    ],
)
def test_campaign_files_that_take_long(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(FormatError, match=words):
        read_campaign(path)
    assert time.process_time() - began < SECONDS / 4


@pytest.mark.parametrize("exponent", ["1e999999999", "9" * 5000, "1/" + "9" * 5000])
def test_exponents_of_models_are_short(exponent: str, whole: Path) -> None:
    document = json.dumps(to_document(analyze(load_experiment(whole))))
    assert '"exponent": "1"' in document
    with pytest.raises(FormatError, match="is not a fraction such as 2/3"):
        from_document(json.loads(document.replace('"exponent": "1"', f'"exponent": "{exponent}"', 1)), "x")


def test_call_paths_of_archives_are_not_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [Node(1, 0, 0, (0, 7, 0, 0)), *(Node(number, number - 1, number % 4 + 1) for number in range(2, 10))]
    (tmp_path / "raw").mkdir()
    rank_profile(0, nodes=chain).write(tmp_path / "raw")
    run = merge_run(tmp_path / "raw", tmp_path, RunMetadata({"p": 2}, exit_code=0)).path
    assert run is not None
    assert read_archive(run).tree.depth.max() == 7
    monkeypatch.setenv("QUIPU_READ_DEPTH", "6")
    with pytest.raises(FormatError, match=r"callpaths\.parquet: is nested more than 6 levels deep: .*QUIPU_READ_DEPTH"):
        read_archive(run)


@pytest.mark.parametrize("words", [("model",), ("report", "-o", "{out}/x.html")])
def test_twenty_parameters_do_not_fill_the_memory(words: tuple[str, ...], tmp_path: Path) -> None:
    """Forms over n parameters are partitions of all their subsets: with 20, more than 10^14."""
    lines = []
    for number in range(50):
        params = {f"x{place}": 2 + (number * (place + 3) + place**2) % 7 for place in range(20)}
        for callpath in ("main", "main->MPI_Send"):
            value = sum(params.values()) ** 1.5
            lines.append({"params": params, "callpath": callpath, "metric": "time", "value": value})
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    rest = [word.replace("{out}", str(tmp_path)) for word in words[1:]]
    code, said = limited(words[0], tmp_path / "x.jsonl", *rest)
    assert code == 0, said

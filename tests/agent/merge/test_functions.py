# SPDX-License-Identifier: Apache-2.0
"""Functions by the addresses of samples: symbols of a program, call paths and the flat profile made of them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profile_writer import Node, Profile
from quipu.agent.merge.functions import flat_profile, with_functions
from quipu.agent.profile.addresses import Code, SampledAddresses, read_addresses
from quipu.agent.profile.chunks import Chunk
from quipu.agent.profile.reader import ProcessProfile, read_profile
from quipu.agent.source.symbols import NONE, symbols_of
from quipu.modeling.experiment import Metric

SOURCE = """int first(int x) { return x * 3; }
int second(int x) { return x + first(x); }
int main(void) { return second(0); }
"""
METRICS = ("samples", "task_clock")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "program.c").write_text(SOURCE)
    options = ["-O0", "-falign-functions=16", "-o", str(folder / "program")]
    subprocess.run(["clang-19", *options, str(folder / "program.c")], check=True)
    return folder / "program"


def test_symbols_of_a_program(program: Path, tmp_path: Path) -> None:
    symbols = symbols_of(program)
    begin = dict(zip(symbols.names, symbols.begin.tolist(), strict=True))
    asked = np.array([begin["first"], begin["second"] + 1, begin["main"], 0], dtype=np.uint64)
    found = [symbols.names[place] if place >= 0 else "" for place in symbols.find(asked).tolist()]
    assert found == ["first", "second", "main", ""]
    assert symbols_of(tmp_path / "nothing") is NONE
    (tmp_path / "text").write_text("no program")
    assert symbols_of(tmp_path / "text").names == ()
    damaged = tmp_path / "damaged"
    damaged.write_bytes(program.read_bytes()[:3000])
    assert symbols_of(damaged).names == ()


def sampled(program: Path) -> SampledAddresses:
    """Two samples in first and one in second outside of regions, one in first within a region, one in no file."""
    symbols = symbols_of(program)
    begin = dict(zip(symbols.names, symbols.begin.tolist(), strict=True))
    load = 0x5000_0000
    places = [begin["first"], begin["second"], begin["first"], 0x10]
    return SampledAddresses(
        np.array([load + places[0], load + places[1], load + places[2], places[3]], dtype=np.uint64),
        np.array([True, True, False, True]),
        np.array([[2, 2_000_000], [1, 1_000_000], [1, 1_000_000], [1, 500]], dtype=np.uint64),
        METRICS,
        (Code(str(program), load, load, load + 0x10000),),
    )


def profile(folder: Path, addresses: SampledAddresses) -> ProcessProfile:
    region = "\x1f".join(("main", "main", "a.c", "1", "0", "0"))
    path = folder / "profile-here-100.quipu"
    path.write_bytes(Profile(nodes=[Node(1, 0, 0), Node(2, 1, 1)], regions={1: region}).bytes())
    read = read_profile(path)
    more = {name: np.array([3, 1], dtype=np.int64) for name in METRICS}
    return replace(read, values={**read.values, **more}, addresses=addresses)


def test_functions_outside_of_regions_are_call_paths(program: Path, tmp_path: Path) -> None:
    before = profile(tmp_path, sampled(program))
    after = with_functions(before)
    names = [after.regions[number].name if number else "" for number in after.region.tolist()]
    assert names == ["", "main", "first", "second", "unknown in code that was unloaded"]
    assert after.values["samples"].tolist() == [0, 1, 2, 1, 1]
    assert after.values["time"].tolist()[2:] == pytest.approx([0.002, 0.001, 5e-7])
    assert after.parent.tolist()[2:] == [-1, -1, -1]
    assert with_functions(replace(before, addresses=None)).parent.size == 2


def test_the_flat_profile_has_all_samples(program: Path, tmp_path: Path) -> None:
    one = profile(tmp_path, sampled(program))
    rows = flat_profile([one, one, replace(one, addresses=None)])
    assert [(row["function"], row["samples"]) for row in rows] == [("first", 6), ("", 2), ("second", 2)]
    assert rows[0]["library"] == str(program)


def test_addresses_as_the_runtime_writes_them() -> None:
    metrics = [Metric("time", "s"), Metric("samples"), Metric("task_clock", "ns")]
    records = np.array([[0x4011, 2, 5, 70], [0, 0, 0, 0], [0x5020, 2, 1, 9], [0x6000, 7, 1, 1]], dtype="<u8")
    attributes = {"code:/bin/a b": "4000 4000 5000", "code:/bin/c": "zz 1 2", "code:/bin/d": "9000 9000 10"}
    problems: list[str] = []
    found = read_addresses([Chunk(0, 0, records.tobytes() + b"rest")], metrics, attributes, problems)
    assert found is not None
    assert found.address.tolist() == [0x4010, 0x5020]
    assert found.outside.tolist() == [True, False]
    assert found.values.tolist() == [[5, 70], [1, 9]]
    assert found.code == (Code("/bin/a b", 0x4000, 0x4000, 0x5000),)
    assert problems == ["1 addresses of samples are damaged and were left out"]
    assert read_addresses([], metrics, attributes, problems) is None
    # metrics of memory and files come after those of the sampler
    others = [*metrics, Metric("file_reads"), Metric("file_writes")]
    beside = read_addresses([Chunk(0, 0, records.tobytes() + b"rest")], others, attributes, [])
    assert beside is not None
    assert beside.metrics == found.metrics
    assert beside.values.tolist() == found.values.tolist()

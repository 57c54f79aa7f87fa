# SPDX-License-Identifier: Apache-2.0
"""Count classes of programs and their source lines, and the overhead of processes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import classes as benchmark
import numpy as np
import pytest
from patience import PATIENCE
from quipu.agent.archive.class_tables import read_source
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive, SourceEffort
from quipu.agent.installation import native_file
from quipu.agent.merge.run import merge_run
from quipu.agent.source.classes import counted_functions
from quipu.agent.source.functions import static_functions

from .conftest import PROGRAMS

SOURCE = (PROGRAMS / "inlined.cpp").read_text().splitlines()


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(SOURCE) if text in line)


def merged(raw: Path) -> tuple[RunArchive, SourceEffort | None]:
    archive = read_archive(merge_run(raw, raw.parent / "runs", RunMetadata(exit_code=0)).path)
    return archive, read_source(archive.path, archive.metadata, archive.tree)


def measure(folder: Path, program: Path, *arguments: str) -> tuple[RunArchive, SourceEffort]:
    raw = folder / "raw"
    raw.mkdir()
    environment = {"QUIPU_DIR": str(raw), "QUIPU_RANK": "0"}
    subprocess.run([program, *arguments], env=environment, check=True, capture_output=True, timeout=PATIENCE)
    archive, source = merged(raw)
    assert source is not None
    assert archive.metadata.problems == ()
    for name, values in source.metrics.items():
        sums = np.bincount(source.callpath, values.astype(np.float64), minlength=len(archive.tree))
        assert sums.tolist() == archive.statistics[name].sum.tolist(), name
    return archive, source


def effort(source: SourceEffort, metric: str) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for number, value in zip(source.line.tolist(), source.metrics[metric].tolist(), strict=True):
        line = source.lines[number]
        key = (line.function, line.line)
        found[key] = found.get(key, 0) + value
    return {key: value for key, value in found.items() if value}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_flops_are_at_the_lines_that_a_person_wrote(workshop, level: str) -> None:
    program = workshop.build("inlined.cpp", level, "-g")
    _, source = measure(workshop.folder, program, "20")
    flops = effort(source, "flops")
    assert flops == {
        ("square(double)", line_of("one flop")): 3 * 200,
        ("sweep(Grid&)", line_of("and one more")): 3 * 200,
        ("tiny(double)", line_of("0.5 * x")): 3,
        ("main", line_of("total += sweep")): 3,
    }
    files = {line.function: line.file for line in source.lines}
    assert files["square(double)"] == str(PROGRAMS / "inlined.cpp")


def test_inlined_code_belongs_to_its_own_call_path(workshop) -> None:
    archive, source = measure(workshop.folder, workshop.build("inlined.cpp", "-O2", "-g"))
    paths = {
        archive.tree.label(path)
        for path, number in zip(source.callpath.tolist(), source.line.tolist(), strict=True)
        if source.lines[number].function in ("square(double)", "tiny(double)")
    }
    assert paths == {"main->sweep(Grid&)->square(double)", "main->sweep(Grid&)->tiny(double)"}


def test_lines_of_shared_libraries(workshop) -> None:
    folder = workshop.folder
    (folder / "part.c").write_text(
        "double part(double x, int n) {\n  while (n-- > 0)\n    x += x / 3;\n  return x;\n}\n"
    )
    (folder / "whole.c").write_text("double part(double, int);\nint main(void) { return part(1, 50) < 0; }\n")
    options = ["-O1", "-g"]
    wrapper = native_file("quipu-cc")
    subprocess.run([wrapper, *options, "-shared", "-fPIC", "part.c", "-o", "libpart.so"], cwd=folder, check=True)
    subprocess.run(
        [wrapper, *options, "whole.c", "-L.", "-lpart", "-Wl,-rpath,$ORIGIN", "-o", "whole"], cwd=folder, check=True
    )
    _, source = measure(folder, folder / "whole")
    assert effort(source, "flops")[("part", 3)] == 100


def test_the_benchmark_takes_classes_and_nothing_else_out_of_a_program(workshop) -> None:
    program = workshop.folder / "whole"
    shutil.copy2(workshop.build("inlined.cpp", "-O2", "-g"), program)  # other tests have the same file
    functions, loaded = static_functions(program), benchmark.loaded(program)
    assert counted_functions(program)
    without = benchmark.without_classes(program)
    assert not counted_functions(without)
    assert static_functions(without) == functions
    assert benchmark.loaded(without) == loaded
    assert without.stat().st_size < program.stat().st_size


@pytest.mark.parametrize("clock", ["tsc", "monotonic", "none"])
def test_a_process_says_what_its_events_cost(workshop, clock: str) -> None:
    source = workshop.folder / "source.cpp"
    direct, through_pointer = "return tiny(sum);", "static double (*volatile call)(double) = tiny; return call(sum);"
    text = (PROGRAMS / "inlined.cpp").read_text(encoding="utf-8")
    assert direct in text
    source.write_text(text.replace(direct, through_pointer), encoding="utf-8")
    profile = workshop.run(workshop.build(source, "-O2"), QUIPU_CLOCK=clock).profile
    costs = {key: float(profile.attributes[key]) for key in ("pair_ns", "pair_inside_ns", "quiet_ns", "counter_ns")}
    assert 0 < costs["quiet_ns"] < 1e6
    assert 0 < costs["counter_ns"] < 1e6
    assert 0 < costs["pair_ns"] < 1e6
    assert 0 <= costs["pair_inside_ns"] < costs["pair_ns"]
    assert (costs["pair_inside_ns"] == 0) == (clock == "none")
    names = [profile.regions[region].display if region else "" for region in profile.region.tolist()]
    nodes = [names.index(name) for name in ("main", "sweep(Grid&)", "tiny(double)", "square(double)")]
    assert profile.values["visits"][nodes].tolist() == [1, 3, 3, 3 * 50]
    assert profile.pairs[nodes].tolist() == [1, 3, 0, 0]
    overhead = profile.values["overhead"][nodes] * 1e9
    assert overhead[0] == pytest.approx(costs["pair_ns"], abs=1000 * costs["counter_ns"])
    assert overhead[1] >= 3 * costs["pair_ns"]
    assert overhead[2] == pytest.approx(3 * costs["quiet_ns"])
    assert overhead[3] == 0

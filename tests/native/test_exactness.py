# SPDX-License-Identifier: Apache-2.0
"""Counting in registers and closed forms gives the same counts as one call per block, on random programs."""

from __future__ import annotations

import pytest
from class_counts import assert_classes_equal_metrics
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.merge.run import merge_run

from .conftest import ENDS_WITH, INSTALLED_LLVMS
from .random_programs import random_program

METRICS = [
    "visits",
    "blocks",
    "instructions",
    "flops",
    "flops_single",
    "flops_double",
    "loads",
    "stores",
    "bytes_loaded",
    "bytes_stored",
    "bytes_in_order",
]


def counts(run) -> dict[tuple[str, ...], tuple[float, ...]]:
    """Return the metrics of each call path; call paths with only zeros are omitted, as in archives."""
    found = {path: tuple(values[name] for name in METRICS) for path, values in run.tree.items() if path}
    return {path: values for path, values in found.items() if any(values)}


@pytest.mark.parametrize(
    ("llvm", "seed"),
    [(INSTALLED_LLVMS[0], s) for s in range(40)] + [(v, s) for v in INSTALLED_LLVMS[1:] for s in range(8)],
)
def test_random_programs(workshop, llvm: str, seed: int) -> None:
    source = workshop.folder / "random.c"
    source.write_text(random_program(seed))
    level = ["-O0", "-O1", "-O2", "-O3"][seed % 4]
    exact = workshop.run(workshop.build(source, level, "-w", "--quipu-naive", name="naive"))
    fast = workshop.run(workshop.build(source, level, "-w", name="fast"))
    assert (fast.stdout, fast.returncode) == (exact.stdout, exact.returncode)
    assert counts(fast) == counts(exact)
    raw = fast.profile.path.parent
    run = merge_run(raw, workshop.folder / "runs", RunMetadata(exit_code=0))
    assert_classes_equal_metrics(read_archive(run.path))


@pytest.mark.parametrize("seed", [*range(100, 112), *range(204, 209), 221, 402])
def test_random_programs_without_times(workshop, seed: int) -> None:
    """Programs 111, 205, 221 and 402 leave functions without frames by longjmp, and program 206 a loop."""
    source = workshop.folder / "random.c"
    source.write_text(random_program(seed))
    exact = workshop.run(workshop.build(source, "-O2", "-w", "--quipu-naive", name="naive"), QUIPU_CLOCK="none")
    fast = workshop.run(workshop.build(source, "-O2", "-w", name="fast"), QUIPU_CLOCK="none")
    assert (fast.stdout, fast.returncode) == (exact.stdout, exact.returncode)
    assert counts(fast) == counts(exact)


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("seed", range(500, 504))
def test_random_programs_that_share_the_code_of_hooks(workshop, llvm: str, seed: int) -> None:
    source = workshop.folder / "random.c"
    source.write_text(random_program(seed, functions=16))
    exact = workshop.run(workshop.build(source, "-O2", "-w", "--quipu-naive", name="naive"), QUIPU_CLOCK="none")
    for clock in ({}, {"QUIPU_CLOCK": "none"}):
        fast = workshop.run(workshop.build(source, "-O2", "-w", name="fast"), **clock)
        assert (fast.stdout, fast.returncode) == (exact.stdout, exact.returncode)
        assert counts(fast) == counts(exact)


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("program", ["control_flow.cpp", "loops.c"])
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_known_programs(workshop, llvm: str, program: str, level: str) -> None:
    end = ENDS_WITH.get(program, 0)
    exact = workshop.run(workshop.build(program, level, "--quipu-naive", name="naive"), "37", ends_with=end)
    fast = workshop.run(workshop.build(program, level, name="fast"), "37", ends_with=end)
    assert counts(fast) == counts(exact)


def with_many_branches(count: int) -> str:
    """Return LLVM IR of a loop with `count` branches, two back edges, and an exit block shared with code outside."""
    blocks = []
    for i in range(count):
        blocks.append(
            f"b{i}:\n  %x{i} = and i32 %key, {1 << i % 5}\n  %c{i} = icmp eq i32 %x{i}, 0\n"
            f"  br i1 %c{i}, label %b{i + 1}, label %t{i}\n"
            f"t{i}:\n  store volatile i32 {i}, ptr @sink\n  br label %b{i + 1}\n"
        )
    return f"""
@sink = global i32 0
define void @many(i32 %n) {{
  %none = icmp slt i32 %n, 1
  br i1 %none, label %exit, label %head
head:
  %key = phi i32 [ 0, %0 ], [ %next, %back ], [ %next, %b{count} ]
  %next = add i32 %key, 1
  %odd = and i32 %key, 1
  %early = icmp eq i32 %odd, 1
  br i1 %early, label %back, label %b0
back:
  %last = icmp sge i32 %next, %n
  br i1 %last, label %exit, label %head
{"".join(blocks)}
b{count}:
  %full = icmp eq i32 %key, 100
  br i1 %full, label %exit, label %head
exit:
  ret void
}}
define i32 @main() {{
  call void @many(i32 0)
  call void @many(i32 50)
  call void @many(i32 1000)
  ret i32 0
}}
"""


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("branches", [5, 4200])
def test_functions_with_more_counters_than_there_is_room_for(workshop, llvm: str, branches: int) -> None:
    source = workshop.folder / "many.ll"
    source.write_text(with_many_branches(branches))
    exact = workshop.run(workshop.build(source, "-O0", "-w", "--quipu-naive", name="naive"))
    fast = workshop.run(workshop.build(source, "-O0", "-w", name="fast"))
    assert counts(fast) == counts(exact)
    assert fast.tree[("main", "many")]["visits"] == 3


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
def test_counts_do_not_depend_on_the_processor(workshop, march: str) -> None:
    plain = workshop.run(workshop.build("loops.c", "-O3", name="plain"), "1000")
    tuned = workshop.run(workshop.build("loops.c", "-O3", f"-march={march}", name="tuned"), "1000")
    assert counts(plain) == counts(tuned)

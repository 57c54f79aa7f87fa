"""Counting in registers and closed forms gives the same numbers as one call per block, on random programs."""

from __future__ import annotations

import pytest

from .conftest import INSTALLED_LLVMS
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
]


def counts(run) -> dict[tuple[str, ...], tuple[float, ...]]:
    return {path: tuple(values[name] for name in METRICS) for path, values in run.tree.items() if path}


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


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("program", ["control_flow.cpp", "loops.c"])
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_known_programs(workshop, llvm: str, program: str, level: str) -> None:
    exact = workshop.run(workshop.build(program, level, "--quipu-naive", name="naive"), "37")
    fast = workshop.run(workshop.build(program, level, name="fast"), "37")
    assert counts(fast) == counts(exact)


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
def test_counts_do_not_depend_on_the_processor(workshop, march: str) -> None:
    plain = workshop.run(workshop.build("loops.c", "-O3", name="plain"), "1000")
    tuned = workshop.run(workshop.build("loops.c", "-O3", f"-march={march}", name="tuned"), "1000")
    assert counts(plain) == counts(tuned)

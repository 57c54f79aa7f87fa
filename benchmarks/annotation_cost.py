# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of a region of quipu/region.h: nanoseconds for its begin and end together.

    make bench-annotation_cost

One short loop is built in three ways: by gcc without Quipu, by quipu-cc, and by quipu-fc with the Fortran module. Each
build runs several times with regions and without regions, alternately, and Quipu does not measure these runs. The
overhead is the difference of the fastest runs, per iteration.

The last line is one JSON object (nanoseconds):

- `unmeasured_ns`: the overhead in each build. `annotation_ns`: the largest of these.
- `measured_ns`: the overhead in the build of quipu-cc while Quipu measures, with `--counts` and with times.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from quipu.agent.installation import native_file, native_folders

ITERATIONS = 50_000_000
MEASURED_ITERATIONS = 1_000_000
ROUNDS = 5
C_SOURCE = """
#include <quipu/region.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
    const long n = atol(argv[1]);
    volatile long sink = 0;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < n; i++) {
        QUIPU_REGION_BEGIN("region");
        sink = i;
        QUIPU_REGION_END("region");
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.3f ns\\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / n);
}
"""
FORTRAN_SOURCE = """include 'quipu/region.f90'
program main
  use quipu_region
  use iso_fortran_env, only: int64
  integer(int64) :: i, n, begin, end, rate
  integer(int64), volatile :: sink
  character(len=20) :: text
  call get_command_argument(1, text)
  read (text, *) n
  call system_clock(begin, rate)
  do i = 1, n
    BEGIN
    sink = i
    END
  end do
  call system_clock(end)
  print '(f0.3, a)', real(end - begin) / real(rate) * 1e9 / real(n), ' ns'
end program
"""


def results() -> dict[str, object]:
    """Return the numbers of the last line."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        programs = built(folder)
        costs = {name: cost(*pair, ITERATIONS) for name, pair in programs.items()}
        measured = {
            name: cost(
                *programs["quipu-cc"], MEASURED_ITERATIONS, ("quipu", "run", "-q", *options, "-o", folder / "runs")
            )
            for name, options in (("counts", ["--counts"]), ("times", []))
        }
    return {"annotation_ns": max(costs.values()), "unmeasured_ns": costs, "measured_ns": measured}


def built(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Build the programs; return by name the program with regions and the program without."""
    api = native_folders()[0] / "api"
    (folder / "loop.c").write_text(C_SOURCE)
    fortran = {"BEGIN": "call quipu_region_begin('region')", "END": "call quipu_region_end('region')"}
    (folder / "with.f90").write_text(
        re.sub(r"^    (BEGIN|END)$", lambda found: fortran[found[1]], FORTRAN_SOURCE, flags=re.M)
    )
    (folder / "without.f90").write_text(re.sub(r"^    (BEGIN|END)\n", "", FORTRAN_SOURCE, flags=re.M))
    commands = {"quipu-cc": [str(native_file("quipu-cc")), "loop.c"]}
    if shutil.which("gcc"):
        commands["gcc"] = ["gcc", f"-I{api}", "loop.c"]
    programs = {}
    for name, command in commands.items():
        pair = folder / f"{name}-with", folder / f"{name}-without"
        for program, options in zip(pair, ([], ["-DQUIPU_NO_REGIONS"]), strict=True):
            subprocess.run([*command, *options, "-O2", "-o", program], cwd=folder, check=True)
        programs[name] = pair
    pair = folder / "fortran-with", folder / "fortran-without"
    for program, source in zip(pair, ("with.f90", "without.f90"), strict=True):
        subprocess.run([native_file("quipu-fc"), source, "-O2", "-o", program], cwd=folder, check=True)
    programs["quipu-fc"] = pair
    return programs


def cost(annotated: Path, plain: Path, iterations: int, launcher: tuple[str | Path, ...] = ()) -> float:
    """Return the difference in nanoseconds per iteration with and without regions."""
    pairs = [(loop(annotated, iterations, launcher), loop(plain, iterations, ())) for _ in range(ROUNDS)]
    quickest = [min(times) for times in zip(*pairs, strict=True)]
    return round(quickest[0] - quickest[1], 3)


def loop(program: Path, iterations: int, launcher: tuple[str | Path, ...]) -> float:
    """Return the nanoseconds per iteration that the program prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    words = [str(word) for word in (*launcher, *(["--"] if launcher else []), program, iterations)]
    done = subprocess.run(words, env=environment, cwd=program.parent, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


if __name__ == "__main__":
    print(json.dumps(results()))

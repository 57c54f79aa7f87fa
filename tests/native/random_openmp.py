# SPDX-License-Identifier: Apache-2.0
"""Write random OpenMP programs that end and count their own work: tasks, nested teams, cancellation, target.

Each program prints its number of calls of `work`, which depends on cancellation and on the number of threads. Tests
compare this number with the measured visits of the same run.
"""

from __future__ import annotations

import random

_HEAD = """\
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_int calls;
static volatile double sink;
static int order[4];

__attribute__((noinline)) static void work(int n) {
    for (int i = 0; i < 50 * n; i++)
        sink += i;
    calls++;
}
"""

_CLAUSES = ["", " if(0)", " final(1)", " mergeable", " priority(1)"]
_CANCELLED_LOOP = """\
#pragma omp for
for (int i = 0; i < 10; i++) {
    work(1);
    if (i == 7) {
#pragma omp cancel for
    }
#pragma omp cancellation point for
}""".splitlines()
_CANCELLED_TEAM = """\
work(1);
if (omp_get_thread_num() == 0) {
#pragma omp cancel parallel
}
#pragma omp cancellation point parallel
work(1);""".splitlines()


class Writer:
    """Write one program; equal seeds give equal programs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.left = 0  # statements
        # A program has either untied tasks or dependences and taskgroups. With both, the OpenMP library of LLVM 19
        # sometimes deadlocks, also without measurement.
        self.special = self.untied if self.random.random() < 0.7 else self.dependent

    def program(self) -> str:
        """Return the source of the program."""
        parts = [self.function(number) for number in range(3)]
        calls = "".join(f"    part{number}();\n" for number in range(3))
        main = f'int main(void) {{\n{calls}    printf("%d\\n", calls);\n    return 0;\n}}\n'
        return "\n".join([_HEAD, *parts, main])

    def function(self, number: int) -> str:
        self.left = 40
        return "\n".join([f"static void part{number}(void) {{", *self.region(0), "}", ""])

    def region(self, depth: int) -> list[str]:
        """Return a parallel region, or a construct outside of parallel regions."""
        kind = self.random.random()
        if depth == 0 and kind < 0.1:
            inner = self.region(1)
            return ["#pragma omp teams num_teams(2) thread_limit(2)", "{", "    work(1);", *inner, "}"]
        if depth == 0 and kind < 0.2:
            return ["#pragma omp target nowait", "{", "    work(2);", "}", "#pragma omp taskwait", *self.region(1)]
        threads = self.random.choice(["", " num_threads(1)", " num_threads(2)", " num_threads(3)"]) if depth else ""
        if kind > 0.9:
            cancelled = self.random.choice([_CANCELLED_LOOP, _CANCELLED_TEAM])
            # If a team of several threads is cancelled, one of a thousand runs deadlocks in the OpenMP library of LLVM
            # 19, also without measurement.
            threads = " num_threads(1)" if cancelled is _CANCELLED_TEAM else threads
            return [f"#pragma omp parallel{threads}", "{", *cancelled, "}"]
        return [f"#pragma omp parallel{threads}", "{", *self.team(depth), "}"]

    def team(self, depth: int) -> list[str]:
        """Return the statements of all threads of a team."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.random.choice([self.single, self.single, self.loop, self.sections, self.barrier, self.alone])(
                depth
            )
        return lines

    def single(self, depth: int) -> list[str]:
        kind = self.random.choice(["single", "single nowait", "masked"])
        return [f"#pragma omp {kind}", "{", *self.block(depth, cancels=False), "}"]

    def loop(self, depth: int) -> list[str]:
        schedule = self.random.choice(["static", "dynamic", "guided", "static, 1"])
        lines = ["work(i % 3);"]
        clause = self.random.choice([""] * 3 + [" nowait", " ordered"])
        if clause == " ordered":
            lines += ["#pragma omp ordered", "{", "    work(1);", "}"]
        else:
            lines += self.block(depth, cancels=False)
        return [f"#pragma omp for schedule({schedule}){clause}", "for (int i = 0; i < 10; i++) {", *lines, "}"]

    def sections(self, depth: int) -> list[str]:
        lines = ["#pragma omp sections", "{"]
        for _ in range(self.random.randint(1, 3)):
            lines += ["#pragma omp section", "{", *self.block(depth, cancels=False), "}"]
        return [*lines, "}"]

    def barrier(self, depth: int) -> list[str]:
        return ["work(1);", "#pragma omp barrier"]

    def alone(self, depth: int) -> list[str]:
        return self.block(depth, cancels=False)

    def block(self, depth: int, cancels: bool) -> list[str]:
        """Return the statements of one thread or task. cancels: it is inside of a taskgroup that may be cancelled."""
        lines: list[str] = ["work(1);"]
        for _ in range(self.random.randint(1, 3)):
            self.left -= 1
            if self.left < 0:
                break
            kinds = [self.task, self.task, self.wait, self.locked] + ([] if cancels else [self.special] * 2)
            if depth < 4:
                kinds += [self.group, self.taskloop, self.offloaded]
            if depth < 2:
                kinds.append(self.nested)
            lines += self.random.choice(kinds)(depth, cancels)
        return lines

    def task(self, depth: int, cancels: bool) -> list[str]:
        clauses = self.random.choice(_CLAUSES)
        inner = self.block(depth + 1, cancels) if depth < 5 else ["work(1);"]
        if cancels and self.random.random() < 0.3:
            inner += ["#pragma omp cancel taskgroup"]
        return [
            f"for (int k = 0; k < {self.random.randint(1, 4)}; k++) {{",
            f"#pragma omp task{clauses}",
            "{",
            *inner,
            "}",
            "}",
        ]

    def untied(self, depth: int, cancels: bool) -> list[str]:
        """Return the body of an untied task: parts between scheduling points, which different threads may execute."""
        points = ["#pragma omp taskyield", "#pragma omp taskwait", "#pragma omp task\nwork(1);"]
        parts = [[self.random.choice(points), "work(1);"] for _ in range(self.random.randint(0, 3))]
        lines = ["work(1);", *(line for part in parts for line in part)]
        return ["#pragma omp task untied", "{", *lines, "}"]

    def dependent(self, depth: int, cancels: bool) -> list[str]:
        where = self.random.randint(0, 3)
        kind = self.random.choice(["in", "inout", "out"])
        return [f"#pragma omp task depend({kind}: order[{where}])", "work(2);", "#pragma omp taskwait"]

    def wait(self, depth: int, cancels: bool) -> list[str]:
        return [self.random.choice(["#pragma omp taskwait", "#pragma omp taskyield"]), "work(1);"]

    def locked(self, depth: int, cancels: bool) -> list[str]:
        return ["#pragma omp critical", "work(1);"]

    def group(self, depth: int, cancels: bool) -> list[str]:
        return ["#pragma omp taskgroup", "{", *self.task(depth + 1, cancels=True), *self.task(depth + 1, True), "}"]

    def taskloop(self, depth: int, cancels: bool) -> list[str]:
        clause = self.random.choice(["", " grainsize(2)", " num_tasks(3)", " untied", " nogroup"])
        return [f"#pragma omp taskloop{clause}", "for (int t = 0; t < 5; t++) {", "work(t);", "}"]

    def offloaded(self, depth: int, cancels: bool) -> list[str]:
        return ["#pragma omp target", "{", "work(1);", "}"]

    def nested(self, depth: int, cancels: bool) -> list[str]:
        return self.region(depth + 1)


def random_openmp_program(seed: int) -> str:
    """Return the source of the program of a seed."""
    return Writer(seed).program()

# SPDX-License-Identifier: Apache-2.0
"""User-level threads by swapcontext: each has a call path of its own."""

from __future__ import annotations

import pytest

from .conftest import Workshop

PROGRAM = """#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t scheduler, fibers[4];
static int ends;
static volatile double sink;
__attribute__((noinline)) static void leaf(void) { for (int i = 0; i < 100; i++) sink += i; }
__attribute__((noinline)) static void yield(int k) { swapcontext(&fibers[k], &scheduler); leaf(); }
__attribute__((noinline)) static void right(int k, int n) {
    leaf();
    yield(k);
    if (n > 0)
        right(k, n - 1);
}
__attribute__((noinline)) static void left(int k, int n) {
    for (int i = 0; i < n; i++) {
        leaf();
        yield(k);
    }
}
static void even(int k) { left(k, 5 + k); ends++; }
static void odd(int k) { right(k, 4); ends++; }
__attribute__((noinline)) static void schedule(void) {
    while (ends < 4)
        for (int k = 0; k < 4; k++)
            if (fibers[k].uc_stack.ss_sp) {
                const int before = ends;
                swapcontext(&scheduler, &fibers[k]);
                if (ends > before)
                    fibers[k].uc_stack.ss_sp = NULL;
            }
}
int main(void) {
    for (int round = 0; round < 50; round++) {
        ends = 0;
        for (int k = 0; k < 4; k++) {
            getcontext(&fibers[k]);
            fibers[k].uc_stack.ss_sp = malloc(65536);
            fibers[k].uc_stack.ss_size = 65536;
            fibers[k].uc_link = &scheduler;
            makecontext(&fibers[k], (void (*)(void))(k % 2 ? odd : even), 1, k);
        }
        schedule();
    }
    leaf();
    puts("end");
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-static",), ("--quipu-naive",)], ids=["shared", "static", "naive"])
def test_contexts_have_their_own_call_paths(workshop: Workshop, options: tuple[str, ...]) -> None:
    source = workshop.folder / "contexts.c"
    source.write_text(PROGRAM)
    run = workshop.run(workshop.build(source, "-O1", "--quipu-all", *options))
    assert run.stdout == "end\n"
    assert {path: values["visits"] for path, values in run.tree.items() if path} == {
        ("main",): 1,
        ("main", "leaf"): 1,
        ("main", "schedule"): 50,
        ("main", "schedule", "even"): 100,
        ("main", "schedule", "even", "left"): 100,
        ("main", "schedule", "even", "left", "leaf"): 600,
        ("main", "schedule", "even", "left", "yield"): 600,
        ("main", "schedule", "even", "left", "yield", "leaf"): 600,
        ("main", "schedule", "odd"): 100,
        ("main", "schedule", "odd", "right"): 500,
        ("main", "schedule", "odd", "right", "leaf"): 500,
        ("main", "schedule", "odd", "right", "yield"): 500,
        ("main", "schedule", "odd", "right", "yield", "leaf"): 500,
    }
    assert min(values["time"] for values in run.tree.values()) >= 0

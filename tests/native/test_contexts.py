# SPDX-License-Identifier: Apache-2.0
"""User-level threads by swapcontext have separate call paths; limits for other kinds."""

from __future__ import annotations

import platform

import pytest

from .conftest import Measured, Workshop


@pytest.fixture(autouse=True, params=["tsc", "none"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without time stamps; without them, functions have no frames."""
    monkeypatch.setenv("QUIPU_CLOCK", request.param)


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


MOVED = """#include <pthread.h>
#include <ucontext.h>
static ucontext_t back[2], fiber;
static char stack[1 << 16];
static volatile long sink;
__attribute__((noinline)) void part(void) { sink++; }
static void body(void) {
    for (int i = 0; i < 2; i++) {
        part();
        swapcontext(&fiber, &back[i]);
    }
}
static void *other(void *unused) {
    swapcontext(&back[1], &fiber);
    return unused;
}
int main(void) {
    pthread_t thread;
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = sizeof stack;
    makecontext(&fiber, body, 0);
    swapcontext(&back[0], &fiber);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    return 0;
}
"""
OWN_SWITCH = """#include <stdint.h>
#include <stdio.h>
void switch_to(void **from, void *to);
__asm__(".globl switch_to\\nswitch_to:\\n"
        "push %rbp\\npush %rbx\\npush %r12\\npush %r13\\npush %r14\\npush %r15\\n"
        "mov %rsp, (%rdi)\\nmov %rsi, %rsp\\n"
        "pop %r15\\npop %r14\\npop %r13\\npop %r12\\npop %rbx\\npop %rbp\\nret\\n");
static void *scheduler, *fiber;
static void *stack[4096];
static volatile long sink;
__attribute__((noinline)) void part(void) { sink++; }
static void body(void) {
    for (;;) {
        part();
        switch_to(&fiber, scheduler);
    }
}
int main(void) {
    void **top = stack + 4094;
    *top = (void *)(uintptr_t)body;
    fiber = top - 6;
    for (int i = 0; i < 10; i++)
        switch_to(&scheduler, fiber);
    puts("end");
    return 0;
}
"""


def visits_of(run: Measured, name: str) -> int:
    return int(sum(values["visits"] for path, values in run.tree.items() if path and path[-1] == name))


def test_contexts_that_move_to_another_thread_are_told(workshop: Workshop) -> None:
    source = workshop.folder / "moved.c"
    source.write_text(MOVED)
    run = workshop.run(workshop.build(source, "-O1", "--quipu-all"))
    assert visits_of(run, "part") == 2
    assert run.profile.problems == ("user-level threads moved between threads: their call paths are incomplete",)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program switches by instructions of x86-64")
def test_visits_are_whole_where_a_program_switches_stacks_by_itself(workshop: Workshop) -> None:
    source = workshop.folder / "own.c"
    source.write_text(OWN_SWITCH)
    run = workshop.run(workshop.build(source, "-O1", "--quipu-all"))
    assert (run.returncode, run.stdout) == (0, "end\n")
    assert (visits_of(run, "main"), visits_of(run, "body"), visits_of(run, "part")) == (1, 1, 10)

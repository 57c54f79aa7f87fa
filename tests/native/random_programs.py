# SPDX-License-Identifier: Apache-2.0
"""Random C programs that end: nested loops left in every way, switches, gotos, recursion, longjmp, exit.

Loops have their own counters with small bounds, calls go to functions with a higher number (recursion has a depth
argument that falls), so every program ends; what it computes depends on all control flow, and is printed.
"""

from __future__ import annotations

import random

_HEAD = """\
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned x = 12345u;
static unsigned a[64];
static jmp_buf jump[8];
static int depth, budget = 20000;

static unsigned draw(void) { return x = x * 1664525u + 1013904223u; }
"""

_MAIN = """\
int main(int argc, char **argv) {
    x += (unsigned)argc * 7u;
    (void)argv;
    for (int i = 0; i < 64; i++)
        a[i] = draw() >> 16;
    for (int round = 0; round < 3; round++) {
        budget = 20000;
        printf("%u\\n", f0(round + 2));
        fflush(stdout);
    }
    printf("%u\\n", x);
    return 0;
}
"""


class Writer:
    """Writes one program; equal seeds give equal programs."""

    def __init__(self, seed: int, functions: int = 6) -> None:
        self.random = random.Random(seed)
        self.functions = functions
        self.counter = 0
        self.number = 0

    def program(self) -> str:
        """Return the source of the program."""
        prototypes = "".join(f"unsigned f{i}(int n);\n" for i in range(self.functions))
        bodies = [self.function(number) for number in range(self.functions)]
        return _HEAD + prototypes + "\n" + "\n".join(bodies) + _MAIN

    def function(self, number: int) -> str:
        """Return one function; some are kept from inlining, some hide a tail call, some catch a longjmp."""
        self.counter, self.number = 0, number
        keep = self.random.choice(["", "__attribute__((noinline)) ", "__attribute__((noinline)) "])
        lines = [f"{keep}unsigned f{self.number}(int n) {{", "    unsigned s = (unsigned)n;", "    if (budget-- < 0)"]
        lines += ["        return s;"]
        lines += self.block(1, 0, in_loop=False)
        if self.number + 1 < self.functions and self.random.random() < 0.2:
            lines.append(f"    return f{self.number + 1}(n & 3);")
        else:
            lines.append("    return s;")
        return "\n".join([*lines, "}", ""])

    def block(self, indent: int, nesting: int, in_loop: bool) -> list[str]:
        """Return some statements."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(indent, nesting, in_loop)
        return lines

    def statement(self, indent: int, nesting: int, in_loop: bool) -> list[str]:
        pad = "    " * indent
        kinds = [self.assignment, self.assignment, self.call, self.jump_out]
        if nesting < 3:
            kinds += [self.for_loop, self.for_loop, self.while_loop, self.do_loop, self.condition, self.switch]
            kinds += [self.catch, self.backward_goto]
        if in_loop:
            kinds.append(self.leave)
        return [pad + line for line in self.random.choice(kinds)(nesting, in_loop)]

    def inner(self, nesting: int, in_loop: bool) -> list[str]:
        return self.block(1, nesting + 1, in_loop)

    def name(self) -> str:
        self.counter += 1
        return f"i{self.counter}"

    def bound(self) -> str:
        return self.random.choice(["0", "1", "3", "n", "n * 2", "(int)(draw() >> 29)", "(int)(s & 7u)", "10", "n - 2"])

    def test(self) -> str:
        return self.random.choice(
            ["s & 1u", "draw() >> 31", "n > 1", "a[s & 63u] > 30000u", "(s ^ x) % 3u == 0u", "s > x"]
        )

    def assignment(self, nesting: int, in_loop: bool) -> list[str]:
        return [self.random.choice(["s += a[s & 63u];", "s = s * 3u + 1u;", "a[s & 63u] ^= s;", "s ^= draw() >> 8;"])]

    def for_loop(self, nesting: int, in_loop: bool) -> list[str]:
        i = self.name()
        kind = self.random.choice(["int", "unsigned char", "long"])
        step = self.random.choice(["++", "++", " += 2"])
        head = f"for ({kind} {i} = 0; {i} < {self.bound()}; {i}{step}) {{"
        if self.random.random() < 0.4:  # a loop that has a closed form
            limit = self.bound()
            head = f"for ({kind} {i} = 0, e{i} = {limit}; {i} < e{i}; {i}{step}) {{"
        return [head, f"    s += (unsigned){i};", *self.inner(nesting, True), "}"]

    def while_loop(self, nesting: int, in_loop: bool) -> list[str]:
        i = self.name()
        return [
            f"int {i} = {self.bound()};",
            f"while ({i}-- > 0 && ({self.test()} || n)) {{",
            *self.inner(nesting, True),
            "}",
        ]

    def do_loop(self, nesting: int, in_loop: bool) -> list[str]:
        i = self.name()
        return [f"int {i} = {self.bound()};", "do {", *self.inner(nesting, True), f"}} while ({i}-- > 0);"]

    def backward_goto(self, nesting: int, in_loop: bool) -> list[str]:
        i = self.name()
        return [
            f"int {i} = 0;",
            f"again{i}:;",
            *self.inner(nesting, False),
            f"if ({i}++ < 2 && ({self.test()}))",
            f"    goto again{i};",
        ]

    def condition(self, nesting: int, in_loop: bool) -> list[str]:
        lines = [f"if ({self.test()}) {{", *self.inner(nesting, in_loop), "}"]
        if self.random.random() < 0.5:
            lines[-1] = "} else {"
            lines += [*self.inner(nesting, in_loop), "}"]
        return lines

    def switch(self, nesting: int, in_loop: bool) -> list[str]:
        lines = [f"switch ({self.random.choice(['s', 'draw() >> 28', '(unsigned)n'])} % 5u) {{"]
        for case in range(self.random.randint(1, 4)):
            lines += [f"case {case}: {{", *self.inner(nesting, in_loop), "}"]
            if self.random.random() < 0.6:
                lines.append("    break;")
        lines += ["default:", "    s++;", "}"]
        return lines

    def call(self, nesting: int, in_loop: bool) -> list[str]:
        if self.random.random() < 0.3:
            return [f"if (n > 0) s += f{self.number}(n - 1);"]
        if self.number + 1 < self.functions:
            return [f"s += f{self.random.randint(self.number + 1, self.functions - 1)}(n & 3);"]
        return ["s--;"]

    def leave(self, nesting: int, in_loop: bool) -> list[str]:
        return [f"if ({self.test()})", f"    {self.random.choice(['break', 'continue', 'return s'])};"]

    def jump_out(self, nesting: int, in_loop: bool) -> list[str]:
        if self.random.random() < 0.1:
            return [f'if (budget < 10000 && draw() >> 27 == 3u) {{ printf("%u\\n", s); exit({self.number}); }}']
        return ["if (depth > 0 && draw() >> 30 == 1u)", "    longjmp(jump[depth - 1], 1);"]

    def catch(self, nesting: int, in_loop: bool) -> list[str]:
        """Return a block that longjmp returns to; its statements leave neither the function nor a loop around it."""
        if self.number + 1 >= self.functions:
            return ["s++;"]
        callee = self.random.randint(self.number + 1, self.functions - 1)
        return [
            "if (depth < 8) {",
            "    volatile int level = depth;",
            "    if (setjmp(jump[depth]) == 0) {",
            "        depth++;",
            f"        s += f{callee}(n & 3);",
            "    } else {",
            "        x += 17u;",
            "    }",
            "    depth = level;",
            "}",
        ]


def random_program(seed: int, functions: int = 6) -> str:
    """Return the source of the program of a seed. functions: number of functions except main."""
    return Writer(seed, functions).program()

# SPDX-License-Identifier: Apache-2.0
"""Measure the processor time of the call graph of a large program.

    make bench-callgraph
    benchmarks/callgraph.py --functions 20000

The benchmark generates a C++ program, builds it with quipu-c++, and reads its call graph as `quipu callgraph` does. A
file of the program contains 100 functions. Each function calls six earlier functions, also of other files, one of them
in a loop. It also calls two virtual functions of eight classes. Every tenth function makes a call through a pointer.

The last line is one JSON object: `functions` and `calls` of the graph, and processor seconds:

- `join_seconds`: reading and joining the sections of the object files.
- `sums_seconds`: computing the aggregated statements of all functions.
- `write_seconds`: writing JSON. `command_seconds`: the whole command. `build_seconds`: the build.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from quipu.agent.installation import native_file
from quipu.agent.source.callgraph import call_graph
from quipu.report.formats.callgraph import callgraph_json

PER_FILE = 100
CALLS = 6
CLASSES = 8
HEADER = """struct Base { virtual double row(double) const; virtual double column(double) const; virtual ~Base(); };
extern const Base *const objects[];
extern double (*const pointers[])(double);
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = generate(folder, options.functions, random.Random(options.seed))
        before = processor(resource.RUSAGE_CHILDREN)
        build(folder, files)
        built = processor(resource.RUSAGE_CHILDREN)
        quipu = Path(sys.executable).with_name("quipu")
        subprocess.run([quipu, "callgraph", folder / "program", "-o", folder / "graph.json"], check=True)
        command = processor(resource.RUSAGE_CHILDREN) - built
        times = [processor(resource.RUSAGE_SELF)]
        graph = call_graph(folder / "program")
        times.append(processor(resource.RUSAGE_SELF))
        _ = graph.aggregated_statements
        times.append(processor(resource.RUSAGE_SELF))
        msgspec.json.encode(callgraph_json(graph, "program"))
        times.append(processor(resource.RUSAGE_SELF))
    names = ("join_seconds", "sums_seconds", "write_seconds")
    parts = {name: times[at + 1] - times[at] for at, name in enumerate(names)}
    counted = {"functions": len(graph.functions), "calls": len(graph.calls)}
    print(json.dumps({**counted, **parts, "command_seconds": command, "build_seconds": built - before}))


def generate(folder: Path, functions: int, rng: random.Random) -> list[Path]:
    """Write the files of the program; the last has main, the tables of pointers and the classes."""
    files = []
    for first in range(0, functions, PER_FILE):
        numbers = range(first, min(first + PER_FILE, functions))
        called = [sorted({rng.randrange(number) for _ in range(CALLS)}) if number else [] for number in numbers]
        declared = sorted({callee for one in called for callee in one if callee < first})
        text = [HEADER, *(f"double f{callee}(double);" for callee in declared)]
        for number, callees in zip(numbers, called, strict=True):
            first_call = f"    for (int i = 0; i < 3; i++)\n        x += f{callees[0]}(x);\n" if callees else ""
            rest = "".join(f"    x -= f{callee}(x);\n" for callee in callees[1:])
            pointed = f"    x += objects[{number % CLASSES}]->row(x) + objects[{number % CLASSES}]->column(x);\n"
            pointed += f"    x += pointers[{number % CLASSES}](x);\n" if number % 10 == 0 else ""
            text.append(f"double f{number}(double x) {{\n{first_call}{rest}{pointed}    return x;\n}}")
        files.append(folder / f"part{first // PER_FILE}.cpp")
        files[-1].write_text("\n".join(text) + "\n")
    classes = [
        f"struct Class{k} : Base {{ double row(double x) const override {{ return x * {k}; }} "
        f"double column(double x) const override {{ return x - {k}; }} }};\nconst Class{k} object{k};"
        for k in range(CLASSES)
    ]
    taken = [f"f{rng.randrange(functions)}" for _ in range(CLASSES)]
    text = [
        HEADER,
        "double Base::row(double x) const { return x; }",
        "double Base::column(double x) const { return x; }",
    ]
    text += ["Base::~Base() {}", *classes, *(f"double {name}(double);" for name in dict.fromkeys(taken))]
    text.append(f"const Base *const objects[] = {{{', '.join(f'&object{k}' for k in range(CLASSES))}}};")
    text.append(f"double (*const pointers[])(double) = {{{', '.join(taken)}}};")
    text.append(f"double f{functions - 1}(double);\nint main() {{ return f{functions - 1}(1.0) > 0.0; }}")
    files.append(folder / "main.cpp")
    files[-1].write_text("\n".join(text) + "\n")
    return files


def build(folder: Path, files: list[Path]) -> None:
    """Compile all files and link them, without optimization, which does not change the graph."""
    jobs = os.cpu_count() or 1
    commands = [[native_file("quipu-c++"), "-O0", "-g1", "-c", *files[at::jobs]] for at in range(jobs)]
    running = [subprocess.Popen([str(word) for word in command], cwd=folder) for command in commands]
    endings = [process.wait() for process in running]
    if any(endings):
        raise SystemExit("the generated program does not compile")
    objects = [file.with_suffix(".o") for file in files]
    subprocess.run([native_file("quipu-c++"), *objects, "-o", folder / "program"], check=True)


def processor(whose: int) -> float:
    """Return the processor seconds of this process, or of its finished children."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Write the files of a generated program: common code, the functions, a Makefile, and the statement of complexity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from . import growth
from .functions import Arrangement, Communication, Computation, Function, Operation
from .statement import statement

_PER_FILE = 25
_SHARED = ("generated.hpp", "generated.cpp", "main.cpp", "Makefile")

_CALLS = {
    Operation.BARRIER: ["MPI_Barrier(MPI_COMM_WORLD);"],
    Operation.BCAST: ["MPI_Bcast(data.mine.data(), count, MPI_UINT32_T, 0, MPI_COMM_WORLD);"],
    Operation.REDUCE: [
        "MPI_Reduce(data.mine.data(), data.theirs.data(), count, MPI_UINT32_T, MPI_SUM, 0, MPI_COMM_WORLD);"
    ],
    Operation.ALLREDUCE: [
        "MPI_Allreduce(data.mine.data(), data.theirs.data(), count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);"
    ],
    Operation.SEND_RECV: [
        "const int next = (run.rank + 1) % run.ranks;",
        "const int previous = (run.rank + run.ranks - 1) % run.ranks;",
        "if (run.rank % 2 == 0) {",
        "    MPI_Send(data.mine.data(), count, MPI_UINT32_T, next, 0, MPI_COMM_WORLD);",
        "}",
        "MPI_Recv(data.theirs.data(), count, MPI_UINT32_T, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);",
        "if (run.rank % 2 != 0) {",
        "    MPI_Send(data.mine.data(), count, MPI_UINT32_T, next, 0, MPI_COMM_WORLD);",
        "}",
    ],
}
for _operation in (Operation.GATHER, Operation.SCATTER, Operation.ALLGATHER, Operation.ALLTOALL):
    _root = "0, " if _operation in (Operation.GATHER, Operation.SCATTER) else ""
    _CALLS[_operation] = [
        f"{_operation.mpi_names[0]}(data.mine.data(), count, MPI_UINT32_T, data.theirs.data(), count, MPI_UINT32_T,",
        f"{' ' * len(_operation.mpi_names[0])} {_root}MPI_COMM_WORLD);",
    ]


def program(functions: Sequence[Function], seed: int | None = None) -> dict[str, str]:
    """Return the files of a program with these functions: text by name of the file. `make` builds the program.

    complexity.json states the complexity of each function (statement.py). seed: from which random functions were
    chosen; it is only stored in complexity.json.
    """
    folder = files(__package__) / "source"
    result = {name: (folder / name).read_text(encoding="utf-8") for name in _SHARED}
    for number, first in enumerate(range(0, len(functions), _PER_FILE)):
        result[f"functions_{number:02}.cpp"] = _translation_unit(functions[first : first + _PER_FILE])
    result["table.cpp"] = _table(functions)
    result["complexity.json"] = json.dumps(statement(functions, seed), indent=1, ensure_ascii=False) + "\n"
    return result


def _translation_unit(functions: Sequence[Function]) -> str:
    head = ['#include "generated.hpp"', "", "#include <cmath>", "", "using namespace generated;"]
    return "\n".join([*head, *(line for function in functions for line in ["", *_function(function)])]) + "\n"


def _table(functions: Sequence[Function]) -> str:
    declared = [f"generated::Errors {function.name}(const generated::Run &run);" for function in functions]
    entries = [f'    {{"{function.name}", {function.name}}},' for function in functions]
    lines = ['#include "generated.hpp"', "", *declared, "", "namespace generated {"]
    return "\n".join(
        [*lines, "const std::vector<Function> functions = {", *entries, "};", "} // namespace generated\n"]
    )


def _function(function: Function) -> list[str]:
    """Return the lines of code of a function: NAME_communicate, NAME_compute, and NAME, which calls and checks both."""
    name, messages, work = function.name, function.communication, function.computation
    lines = [f"// {_describe(function)}"]
    if messages.operation is not Operation.NONE:
        lines.extend(_communicate(name, messages))
    if work.loops:
        lines.extend(_compute(name, work))
    lines += [
        f"Errors {name}(const Run &run) {{",
        f"    Data data(run, Operation::{messages.operation.value}, {growth.as_cpp(messages.elements)});",
        "    Errors errors;",
    ]
    if messages.operation is not Operation.NONE:
        lines += [
            "    if (run.communicates) {",
            "        synchronize();",
            f"        {name}_communicate(run, data);",
            "    }",
        ]
        lines += ["    errors.elements = data.wrong(run);"]
    if work.loops:
        steps = " + ".join(growth.as_cpp(total) for total in work.totals)
        lines += [
            "    if (run.computes) {",
            "        const Window window(data);",
            f"        const {work.step.value} result = {name}_compute(run, window);",
            f"        errors.computations = right(result, window, {steps}) ? 0 : 1;",
            "    }",
        ]
    return [*lines, "    return errors;", "}"]


def words(function: Function) -> tuple[str, str, str]:
    """Return three texts about a function: sizes of its loops, its MPI calls, number of elements of a message.

    A text is "" if the function has no loops, no calls, or no data.
    """
    between = " × " if function.computation.arrangement is Arrangement.NESTED else " + "
    loops = between.join(growth.text(loop) for loop in function.computation.loops)
    messages = function.communication
    operations = " and ".join(messages.operation.mpi_names)
    if operations and (messages.calls.factors or messages.calls.coefficient != 1.0):
        operations += f", {growth.text(messages.calls)} times"
    return loops, operations, growth.text(messages.elements) if messages.operation.moves_data else ""


def _describe(function: Function) -> str:
    loops, operations, elements = words(function)
    parts = [loops or "no loops", operations, f"{elements} elements" if elements else ""]
    return f"{function.name}: {'; '.join(part for part in parts if part)}"


def _communicate(name: str, messages: Communication) -> list[str]:
    data = "Data &data" if messages.operation.moves_data else "Data & /*data*/"
    run = (
        "const Run &run"
        if messages.calls.factors or messages.operation is Operation.SEND_RECV
        else "const Run & /*run*/"
    )
    calls = growth.as_cpp(messages.calls) if messages.calls.factors else str(growth.size(messages.calls, {}))
    count = ["    const int count = static_cast<int>(data.elements);"] if messages.operation.moves_data else []
    return [
        f"[[gnu::noinline]] static void {name}_communicate({run}, {data}) {{",
        *count,
        f"    const std::uint64_t calls = {calls};",
        "    for (std::uint64_t call = 0; call < calls; call++) {",
        *(f"        {line}" for line in _CALLS[messages.operation]),
        "    }",
        "}",
    ]


def _compute(name: str, work: Computation) -> list[str]:
    nested = work.arrangement is Arrangement.NESTED
    run = "const Run &run" if any(loop.factors for loop in work.loops) else "const Run & /*run*/"
    body: list[str] = []
    for depth in range(len(work.loops)):
        pad = "    " * (depth + 1 if nested else 1)
        begin, end = "0", f"total{depth}"
        if nested and depth:
            share = f"total{depth - 1}, total{depth}"
            body.append(f"{pad}const std::uint64_t end{depth} = share(i{depth - 1} + 1, {share});")
            begin, end = f"share(i{depth - 1}, {share})", f"end{depth}"
        body.append(f"{pad}for (std::uint64_t i{depth} = {begin}; i{depth} < {end}; i{depth}++) {{")
        body.append(f"{pad}    result.step(window[step++]);")
        if not nested:
            body.append(f"{pad}}}")
    if nested:
        body.extend(f"{'    ' * (depth + 1)}}}" for depth in reversed(range(len(work.loops))))
    return [
        f"[[gnu::noinline]] static {work.step.value} {name}_compute({run}, const Window &window) {{",
        *(f"    const std::uint64_t total{i} = {growth.as_cpp(total)};" for i, total in enumerate(work.totals)),
        f"    {work.step.value} result;",
        "    std::uint64_t step = 0;",
        *body,
        "    return result;",
        "}",
    ]

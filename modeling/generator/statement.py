# SPDX-License-Identifier: Apache-2.0
"""State the complexity of generated functions in machine-readable form: counts as formulas, and orders of growth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..pmnf.model import Model
from . import growth
from .functions import BYTES_PER_ELEMENT, Communication, Computation, Function

SCHEMA = "quipu generated program 1"


def statement(functions: Sequence[Function], seed: int | None = None) -> dict[str, Any]:
    """Return the statement of a program as JSON data; docs/generate.md describes the entries.

    Formulas are Python expressions of p and n with max, floor and log2. `leading` is the pair (i, j) of the leading
    term x^i·log2(x)^j for each parameter x; i is a text such as "3/2".
    """
    return {
        "schema": SCHEMA,
        "program": "benchmark",
        "seed": seed,
        "parameters": {"p": "MPI ranks, at least 2", "n": "problem size"},
        "functions": [_function(function) for function in functions],
    }


def _function(function: Function) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": function.name}
    if function.computation.loops:
        entry["computation"] = _computation(function.name, function.computation)
    if function.communication.operation.mpi_names:
        entry["communication"] = _communication(function.name, function.communication)
    return entry


def _computation(name: str, work: Computation) -> dict[str, Any]:
    return {
        "region": f"{name}_compute",
        "arrangement": work.arrangement.value,
        "step": work.step.value,
        "loops": [
            {"growth": growth.text(loop), "steps": growth.formula(total)}
            for loop, total in zip(work.loops, work.totals, strict=True)
        ],
        "model": work.model.python,
        "leading": leading(work.model),
    }


def _communication(name: str, messages: Communication) -> dict[str, Any]:
    size, calls = growth.formula(messages.elements), growth.formula(messages.calls)
    volume = "*".join([str(BYTES_PER_ELEMENT), size, calls, *(["p"] if messages.operation.to_all else [])])
    entry: dict[str, Any] = {
        "region": f"{name}_communicate",
        "operation": messages.operation.value,
        "elements": {"growth": growth.text(messages.elements), "size": size, "bytes": BYTES_PER_ELEMENT},
        "calls": {"growth": growth.text(messages.calls), "size": calls},
        "volume": {"model": messages.volume.python, "leading": leading(messages.volume)},
        "mpi": [],
    }
    if not messages.operation.moves_data:
        volume = "0"
        del entry["elements"]
    for mpi_name in messages.operation.mpi_names:
        expected = messages.time(mpi_name)
        entry["mpi"].append(
            {
                "region": mpi_name,
                "calls": calls,
                "bytes_sent": "0" if mpi_name == "MPI_Recv" else volume,
                "bytes_received": "0" if mpi_name == "MPI_Send" else volume,
                "time": {"model": expected.python, "leading": leading(expected)},
            }
        )
    return entry


def leading(model: Model) -> dict[str, list[str | int]]:
    """Return the leading exponents [i, j] of each parameter, i as text."""
    return {name: [str(power), log] for name, (power, log) in model.leading.items()}

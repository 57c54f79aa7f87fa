# SPDX-License-Identifier: Apache-2.0
"""Read complexity.toml, the documented work of an example, and evaluate it for one rank of one configuration.

docs/examples.md describes the file. Expressions are Python arithmetic on names; other Python code is rejected.
"""

from __future__ import annotations

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

Number = int | float

COUNTS = ("calls", "messages_sent", "messages_received", "bytes_sent", "bytes_received")

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(expression: str, names: Mapping[str, Number]) -> Number:
    """Return the value of an arithmetic expression; a comparison is 0 or 1. ValueError for anything else."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{expression!r}: {error.msg}") from None
    return _value(tree.body, names, expression)


def _value(node: ast.expr, names: Mapping[str, Number], text: str) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"{text!r}: unknown name {name!r}")
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, text)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names, text), _value(right, names, text))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return int(_COMPARE[type(op)](_value(left, names, text), _value(right, names, text)))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names, text) else orelse, names, text)
    raise ValueError(f"{text!r}: only names, numbers, arithmetic, comparisons and A if B else C are allowed")


@dataclass(frozen=True)
class RegionComplexity:
    """Leading term of the blocks that one rank executes in a region.

    name:      fnmatch pattern of the displayed name.
    blocks:    parameter → (exponent, exponent of log2); parameters that do not appear have no influence.
    inclusive: the term is that of the region with all that it calls.
    dominant:  the term outweighs the others at the points of the campaign, so a model must find it.
    """

    name: str
    blocks: dict[str, tuple[Number, int]]
    calls: str
    inclusive: bool
    dominant: bool


@dataclass(frozen=True)
class OperationComplexity:
    """The counts of one rank in an MPI operation below one caller: expressions by the names in COUNTS.

    sum_over_ranks has the counts of which only the total is known. waiting: parameter → (exponent, exponent of log2)
    of the waiting time.
    """

    caller: str
    name: str
    per_rank: dict[str, str]
    sum_over_ranks: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, tuple[Fraction, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Complexity:
    """The content of one complexity.toml."""

    program: str
    parameters: dict[str, str]
    constants: dict[str, Number]
    values: dict[str, str]
    regions: tuple[RegionComplexity, ...]
    operations: tuple[OperationComplexity, ...]

    def names(self, configuration: Mapping[str, Number], rank: int) -> dict[str, Number]:
        """Return all names that expressions may use, for one rank of one configuration."""
        names: dict[str, Number] = {**self.constants, **configuration, "rank": rank}
        for name, expression in self.values.items():
            names[name] = evaluate(expression, names)
        return names

    def expected(self, operation: OperationComplexity, configuration: Mapping[str, Number]) -> dict[str, list[Number]]:
        """Return the counts of an operation on ranks 0 … p - 1, without those known in total only."""
        ranks = range(int(configuration["p"]))
        return {
            count: [evaluate(text, self.names(configuration, rank)) for rank in ranks]
            for count, text in operation.per_rank.items()
        }

    def expected_total(self, operation: OperationComplexity, configuration: Mapping[str, Number]) -> dict[str, Number]:
        """Return the counts of an operation summed over ranks, all of COUNTS."""
        totals: dict[str, Number] = {
            count: sum(values) for count, values in self.expected(operation, configuration).items()
        }
        for count, text in operation.sum_over_ranks.items():
            totals[count] = evaluate(text, self.names(configuration, 0))
        return totals


def read_complexity(path: Path) -> Complexity:
    """Read a complexity.toml; ValueError or KeyError if a key is missing or unknown."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Complexity(
        program=content["program"],
        parameters=content["parameters"],
        constants=content["constants"],
        values=content["values"],
        regions=tuple(_region(table) for table in content.get("region", [])),
        operations=tuple(_operation(table) for table in content["operation"]),
    )


def _region(table: dict[str, Any]) -> RegionComplexity:
    return RegionComplexity(
        name=table["name"],
        blocks={name: (power, log) for name, (power, log) in table["blocks"].items()},
        calls=table["calls"],
        inclusive=table.get("inclusive", False),
        dominant=table["dominant"],
    )


def _operation(table: dict[str, Any]) -> OperationComplexity:
    total = table.get("sum_over_ranks", {})
    unknown = set(table) - {"caller", "name", "sum_over_ranks", "waiting", *COUNTS} | set(total) - set(COUNTS)
    if unknown:
        raise ValueError(f"operation {table['name']}: unknown keys {', '.join(sorted(unknown))}")
    # Missing counts are 0.
    per_rank = {count: table.get(count, "0") for count in COUNTS if count not in total}
    waiting = {name: (Fraction(power), int(log)) for name, (power, log) in table.get("waiting", {}).items()}
    return OperationComplexity(table["caller"], table["name"], per_rank, total, waiting)

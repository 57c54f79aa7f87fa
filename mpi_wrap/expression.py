# SPDX-License-Identifier: Apache-2.0
"""Parse expressions of the table of operations as Python syntax, check them, and write them as C.

The comment at the beginning of operations.toml describes the grammar. In the C text, arguments are variables with their
names in the table. Wrappers of Fortran procedures first convert their arguments to such variables. Only datatypes are
written by a function of the language binding (`Types`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from quipu.modeling.errors import FormatError

GROUP_NAMES = frozenset({"size", "local_size", "rank", "root_here", "leaf"})
DEGREE_NAMES = frozenset({"in_degree", "out_degree"})
CONSTANTS = frozenset({"MPI_NO_OP"})
SUMS = {
    "sum": "quipu_mpi_sum({counts}, sizeof *{counts}, group.size, {types})",
    "sum_local": "quipu_mpi_sum({counts}, sizeof *{counts}, group.local_size, {types})",
    "sum_in": "quipu_mpi_sum_neighbours({counts}, sizeof *{counts}, QUIPU_MPI_IN, comm, {types})",
    "sum_out": "quipu_mpi_sum_neighbours({counts}, sizeof *{counts}, QUIPU_MPI_OUT, comm, {types})",
}
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


Types = Callable[[str], str]
"""Function from the name of an argument (a datatype or an array of datatypes) to C text of type
`struct quipu_mpi_types`. Each language binding has one."""


@dataclass(frozen=True)
class Expression:
    """A checked expression over the arguments of an operation."""

    text: str
    tree: ast.expr

    def c(self, types: Types) -> str:
        """Return the C text of the expression. It uses the variable `group` of type struct quipu_mpi_group."""
        return _render(self.tree, types)


def parse(text: str, arguments: tuple[str, ...], source: object, line: int) -> Expression:
    """Parse `text`. Raises FormatError with `source` and `line` if the grammar does not allow it."""
    try:
        tree = ast.parse(" ".join(text.split()), mode="eval").body
    except SyntaxError as error:
        raise FormatError(source, f"expression {text!r}: {error.msg}", line) from error
    known = GROUP_NAMES | DEGREE_NAMES | CONSTANTS | frozenset(arguments) | {"bytes", "in_place"} | frozenset(SUMS)
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if unknown := sorted(names - known):
        raise FormatError(source, f"expression {text!r}: unknown name {unknown[0]!r}", line)
    problem = _problem(tree, frozenset(arguments))
    if problem:
        raise FormatError(source, f"expression {text!r}: {problem}", line)
    return Expression(text, tree)


def _problem(node: ast.expr, arguments: frozenset[str]) -> str | None:
    """Return a message about a part of an expression that the grammar does not allow; None if there is none."""
    children: list[ast.expr] = []
    match node:
        case ast.Name(id=name):
            return None if name not in SUMS and name not in ("bytes", "in_place") else f"{name} needs arguments"
        case ast.Constant(value=int()):
            return None
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
            if type(op) not in OPERATORS:
                return "the operators are + - * == !="
            children = [left, right]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = [test, body, orelse]
        case ast.Subscript(value=ast.Name(id=array), slice=index):
            if array not in arguments:
                return f"{array} is not an argument"
            children = [index]
        case ast.Call(func=ast.Name(id="bytes"), args=[count, ast.Name(id=datatype)], keywords=[]):
            if datatype not in arguments:
                return f"{datatype} is not an argument"
            children = [count]
        case ast.Call(func=ast.Name(id=name), args=operands, keywords=[]):
            return _call_problem(name, operands, arguments)
        case _:
            return f"cannot use {ast.unparse(node)!r}"
    return next((problem for child in children if (problem := _problem(child, arguments))), None)


def _call_problem(name: str, operands: list[ast.expr], arguments: frozenset[str]) -> str | None:
    """Return a message about a wrong call of a function whose operands must be arguments; None if the call is right."""
    expected = {"in_place": 1} | dict.fromkeys(SUMS, 2)
    given = [operand.id for operand in operands if isinstance(operand, ast.Name) and operand.id in arguments]
    if name not in expected:
        return f"unknown function {name!r}"
    if len(operands) != expected[name] or len(given) != len(operands):
        return f"{name} takes {expected[name]} argument(s) of the operation"
    return None


def _render(node: ast.expr, types: Types) -> str:
    """Return the C text of a checked node."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.Name(id=name):
            if name in GROUP_NAMES:
                return f"group.{name}"
            if name in DEGREE_NAMES:
                which = "QUIPU_MPI_IN" if name == "in_degree" else "QUIPU_MPI_OUT"
                return f"quipu_mpi_degree(comm, {which})"
            return name
        case ast.BinOp(left=left, op=operator, right=right):
            return f"((uint64_t){_render(left, types)} {OPERATORS[type(operator)]} {_render(right, types)})"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return f"({_render(left, types)} {OPERATORS[type(operator)]} {_render(right, types)})"
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"({_render(test, types)} ? {_render(body, types)} : {_render(orelse, types)})"
        case ast.Subscript(value=ast.Name(id=array), slice=index):
            return f"{array}[{_render(index, types)}]"
        case ast.Call(func=ast.Name(id="in_place"), args=[ast.Name(id=buffer)]):
            return f"({buffer} == MPI_IN_PLACE)"
        case ast.Call(func=ast.Name(id="bytes"), args=[count, ast.Name(id=datatype)]):
            return f"quipu_mpi_bytes({_render(count, types)}, {datatype})"
        case ast.Call(func=ast.Name(id=name), args=[ast.Name(id=counts), ast.Name(id=datatype)]):
            return SUMS[name].format(counts=counts, types=types(datatype))
    raise AssertionError(ast.dump(node))

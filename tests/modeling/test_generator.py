# SPDX-License-Identifier: Apache-2.0
"""Generated programs: growths, specifications, choices from a seed, and the statement of the truth."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.generator import (
    Arrangement,
    Choices,
    Communication,
    Computation,
    Function,
    Operation,
    choose_functions,
    functions_of,
    parse_growth,
    program,
    statement,
)
from quipu.modeling.generator.growth import formula, size, text

POINT = {"p": 64.0, "n": 1000.0}


@pytest.mark.parametrize(
    ("growth", "value"),
    [
        ("n", 1000),
        ("2*n^2", 2_000_000),
        ("n**(1/3)", 10),
        ("n^0.5", 32),
        ("0.5*p*log2(p)^2", 1152),
        ("n^(3/2)*log2(n)/4", 78786),
        ("7", 7),
        ("p^-1*n", 16),
        ("0.0001*n", 1),
    ],
)
def test_growths_mean_what_they_say(growth: str, value: int) -> None:
    term = parse_growth(growth)
    assert size(term, POINT) == value
    assert size(parse_growth(text(term)), POINT) == value
    assert eval(formula(term), {"floor": math.floor, "log2": math.log2, "max": max}, POINT) == value


@pytest.mark.parametrize(
    "growth", ["", "n+p", "m", "n^p", "log2(n*p)", "-n", "0*n", "log2(n)^0.5", "exp(n)", "n/p", "n^(1/0)"]
)
def test_other_growths_are_refused(growth: str) -> None:
    with pytest.raises(ModelingError, match="growth"):
        parse_growth(growth)


def parts(computation: Computation, point: Mapping[str, float]) -> list[int]:
    return [size(total, point) for total in computation.totals]


def test_nested_loops_multiply_and_sequential_ones_add() -> None:
    loops = (parse_growth("n"), parse_growth("log2(p)"))
    assert parts(Computation(loops), POINT) == [1000, 6000]
    assert parts(Computation(loops, Arrangement.SEQUENTIAL), POINT) == [1000, 6]
    assert Computation(loops).model.leading == {"p": (Fraction(0), 1), "n": (Fraction(1), 0)}


@pytest.mark.parametrize("operation", [o for o in Operation if o is not Operation.NONE])
def test_expected_times_are_those_of_table_i(operation: Operation) -> None:
    own = Communication(operation, parse_growth("n^(1/2)"), parse_growth("log2(p)"))
    for name in operation.mpi_names:
        leading = own.time(name).leading
        rooted = operation in (Operation.GATHER, Operation.SCATTER)
        expected_p = {True: (Fraction(1), 1), False: (Fraction(0), 1 if operation is Operation.SEND_RECV else 2)}
        assert leading["p"] == expected_p[operation.to_all or rooted]
        assert leading["n"] == (Fraction(1, 2) if operation.moves_data else Fraction(0), 0)


def test_the_same_seed_gives_the_same_program() -> None:
    first, again, other = (program(choose_functions(30, seed), seed) for seed in (1, 1, 2))
    assert first == again
    assert first["functions_00.cpp"] != other["functions_00.cpp"]
    assert set(first) >= {"functions_00.cpp", "functions_01.cpp", "main.cpp", "Makefile", "complexity.json"}


def test_choices_keep_to_their_bounds() -> None:
    choices = Choices(exponents=(Fraction(1, 2), Fraction(2)), logarithms=(0, 1), operations=(Operation.BCAST,))
    functions = choose_functions(100, 5, choices)
    for function in functions:
        assert function.communication.operation is Operation.BCAST
        assert size(function.communication.elements, choices.largest) <= choices.most_elements * 1.01
        assert sum(parts(function.computation, choices.largest)) <= 2 * choices.most_steps
        for loop in (*function.computation.loops, function.communication.elements):
            assert all(f.exponent in (0, Fraction(1, 2), 2) and f.log <= 1 for f in loop.factors)
    assert {function.computation.arrangement for function in functions} == set(Arrangement)


def test_impossible_choices_are_refused() -> None:
    with pytest.raises(ModelingError, match="no computation fits"):
        choose_functions(1, 0, Choices(exponents=(Fraction(9),), logarithms=(0,)))


def test_the_statement_has_formulas_and_orders() -> None:
    own = Function("f", Computation((parse_growth("n"),)), Communication(Operation.GATHER, parse_growth("3*n")))
    entry = statement([own])["functions"][0]
    assert entry["computation"]["leading"] == {"p": ["0", 0], "n": ["1", 0]}
    assert entry["communication"]["mpi"][0]["time"]["leading"] == {"p": ["1", 0], "n": ["1", 0]}
    names = {"floor": math.floor, "log2": math.log2, "max": max}
    assert eval(entry["communication"]["mpi"][0]["bytes_sent"], names, POINT) == 12000


def test_a_specification_gives_its_functions() -> None:
    table = {"name": "solve", "loops": ["n", "p"], "arrangement": "sequential", "operation": "bcast", "elements": "n*p"}
    (own,) = functions_of({"function": [table]}, "spec.toml")
    assert own.name == "solve"
    assert sum(parts(own.computation, POINT)) == 1064
    assert own.communication.volume.evaluate(np.array([[POINT["p"], POINT["n"]]])) == [256000]


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"name": "2x", "loops": ["n"]}, "identifier"),
        ({"name": "f"}, "does nothing"),
        ({"name": "f", "loops": "n"}, "list"),
        ({"name": "f", "loops": ["n+"]}, "loops: growth"),
        ({"name": "f", "loops": [True]}, "is not a growth"),
        ({"name": "f", "operation": "shout"}, "choose one of"),
        ({"name": "f", "operation": "barrier", "elements": "n"}, "has no elements"),
        ({"name": "f", "loops": ["n"], "calls": "n"}, "has no calls"),
        ({"name": "f", "loops": ["n"], "speed": 1}, "unknown key 'speed'"),
        ({"name": "switch", "loops": ["n"]}, "function 1: 'switch' is reserved by C\\+\\+, MPI or generated programs"),
        ({"name": "Window", "loops": ["n"]}, "give another name"),
        ({"name": "MPI_Send", "loops": ["n"]}, "'MPI_Send' is reserved"),
        ({"name": "size_t", "loops": ["n"]}, "'size_t' is reserved"),
        ({"name": "f", "loops": ["n"], "arrangement": ["nested"]}, r"arrangement \['nested'\] is unknown; choose"),
        ({"name": "f", "loops": ["n"], "step": {}}, "step {} is unknown"),
        ({"name": "f", "operation": 1}, "operation 1 is unknown"),
        ({"name": "f", "loops": ["n^1000"]}, r"loops: 'n\^1000' is more than 2\^62 at p=2 and n=2"),
        ({"name": "f", "operation": "bcast", "elements": "1e308*n^20"}, "elements: .* nothing has that size"),
        ({"name": "f", "operation": "bcast", "calls": "n^1e9"}, "calls: .* nothing has that size"),
    ],
)
def test_wrong_specifications_say_what_is_wrong(table: dict[str, object], fault: str) -> None:
    with pytest.raises(FormatError, match=fault) as caught:
        functions_of({"function": [table]}, "spec.toml")
    assert "spec.toml" in str(caught.value)


def test_a_specification_needs_functions_of_different_names() -> None:
    one = {"name": "f", "loops": ["n"]}
    wrong: list[dict[str, object]] = [{}, {"function": []}, {"function": [one, one]}, {"function": [one], "other": 1}]
    for content in wrong:
        with pytest.raises(FormatError, match=r"spec\.toml"):
            functions_of(content, "spec.toml")
    part = {"name": "f_compute", "loops": ["n"]}
    with pytest.raises(FormatError, match=r"spec\.toml: function f_compute: a part of another function has this name"):
        functions_of({"function": [part, one]}, "spec.toml")


def test_what_generated_functions_share_is_no_name_of_one() -> None:
    header = program([])["generated.hpp"]
    kinds = r"using|struct|enum class|template .*|inline|void|\[\[.*\]\]"
    declared = set(re.findall(rf"^(?:{kinds}).*?\b(\w+)(?= =|;| \{{|\()", header, re.MULTILINE))
    assert {"Element", "Run", "share", "Operation", "Data", "synchronize", "power", "right", "Function"} <= declared
    for name in declared:
        with pytest.raises(FormatError, match="give another name"):
            functions_of({"function": [{"name": name, "loops": ["n"]}]}, "spec.toml")

# SPDX-License-Identifier: Apache-2.0
"""Selections for other compilers and instrumenters."""

from __future__ import annotations

import pytest
from quipu.modeling.callgraph import Function
from quipu.modeling.experiment import Region
from quipu.report.formats import format_filter, parse_filter
from quipu.report.formats.compiler_names import patterns_for
from quipu.report.formats.exclusion_lists import gcc_options, name_list


@pytest.mark.parametrize(
    ("name", "patterns"),
    [
        ("solve", ("solve",)),
        ("_ZN5solve3runEv", ("_ZN5solve3runEv",)),
        ("_ZN6SquareC2Ed", ("_ZN6SquareC1Ed", "_ZN6SquareC2Ed")),
        ("_ZN6SquareD0Ev", ("_ZN6SquareD0Ev", "_ZN6SquareD1Ev", "_ZN6SquareD2Ev")),
        ("_QMheatPsweep", ("__heat_MOD_sweep",)),
        ("_ZN3FooC2ILb1EEEi", ("_ZN3FooC1ILb1EEEi", "_ZN3FooC2ILb1EEEi")),
        ("_ZN4MyC2E3runEv", ("_ZN4MyC2E3runEv",)),
        ("_ZZ4mainENK3$_0clEid", ("_ZZ4mainENKUl*",)),
        ("_ZZZ2f2vENK3$_3clEvENKUliE_clEi", ("_ZZZ2f2vENKUl*",)),
        ("_ZZN1A3runEvENK4$_12clERKS_", ("_ZZN1A3runEvENKUl*",)),
        ("_ZNK3$_7clEi", ("_ZNK*Ul*",)),
        ("_ZN1A4eachIZNS_3runEvE3$_1EEiT_", ("_ZN1A4eachIZNS_3runEvEUl*",)),
        ("_Z1fIiTnNSt9enable_ifIXT_EiE4typeELi0EEiT_", ("_Z1fIi*",)),
        ("_ZN1AC2IiTnNSt9enable_ifIXT_EiE4typeELi0EEEi", ("_ZN1AC1Ii*", "_ZN1AC2Ii*")),
        ("_ZN7MyTnFoo7TnumberEi", ("_ZN7MyTnFoo7TnumberEi",)),
        ("_QMheatSfastPsweep_2", ("__heat.fast_MOD_sweep_2",)),
        ("_QMheatSfastSdeepPsweep", ("__heat.deep_MOD_sweep",)),
        ("_QMheatSfastFsweepPinner", ("inner.[0-9]*",)),
        ("_QMheatFsweepPinner", ("inner.[0-9]*",)),
        ("_QFPinner", ("inner.[0-9]*",)),
        ("sweep_", ("sweep_", "master.[0-9]*.sweep_")),
        ("_QQmain", ("MAIN__", "main")),
        ("_FortranASumReal8x1_contract_simplified", ()),
    ],
)
def test_names_of_gcc(name: str, patterns: tuple[str, ...]) -> None:
    assert patterns_for(name, "gcc") == patterns
    assert patterns_for(name, "clang") == (name,)


def test_a_filter_for_gfortran() -> None:
    parsed = parse_filter(format_filter(["_QMheatPsweep", "_QMheatFsweepPinner"], compiler="gcc"))
    assert parsed.includes(Region("__heat_MOD_sweep", "sweep"))
    assert parsed.includes(Region("inner.3", "inner"))
    assert not parsed.includes(Region("inner", "inner"))
    assert not parsed.includes(Region("_QMheatPsweep", "sweep"))


def function_of(display: str, file: str, name: str = "") -> Function:
    return Function(name or display, name or display, display, file)


def test_options_of_gcc_leave_out_no_kept_function() -> None:
    functions = [
        function_of("solve(int)", "/a.cpp"),
        function_of("solve_all(std::pair<int, (E)2>)", "/a.cpp", "solve2"),
        function_of("C::operator()(int)", "/a.cpp"),
        function_of("main", "/a.cpp"),
        function_of("far()", "/src/b.cpp"),
        function_of("near()", "/src/a.cpp"),
    ]
    found = gcc_options(functions, ["solve2"])
    assert found.options == (
        "-finstrument-functions",
        "-finstrument-functions-exclude-function-list=C::operator(),main,near",
        "-finstrument-functions-exclude-file-list=b.cpp",
    )
    assert found.measured_too == ("solve",)
    assert name_list(["b", "a", "b"]) == "a\nb\n"


@pytest.mark.parametrize(
    ("display", "excluded"),
    [
        ("int geo::area<int>(int, int)", "geo::area"),
        ("void run<void (*)(int)>(void (*)(int))", "run"),
        ("Box<std::vector<int, std::allocator<int>>>::get() const", ">::get"),
        ("(anonymous namespace)::hidden(int)", "{anonymous}::hidden"),
        ("operator<(Shape const&, Shape const&)", "operator<"),
        ("Vec::operator bool() const", "Vec::operator bool"),
        ("operator new(unsigned long, int)", "operator new"),
        ("A::operator,(int)", "A::operator\\,"),
        ("co_operator(int)", "co_operator"),
        ("run(int)::$_0::operator()(int) const", "run"),
        ("outer()::'lambda'(int)::operator()(int) const", "outer"),
        ("$_3::operator()(int) const", "<lambda"),
        ("int with<main::$_1>(main::$_1, int)", "with"),
    ],
)
def test_parts_of_names_that_gcc_and_clang_write_alike(display: str, excluded: str) -> None:
    """The expected parts agree with the functions that gcc 12 instruments."""
    options = gcc_options([function_of(display, "/a.cpp"), function_of("kept", "/a.cpp")], ["kept"]).options
    assert options[1] == f"-finstrument-functions-exclude-function-list={excluded}"

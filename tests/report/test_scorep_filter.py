# SPDX-License-Identifier: Apache-2.0
"""Score-P filter files: grammar, meaning, errors, and what is written reads back."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Region, RegionKind
from quipu.modeling.printable import printable
from quipu.report.formats.fnmatch import escape, matches
from quipu.report.formats.scorep_filter import format_filter, parse_filter, read_filter

SOLVE = Region("_ZN5solve3runEv", "solve::run()", file="/src/solve.cpp", line=10)
MAIN = Region("main", "main", file="/src/main.c", line=3)
SEND = Region("MPI_Send", "MPI_Send", RegionKind.MPI)


def regions(*lines: str) -> str:
    return "\n".join(["SCOREP_REGION_NAMES_BEGIN", *lines, "SCOREP_REGION_NAMES_END", ""])


@pytest.mark.parametrize(
    ("text", "solve", "main"),
    [
        ("", True, True),
        ("# nothing but a comment", True, True),
        (regions(), True, True),
        (regions("EXCLUDE *"), False, False),
        (regions("EXCLUDE * INCLUDE main"), False, True),
        (regions("EXCLUDE *", "INCLUDE MANGLED", "_ZN5solve3runEv"), True, False),
        (regions("EXCLUDE *", "INCLUDE MANGLED _ZN5* DEMANGLED main"), True, True),
        (regions("EXCLUDE *", "INCLUDE MANGLED x INCLUDE solve::run()"), True, False),
        (regions("EXCLUDE MANGLED solve*"), True, True),
        (regions("EXCLUDE solve* EXCLUDE main INCLUDE m?in"), False, True),
        (regions("EXCLUDE m[!b-z]in"), True, False),
        (regions("EXCLUDE\tmain#solve*", "  # more"), True, False),
        (regions("EXCLUDE * ", "SCOREP_REGION_NAMES_END SCOREP_REGION_NAMES_BEGIN", "INCLUDE main"), False, True),
        ("SCOREP_FILE_NAMES_BEGIN EXCLUDE *.cpp SCOREP_FILE_NAMES_END", False, True),
        ("SCOREP_FILE_NAMES_BEGIN EXCLUDE /src/* INCLUDE */main.c SCOREP_FILE_NAMES_END", False, True),
        ("SCOREP_FILE_NAMES_BEGIN EXCLUDE * SCOREP_FILE_NAMES_END\n" + regions("INCLUDE *"), False, False),
    ],
)
def test_meaning(text: str, solve: bool, main: bool) -> None:
    parsed = parse_filter(text)
    assert (parsed.includes(SOLVE), parsed.includes(MAIN)) == (solve, main)
    assert parsed.includes(SEND)


def test_escapes_keep_spaces_and_hashes_in_a_name() -> None:
    parsed = parse_filter(regions(r"EXCLUDE operator\ new\ \#1 lone"))
    assert [rule.pattern for rule in parsed.region_rules] == [r"operator\ new\ \#1", "lone"]
    assert not parsed.includes(Region("x", "operator new #1"))


GET = Region("_ZNK3BoxIiE3getEv", "T Box<T>::get() const [with T = int]", file="/src/box.h")
AREA = Region("_ZN3geo4areaIdEET_S1_S1_", "T geo::area(T, T) [with T = double]", file="/src/geo.cpp")
ENTRY = Region("int main()", "int main()", file="/src/main.cpp")


@pytest.mark.parametrize(
    ("rules", "recorded"),
    [
        (r"INCLUDE T\ Box<T>::get()\ const\ [with\ T\ =\ int]", ""),
        (r"INCLUDE T\ Box<T>::get()\ const\ \[with\ T\ =\ int]", "get"),
        (r"INCLUDE *[with\ T\ =*", "get area"),
        (r"INCLUDE *,\ *", "area"),
        (r"INCLUDE MANGLED *Box* EXCLUDE *const*", ""),
        (r"INCLUDE MANGLED *Box* EXCLUDE MANGLED *const*", "get"),
        (r"INCLUDE MANGLED *Box* INCLUDE main", "get"),
        (r"INCLUDE MANGLED *Box* DEMANGLED int\ main*", "get entry"),
        (r"INCLUDE *::*\#x # *", ""),
    ],
)
def test_names_with_blanks_commas_and_brackets_as_score_p_reads_them(rules: str, recorded: str) -> None:
    """What Score-P 8.4 recorded of a C++ program under these rules, with the names of its gcc plugin."""
    parsed = parse_filter(regions("EXCLUDE *", rules))
    found = {name for name, region in (("get", GET), ("area", AREA), ("entry", ENTRY)) if parsed.includes(region)}
    assert found == set(recorded.split())


def test_file_rules_leave_regions_of_unknown_file_alone() -> None:
    parsed = parse_filter("SCOREP_FILE_NAMES_BEGIN EXCLUDE * SCOREP_FILE_NAMES_END")
    assert parsed.includes(Region("f", "f"))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("main", 1, "outside of a block"),
        ("\n\nEXCLUDE *", 3, "outside of a block"),
        ("SCOREP_REGION_NAMES_BEGIN\nmain\nSCOREP_REGION_NAMES_END", 2, "before the first rule"),
        ("SCOREP_REGION_NAMES_BEGIN\nMANGLED\nSCOREP_REGION_NAMES_END", 2, "before the first rule"),
        ("# header\nSCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\n", 2, "has no end"),
        ("SCOREP_FILE_NAMES_BEGIN\nSCOREP_REGION_NAMES_END", 2, "without SCOREP_REGION_NAMES_BEGIN"),
        ("SCOREP_REGION_NAMES_END", 1, "without"),
        ("SCOREP_FILE_NAMES_BEGIN\nSCOREP_REGION_NAMES_BEGIN", 2, "inside the block that line 1"),
        ("SCOREP_FILE_NAMES_BEGIN\nEXCLUDE MANGLED x\nSCOREP_FILE_NAMES_END", 2, "MANGLED has no meaning"),
        ("SCOREP_REGION_NAMES_BEGIN\r\nEXCLUDE *\r\nSCOREP_REGION_NAMES_END\r\n", 1, "CR LF"),
        ("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE a\\\nb\nSCOREP_REGION_NAMES_END", 2, "backslash at the end"),
        ("SCOREP_REGION_NAMES_BEGIN\n\0", 2, "NUL"),
    ],
)
def test_syntax_errors_name_file_and_line(text: str, line: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.filter"
    path.write_bytes(text.encode())
    with pytest.raises(FormatError) as caught:
        read_filter(path)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the filter file"):
        read_filter(tmp_path / "none")


def test_written_form() -> None:
    text = format_filter(["main", "_ZN5solve3runEv", "a#c*", "EXCLUDE"], ["for p=1024\nn=10"])
    assert text == (
        "# Score-P filter written by Quipu\n# for p=1024\n# n=10\nSCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\n"
        "INCLUDE MANGLED\n\\EXCLUDE\n_ZN5solve3runEv\na\\#c\\*\nmain\nSCOREP_REGION_NAMES_END\n"
    )


@pytest.mark.parametrize(
    "real, simulated",
    [
        ("_Z4ringIdEvR6SystemIT_EiP19ompi_communicator_t", "_Z4ringIdEvR6SystemIT_EiPN7simgrid4smpi4CommE"),
        ("_Z3gotP19ompi_communicator_tR4GridS4_", "_Z3gotPN7simgrid4smpi4CommER4GridS6_"),
    ],
)
def test_functions_with_communicators_are_chosen_in_builds_for_every_mpi(real: str, simulated: str) -> None:
    for measured in (real, simulated):
        chosen = parse_filter(format_filter(["main", measured]))
        assert all(chosen.includes(Region(name, "f()")) for name in (real, simulated))
        assert not chosen.includes(Region("_Z4ringIfEvR6SystemIT_Ei", "g()"))


def test_names_that_are_no_linker_names_choose_by_what_people_read() -> None:
    named = Region("_ZN5solve3runISt6vectorIiEEEvPS1_", "void solve::run<vector<int> >(vector<int>*)")
    others = [named.display, "solve()", "a::b", "operator[]", "!$omp parallel @a.c:3"]
    text = format_filter([*others, "main", "_ZN5solve4stepEv"], compiler="gcc")
    assert text.endswith(
        "INCLUDE MANGLED\n_ZN5solve4stepEv\nmain\nSCOREP_REGION_NAMES_END\n"
        "SCOREP_REGION_NAMES_BEGIN\nINCLUDE DEMANGLED\n!$omp\\ parallel\\ @a.c:3\na::b\noperator\\[]\n"
        "solve()\nvoid\\ solve::run<vector<int>\\ >(vector<int>\\*)\nSCOREP_REGION_NAMES_END\n"
    )
    parsed = parse_filter(text)
    assert parsed.includes(named) and parsed.includes(Region("_ZN5solve4stepEv", "solve::step()"))
    assert not parsed.includes(Region("_ZN5solve5resetEv", "solve::reset()"))


@pytest.mark.parametrize("name", ["a\nb", "a\0b"])
def test_characters_that_no_file_can_hold_fit_as_any_would(name: str) -> None:
    text = format_filter([name])
    assert "a?b" in text.split() and "\0" not in text
    assert parse_filter(text).includes(Region(name, name))


def test_an_empty_name_is_in_no_file() -> None:
    with pytest.raises(UsageError, match="empty name"):
        format_filter([""])


_NAMES = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), min_size=1)
_TRICKY = st.text(st.sampled_from(list("ab\\[]*?# \t\r!^-")), min_size=1, max_size=6)


@given(st.sets(_NAMES | _TRICKY, max_size=8), _NAMES | _TRICKY)
def test_reading_back_gives_the_same_set(names: set[str], other: str) -> None:
    text = format_filter(names, ["x"])
    parsed = parse_filter(text)
    assert all(parsed.includes(Region(name, name)) for name in names)
    assert printable(text) == text.replace("\t", "?")
    if all(printable(name) == name for name in names):  # what could steer a terminal fits as any character would
        assert parsed.includes(Region(other, other)) == (other in names)


_PIECES = st.sampled_from([*"abcz[]!^-\\*?/ ", "[:alpha:]", "[:digit:]", "[a-c]", "[!a]", "\\[", "é"])
_PATTERNS = st.lists(_PIECES, max_size=8).map("".join)
_LIBC = ctypes.CDLL(ctypes.util.find_library("c"))


@given(_PATTERNS, st.text(st.sampled_from(list("abcz[]!^-\\*?/.é0")), max_size=6))
def test_patterns_match_as_in_the_c_library(pattern: str, name: str) -> None:
    assume("-[:" not in pattern)  # a range that ends in a class: undefined in POSIX
    assert matches(pattern, name) == (_LIBC.fnmatch(pattern.encode(), name.encode(), 0) == 0)


@given(_NAMES)
def test_an_escaped_name_matches_itself(name: str) -> None:
    assert matches(escape(name), name)


OPENMP = ("_Z4stepi.omp_outlined", "_Z4stepi.omp_outlined.3", "_Z4stepi.omp_task_entry..5")


@pytest.mark.parametrize("body", [Region(name, "step(int) (omp line 6)") for name in OPENMP])
def test_constructs_of_openmp_follow_their_function(body: Region) -> None:
    def includes(*rules: str) -> bool:
        return parse_filter("\n".join(["SCOREP_REGION_NAMES_BEGIN", *rules, "SCOREP_REGION_NAMES_END"])).includes(body)

    assert includes("EXCLUDE *", "INCLUDE MANGLED _Z4stepi")
    assert includes("EXCLUDE *", "INCLUDE step(int)")
    assert not includes("EXCLUDE MANGLED _Z4stepi")
    assert not includes("EXCLUDE step*")
    assert includes("EXCLUDE MANGLED _Z4stepi", f"INCLUDE MANGLED {body.name}")
    assert not includes("EXCLUDE *", "INCLUDE MANGLED _Z5otheri")


def test_a_construct_that_is_dropped_has_a_rule_of_its_own() -> None:
    text = format_filter(["main", "_Z4stepi", OPENMP[0]], dropped=[*OPENMP[1:], "_Z5otheri", "_Z5otheri.omp_outlined"])
    parsed = parse_filter(text)
    assert [parsed.includes(Region(name, name)) for name in OPENMP] == [True, False, False]
    assert "otheri" not in text

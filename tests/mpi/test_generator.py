# SPDX-License-Identifier: Apache-2.0
"""Generate wrappers from prototypes and table: complete, only for functions that can be wrapped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.mpi_wrap.emit import wrapper
from quipu.mpi_wrap.installation import describe_mpicc
from quipu.mpi_wrap.page import operations_page
from quipu.mpi_wrap.prototypes import Function, Parameter, read_prototypes
from quipu.mpi_wrap.table import load_table, operations_of

PAGE = Path(__file__).parents[2] / "docs" / "design" / "mpi-operations.md"
ROW = '[MPI_Send]\nkind = "point-to-point"\narguments = "buf count datatype dest tag comm"\nconvention = "one way"\n'


def exported(library: Path) -> set[str]:
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(symbols, SymbolTableSection)
        return {
            symbol.name
            for symbol in symbols.iter_symbols()
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC"
        }


def test_every_function_that_returns_an_error_code_is_wrapped(library: Path) -> None:
    functions = {function.name for function in read_prototypes("clang-19", describe_mpicc().compile_flags)}
    assert {"MPI_Init", "MPI_Send", "MPI_Group_range_incl", "MPI_T_init_thread", "MPI_File_open"} <= functions
    assert not {"MPI_Wtime", "MPI_Pcontrol", "MPI_Comm_f2c"} & functions
    found = exported(library)
    assert functions <= found
    assert not {name for name in found if name.startswith("quipu")}


def test_the_library_builds_without_warnings(library: Path) -> None:
    assert json.loads((library.parent / "build.json").read_text())["warnings"] == []


def test_the_page_says_what_the_table_says() -> None:
    assert PAGE.read_text() == operations_page(load_table()), "python -m quipu.mpi_wrap page > docs/design/…"


def test_large_count_and_persistent_forms_follow_their_row() -> None:
    operations = operations_of(load_table())
    assert operations["MPI_Ialltoallw_c"].arguments[-1] == "request"
    assert operations["MPI_Bcast_init"].arguments[-2:] == ("info", "request")
    assert operations["MPI_Isend"].arguments == (*operations["MPI_Send"].arguments, "request")
    assert operations["MPI_Irecv"].arguments[-2:] == ("comm", "request")
    assert operations["MPI_Allreduce_init_c"].persistent


def test_an_array_parameter_keeps_its_type() -> None:
    assert Parameter("int (*)[3]", "ranges").declare("ranges") == "int (*ranges)[3]"
    assert Parameter("const void *", "buf").declare("b") == "const void *b"
    assert Parameter("MPI_Comm", "comm").declare("c") == "MPI_Comm c"


def test_what_a_persistent_operation_moves_counts_at_its_start() -> None:
    types = ("void *", "int", "MPI_Datatype", "int", "MPI_Comm", "MPI_Info", "MPI_Request *")
    function = Function("MPI_Bcast_init", tuple(Parameter(type_, "") for type_ in types))
    text = wrapper(function, operations_of(load_table())["MPI_Bcast_init"])
    assert "quipu_mpi_posted(" in text
    assert ".persistent = true" in text
    assert "quipu_mpi_count(" not in text


def test_a_header_with_other_arguments_is_an_error() -> None:
    function = Function("MPI_Barrier", (Parameter("MPI_Comm", "comm"), Parameter("int", "more")))
    with pytest.raises(MeasurementError, match=r"MPI_Barrier with 2 arguments.*has 1"):
        wrapper(function, operations_of(load_table())["MPI_Barrier"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROW + 'sent = "bytes(cuont, datatype)"', r"table.toml:1: .*unknown name 'cuont'"),
        (ROW + 'sent = "bytes(count"', r"table.toml:1: expression"),
        (ROW + 'sent = "count / 2"', r"the operators are"),
        (ROW + 'sent = "sum(count)"', r"sum takes 2"),
        (ROW + 'sent = "status"', r"a status contains no sent bytes"),
        (ROW + 'sent = "__import__(buf)"', r"unknown name '__import__'"),
        (ROW + 'to = "peer"', r"to is not the name of an argument"),
        (ROW + 'color = "red"', r"unknown key 'color'"),
        (ROW + 'alike = ["MPI_Send"]', r"MPI_Send has two rows"),
        (ROW + 'forms = ["fast"]', r"forms are"),
        (ROW.replace("point-to-point", "sideways"), r"kind must be one of"),
        (ROW.replace("point-to-point", "completion"), r"completion needs completes"),
        (ROW.replace("point-to-point", "uncounted"), r"kind uncounted has no arguments"),
        (ROW.replace("arguments", "alike"), r"arguments must be a text"),
        (ROW + 'waits_for = "better times"', r"waits_for must be one of sender"),
        (ROW + 'begins = "day"', r"begins must be one of mpi"),
        (ROW.replace("buf", "group"), r"cannot be called 'group'"),
        ("[MPI_Send", r"cannot read the table"),
    ],
)
def test_a_wrong_row_is_one_error_with_its_line(rows: str, message: str, tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    table.write_text(rows)
    with pytest.raises(FormatError, match=message):
        load_table(table)

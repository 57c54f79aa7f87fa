# SPDX-License-Identifier: Apache-2.0
"""python -m quipu.mpi_wrap: build the PMPI library, or print its generated sources or the page on MPI operations."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from quipu.modeling.errors import QuipuError

from .generate import generate
from .installation import describe_mpicc
from .library import mpi_library
from .page import operations_page
from .prototypes import read_prototypes
from .table import load_table, operations_of


def main() -> int:
    """Run one command. Return 0, or the exit code of the error that was printed."""
    parser = argparse.ArgumentParser(prog="python -m quipu.mpi_wrap", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="build libquipu_mpi.so (or find it in the cache) and print its path")
    building.add_argument("--runtime-include", type=Path, help="folder of quipu.h")
    building.add_argument("--runtime-lib", type=Path, help="libquipu.so")
    source = commands.add_parser("source", help="print the generated wrappers")
    which = commands.add_parser("which", help="print which MPI it is")
    for command in (building, source, which):
        command.add_argument("--mpicc", help="compiler wrapper of the MPI (default: $QUIPU_MPICC or mpicc)")
        command.add_argument("--clang", default="clang-19", help="the clang to use (default: %(default)s)")
    commands.add_parser("page", help="print the page on operations, docs/design/mpi-operations.md")
    options = parser.parse_args()
    try:
        if options.command == "page":
            print(operations_page(load_table()), end="")
            return 0
        installation = describe_mpicc(options.mpicc, clang=options.clang)
        if options.command == "which":
            print(installation)
        elif options.command == "source":
            functions = read_prototypes(options.clang, installation.compile_flags)
            files = generate(functions, operations_of(load_table()), installation.family).files
            print("\n".join(files[name] for name in sorted(files) if name.endswith(".c")), end="")
        else:
            runtime = {"runtime_include": options.runtime_include, "runtime_lib": options.runtime_lib}
            print(mpi_library(installation, clang=options.clang, **runtime))
    except QuipuError as error:
        print(f"quipu: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The runtime and modeling make the same of linker names, as rates that one writes are looked up by the other."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

from quipu.modeling.mpi_handles import common_linker_name

RUNTIME = Path(__file__).parents[2] / "agent" / "runtime"
PROGRAM = r"""
#include "mpi_handles.h"
#include <iostream>
#include <string>
int main() {
    for (std::string name; std::getline(std::cin, name);) {
        std::string alike(name.size(), ' ');
        alike.resize(quipu::built_alike(name.data(), name.size(), &alike[0]));
        std::cout << alike << '\n';
    }
}
"""
PARTS = (
    *("P", "N", "R", "K", "E", "S", "S_", "S1Z_", "PN", "PNS_", "i", "_", "7größe", "2xé", "é"),
    *("PN7simgrid4smpi", "4CommE", "7RequestE", "6Grid10E", "PN11abcdefghijk", "PN8sim"),
    *("P19ompi_communicator_t", "20ompi_status_public_t", "9ompi_op_t", "P6ompi_t", "P5ompi_", "10MPI_Status"),
    *("16smpi_shared_free", "9smpi_exit", "11smpi_usleep", "10smpi_sleep1", "011smpi_getpid", "S12_"),
    *("0", "00", "1", "9", "100000", "9" * 20, "9" * 5000, "1000000000", "000000000000001x"),
)
LONG = "_Z100003" + "x" * 99_995 + "P6ompi_tP6ompi_t"  # its identifier ends between the two handles


def test_both_make_the_same_of_all_names(tmp_path: Path) -> None:
    chance = random.Random(7)
    names = ["_Z" + "".join(chance.choices(PARTS, k=chance.randrange(12))) for _ in range(4000)]
    names += ["_Z" + part * 20_000 + "ompi_" for part in ("9", "S", "0")]
    names += ["main", "ompi_file", "_Z4openP11ompi_file_", LONG]
    (tmp_path / "alike.cpp").write_text(PROGRAM, encoding="utf-8")
    command = ["clang++-19", "-std=c++17", "-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover"]
    sources = ["alike.cpp", str(RUNTIME / "mpi_handles.cpp")]
    subprocess.run([*command, f"-I{RUNTIME}", *sources, "-o", "alike"], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["./alike"], cwd=tmp_path, input="\n".join(names).encode(), stdout=subprocess.PIPE, check=True
    )
    found = zip(names, done.stdout.decode().splitlines(), strict=True)
    assert [(name, alike) for name, alike in found if alike != common_linker_name(name)][:3] == []
    assert common_linker_name(LONG).endswith("xP6ompi_ti")

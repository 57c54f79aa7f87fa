# SPDX-License-Identifier: Apache-2.0
"""Look up regions in the table of MPI operations, with any form of name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from quipu.modeling.mpi_operations import MpiOperation, operation_of, read_rows, table_path
from quipu.modeling.priors.table import ROWS


def known(region: str) -> MpiOperation:
    operation = operation_of(region)
    assert operation is not None, region
    return operation


@pytest.mark.parametrize(("region", "operation"), [
    ("MPI_Bcast", "MPI_Bcast"), ("PMPI_Bcast", "MPI_Bcast"), ("mpi_bcast_", "MPI_Bcast"), ("mpi_bcast__", "MPI_Bcast"),
    ("pmpi_bcast_", "MPI_Bcast"), ("MPI_Bcast_c", "MPI_Bcast"), ("mpi_send_c_", "MPI_Send"), ("MPI_Put", "MPI_Put"),
    ("MPI_Bcast_f08ts", "MPI_Bcast"), ("mpi_bcast_f08_", "MPI_Bcast"), ("MPI_Isend_c", "MPI_Isend"),
    ("mpi_bcast_init_", "MPI_Bcast_init"), ("MPI_Session_init", "MPI_Session_init"), ("MPI_Exscan", "MPI_Exscan"),
])  # fmt: skip
def test_names_of_operations(region: str, operation: str) -> None:
    assert known(region).name == operation


@pytest.mark.parametrize(
    "region", ["", "main", "init", "Send", "print", "mpi_helper", "MPI_Comm_split", "MPI_T_init_thread"]
)
def test_other_regions_are_no_operations(region: str) -> None:
    assert operation_of(region) is None


def test_every_row_names_a_model_and_every_model_has_a_row() -> None:
    assert {entry["model"] for entry in read_rows(table_path()).values() if "model" in entry} == set(ROWS)


def test_forms_that_do_not_block_wait_for_nobody() -> None:
    assert (known("MPI_Bcast").waits_for, known("MPI_Ibcast").waits_for) == ("root", None)
    assert known("MPI_Recv").waits_for_others and known("MPI_Ssend").waits_for_others
    assert not any(known(name).waits_for_others for name in ("MPI_Send", "MPI_Irecv", "MPI_Start", "MPI_Iallreduce"))


def test_requests_are_posted_and_completed() -> None:
    names = ["Send", "Isend", "Iallreduce", "Send_init", "Start", "Startall", "Rput", "File_iread", "Iprobe", "Wait"]
    posting = [name for name in names if known(f"MPI_{name}").posts]
    assert posting == ["Isend", "Iallreduce", "Start", "Startall", "Rput", "File_iread"]
    completing = ("Wait", "Testany", "Waitall", "Parrived", "Start", "Request_free")
    assert [known(f"MPI_{name}").completes_requests for name in completing] == [True] * 4 + [False] * 2


@pytest.mark.parametrize("region", ["MPI_Init", "mpi_init_", "MPI_Init_thread", "MPI_Session_init", "PMPI_Finalize"])
def test_start_and_end(region: str) -> None:
    assert known(region).begins_or_ends
    assert not known("MPI_Barrier").begins_or_ends


def test_the_table_is_read_when_it_is_needed_and_without_the_wrappers() -> None:
    program = (
        "import sys; from quipu.modeling import mpi_operations as m; assert m._operations.cache_info().misses == 0;"
        "assert m.operation_of('MPI_Send'); assert 'quipu.mpi_wrap' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

# SPDX-License-Identifier: Apache-2.0
"""Names of C++ functions are equal for every MPI: rates of one apply in simulations of another."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from quipu.modeling.mpi_handles import common_linker_name, of_any_build
from quipu.modeling.rates import PathRates, Rates, runtime_text

BUILDS = {  # signature: for Open MPI, and for SMPI
    "void ring<double>(System<double>&, int, MPI_Comm)": (
        "_Z4ringIdEvR6SystemIT_EiP19ompi_communicator_t",
        "_Z4ringIdEvR6SystemIT_EiPN7simgrid4smpi4CommE",
    ),
    "void both(MPI_Comm, MPI_Request*, MPI_Comm, Grid&, Grid&)": (
        "_Z4bothP19ompi_communicator_tPP14ompi_request_tS0_R4GridS5_",
        "_Z4bothPN7simgrid4smpi4CommEPPNS0_7RequestES2_R4GridS7_",
    ),
    "void sum(std::vector<double> const&, std::vector<double>&, MPI_Op)": (
        "_Z3sumRKSt6vectorIdSaIdEERS1_P9ompi_op_t",
        "_Z3sumRKSt6vectorIdSaIdEERS1_PN7simgrid4smpi2OpE",
    ),
    "void Pool<double>::free(MPI_Comm, MPI_Comm) const": (
        "_ZNK4PoolIdE4freeEP19ompi_communicator_tS2_",
        "_ZNK4PoolIdE16smpi_shared_freeEPN7simgrid4smpi4CommES5_",
    ),
    "void got(MPI_Comm, MPI_Status&)": (
        "_Z3gotP19ompi_communicator_tR20ompi_status_public_t",
        "_Z3gotPN7simgrid4smpi4CommER10MPI_Status",
    ),
}


@pytest.mark.parametrize("signature", BUILDS)
def test_builds_for_two_mpis_have_one_name(signature: str) -> None:
    real, simulated = BUILDS[signature]
    assert common_linker_name(real) == common_linker_name(simulated) != real


@pytest.mark.parametrize(
    ("simulated", "own"),
    [
        (
            "_ZN6Memory16smpi_shared_freeIdEEvPT_RSt6vectorIS2_SaIS2_EES5_",
            "_ZN6Memory4freeIdEEvPT_RSt6vectorIS2_SaIS2_EES5_",
        ),
        ("_ZN4Game9smpi_exitEi", "_ZN4Game4exitEi"),
        ("_ZN4Pool10smpi_sleepEi", "_ZN4Pool5sleepEi"),
    ],
)
def test_methods_that_macros_of_smpi_renamed_have_their_own_names(simulated: str, own: str) -> None:
    assert common_linker_name(simulated) == common_linker_name(own) == own
    pattern = of_any_build(simulated)
    assert pattern is not None and fnmatchcase(own, pattern) and fnmatchcase(simulated, pattern)
    assert not fnmatchcase(
        own.replace("4free", "5alloc").replace("4exit", "5begin").replace("5sleep", "4work"), pattern
    )


def test_handles_are_the_integers_of_mpich() -> None:
    assert (
        common_linker_name(BUILDS["void ring<double>(System<double>&, int, MPI_Comm)"][1])
        == "_Z4ringIdEvR6SystemIT_Eii"
    )


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "MPI_Send",
        "_QMompi_filesPopen",
        "_Z3addRKSt6vectorIdSaIdEERS1_S2_",
        "ompi_file",
        "_Z",
        "_Z9999999x",
        "smpi_exit",
    ],
)
def test_names_without_handles_stay(name: str) -> None:
    assert common_linker_name(name) == name


@pytest.mark.parametrize("name", ["_Z4openP11ompi_file_", "_Z3oddP99ompi_op_t", "_Z3oddPN7simgrid4smpi", "_Zompi_S0"])
def test_names_that_end_early_are_read_to_their_end(name: str) -> None:
    assert common_linker_name(name)


def test_a_simulation_takes_the_rates_of_functions_with_communicators() -> None:
    real, simulated = BUILDS["void ring<double>(System<double>&, int, MPI_Comm)"]
    program = PathRates((), (1e-9,), 1.0, 0.0, 1)
    own = replace(program, names=("main", real))
    rates = Rates(("instructions",), program, functions=(replace(program, names=(real,)),), callpaths=(own,))
    assert rates.without([("main", simulated)]) == ([], [])
    assert rates.without([("other", simulated)]) == ([("other", simulated)], [])
    assert rates.without([("main", "other")]) == ([], [("main", "other")])
    assert "\tmain\x1f_Z4ringIdEvR6SystemIT_Eii\t" in f"\t{runtime_text(rates)}"

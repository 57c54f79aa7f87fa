# SPDX-License-Identifier: Apache-2.0
"""Provide environment variables to start an MPI without `quipu run`: as root, oversubscribed, or in containers.

The variables belong to Open MPI 4 and 5. Other MPI libraries ignore them.
"""

LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # More ranks than cores: Open MPI 4, then Open MPI 5.
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # Containers forbid processes to read each other's memory: Open MPI 4, then Open MPI 5.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_sm_single_copy_mechanism": "none",
    # Open MPI 5 tries TCP between the ranks of a host, and prints an error for each network interface. Without TCP, it
    # would use libfabric, and MPI_Finalize would take a second.
    "OMPI_MCA_btl": "^tcp,ofi",
}
# Waiting ranks yield to working ranks.
YIELDING = {**LAUNCH, "OMPI_MCA_mpi_yield_when_idle": "1"}

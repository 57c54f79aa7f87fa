/* SPDX-License-Identifier: Apache-2.0 */
/* Switches the wrappers on, and writes attributes of the profile (rank, number of ranks, MPI library) once per process.
 * active_smpi.c does the same for simulated ranks. */
#include "active.h"

#include "call.h"
#include "group.h"
#include "interface.h"
#include "tables.h"
#include "wait.h"

#ifndef SMPI_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the MPI whose ABI a library has, from its version text. Intel MPI, MVAPICH and others have the ABI of MPICH.
 */
static const char *abi_of(const char *version) {
    return strstr(version, "Open MPI") != NULL ? "Open MPI" : strstr(version, "SMPI") != NULL ? "SMPI" : "MPICH";
}

#if defined(OPEN_MPI)
#define BUILT_FOR "Open MPI"
#else
#define BUILT_FOR "MPICH"
#endif

__attribute__((constructor)) static void start(void) {
    static struct quipu_module module = {.source = "the MPI wrappers"};
    quipu_check_library(&module);
    quipu_mpi_on = quipu_active();
    quipu_mpi_chain();
}

/* Records the version of the MPI library. Switches the wrappers off and returns false if libquipu_mpi.so was built for
 * another MPI. Also returns false if MPI reports no version. */
static bool is_our_mpi(void) {
    quipu_mpi_check_family();
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (PMPI_Get_library_version(version, &length) != MPI_SUCCESS) {
        quipu_attribute("mpi_problem", "MPI did not say which one it is");
        return false;
    }
    version[strcspn(version, "\n,")] = '\0';
    for (char *tab = version; (tab = strchr(tab, '\t')) != NULL;)
        *tab = ' ';
    quipu_attribute("mpi_library", version);
    if (strcmp(abi_of(version), BUILT_FOR) != 0) {
        /* Handles of another MPI have other types. Counting would read wrong data, but passing calls on is safe. */
        fprintf(stderr,
                "quipu: the program runs %s, but libquipu_mpi.so was built for %s: MPI is not counted. Tell Quipu the "
                "mpicc of the program's MPI with QUIPU_MPICC [other-mpi]\n",
                version, BUILT_FOR);
        quipu_attribute("mpi_problem", "libquipu_mpi.so was built for another MPI: MPI is not counted");
        quipu_mpi_on = 0;
        return false;
    }
    return true;
}

static void tell_place(int rank, int ranks) {
    char text[16];
    snprintf(text, sizeof text, "%d", rank);
    quipu_attribute("rank", text);
    snprintf(text, sizeof text, "%d", ranks);
    quipu_attribute("ranks", text);
}

void quipu_mpi_initialized(void) {
    if (!is_our_mpi())
        return;
    const struct quipu_mpi_group world = quipu_mpi_group_of(MPI_COMM_WORLD);
    if (world.all == 0)
        return;
    quipu_mpi_know_world();
    int level = MPI_THREAD_MULTIPLE;
    quipu_mpi_concurrent = PMPI_Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    quipu_mpi_choose_waits(true);
    quipu_mpi_usual.world = MPI_COMM_WORLD;
    quipu_mpi_usual.processes = (uint64_t)world.all;
    quipu_mpi_usual.on = !quipu_mpi_concurrent && quipu_mpi_probe_one_of == 0;
    tell_place(world.rank, world.all);
    MPI_Comm parent = MPI_COMM_NULL;
    if (PMPI_Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL)
        quipu_attribute("spawned", "1"); /* another program started this MPI_COMM_WORLD with MPI_Comm_spawn */
}

void quipu_mpi_finalized(void) {
    quipu_mpi_report_waits();
    quipu_attribute("mpi_finalized", "1");
    quipu_flush();
}

#ifdef QUIPU_MPI_HAVE_Session_init
static atomic_int sessions; /* number of open sessions */

static bool in_world(void) {
    int initialized = 0, finalized = 0;
    return PMPI_Initialized(&initialized) == MPI_SUCCESS && PMPI_Finalized(&finalized) == MPI_SUCCESS && initialized &&
           !finalized;
}

void quipu_mpi_session_begun(const MPI_Session *session) {
    MPI_Group everybody;
    int rank = 0, ranks = 0;
    if (atomic_fetch_add(&sessions, 1) != 0 || in_world() || !is_our_mpi() ||
        PMPI_Group_from_session_pset(*session, "mpi://WORLD", &everybody) != MPI_SUCCESS)
        return;
    if (PMPI_Group_rank(everybody, &rank) == MPI_SUCCESS && PMPI_Group_size(everybody, &ranks) == MPI_SUCCESS)
        tell_place(rank, ranks);
    PMPI_Group_free(&everybody);
    quipu_mpi_choose_waits(false);
}

void quipu_mpi_session_ended(void) {
    if (atomic_fetch_sub(&sessions, 1) == 1 && !in_world())
        quipu_mpi_finalized();
}
#endif

#endif

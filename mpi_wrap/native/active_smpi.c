/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of active.c for SimGrid SMPI, where all ranks are in one process. */
#include "active.h"

#include "call.h"
#include "group.h"
#include "interface.h"
#include "tables.h"
#include "wait.h"

#ifdef SMPI_H

#include <simgrid/actor.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <string.h>
#include <xbt/config.h>

/* Value of the option smpi/host-speed (flop/s): a variable of libsimgrid that no header declares. */
extern double _smpi_cfg_host_speed __attribute__((weak));

/* SimGrid calls this function at the end of a rank. It marks a rank that was not killed, so that the merge accepts the
 * rank even without MPI_Finalize. A destructor could not do this, because destructors run only after the simulation. */
static void ended(int failed, void *rank) {
    (void)rank;
    if (!failed)
        quipu_location_attribute("returned", "1");
}

void quipu_mpi_initialized(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    const struct quipu_mpi_group world = quipu_mpi_group_of(MPI_COMM_WORLD);
    char text[16];
    if (rank == NULL || world.all == 0)
        return;
    if (sg_cfg_get_boolean("smpi/simulate-computation") || quipu_compute_by_effort())
        quipu_mpi_begin_computing(
            rank, &_smpi_cfg_host_speed == NULL ? 1 : _smpi_cfg_host_speed / sg_host_get_speed(sg_host_self()));
    snprintf(text, sizeof text, "%d", world.rank);
    quipu_location_attribute("rank", text);
    sg_actor_on_exit(ended, rank);
    rank->since = quipu_begin_interval(rank->since); /* all ranks leave MPI_Init at the same simulated time */
    static bool chosen;
    if (!chosen)
        quipu_mpi_choose_waits(true);
    chosen = true;
    if (world.rank != 0)
        return;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "SMPI";
    int length = 0;
    PMPI_Get_library_version(version, &length);
    char *end = strstr(version, ". ");
    if (end != NULL)
        *end = '\0';
    quipu_attribute("mpi_library", version);
    snprintf(text, sizeof text, "%d", world.all);
    quipu_attribute("ranks", text);
}

void quipu_mpi_finalized(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank != NULL)
        rank->speed = 0;
    quipu_location_attribute("mpi_finalized", "1");
    quipu_flush();
}

__attribute__((constructor)) static void start(void) {
    static struct quipu_module module = {.source = "the MPI wrappers"};
    quipu_check_library(&module);
    if (!quipu_active())
        return;
    quipu_mpi_on = 1;
    quipu_mpi_share();
    quipu_mpi_replace_calls();
}

#endif

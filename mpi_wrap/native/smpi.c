/* SimGrid SMPI: ranks are actors that a simulator runs one after the other in one process.
 *
 * The actor that runs tells the runtime whose call paths they are (quipu_share), and its time is simulated: the clock
 * of the simulation, which moves in calls of MPI, and since the last of them the time that passes here, at the speed
 * of the simulated host. What the simulator then makes of this computation is taken over at the next call.
 */
#include "quipu_mpi.h"

#include "interface.h"

#ifdef SMPI_H

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <xbt/config.h>

/* Of libsimgrid, in no header: how SMPI takes in what was computed since the last call, and option smpi/host-speed. */
extern void smpi_bench_begin(void);
extern void smpi_bench_end(void);
extern double _smpi_cfg_host_speed __attribute__((weak));

int quipu_mpi_on = 0;
bool quipu_mpi_concurrent = false; /* one rank runs at a time */

static struct quipu_mpi_rank **ranks; /* by the actor's id */
static size_t room;

/* The latest moment at which the simulator told the time. */
static double told;
static const struct quipu_mpi_rank *told_to;
static uint64_t told_here;

static uint64_t here(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool make_room(size_t pid) {
    const size_t wanted = pid < 32 ? 64 : 2 * pid;
    struct quipu_mpi_rank **more = (struct quipu_mpi_rank **)realloc((void *)ranks, wanted * sizeof *more);
    if (more == NULL)
        return false;
    memset((void *)(more + room), 0, (wanted - room) * sizeof *more);
    ranks = more;
    room = wanted;
    return true;
}

struct quipu_mpi_rank *quipu_mpi_running(void) {
    const sg_actor_t actor = sg_actor_self();
    const aid_t pid = actor == NULL ? 0 : sg_actor_get_pid(actor);
    if (pid <= 0) /* the simulator itself, or a thread that it does not know */
        return NULL;
    if ((size_t)pid >= room && !make_room((size_t)pid))
        return NULL;
    if (ranks[pid] == NULL)
        ranks[pid] = calloc(1, sizeof **ranks);
    return ranks[pid];
}

static void **running(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    return rank == NULL ? NULL : &rank->runtime;
}

static void listen(const struct quipu_mpi_rank *rank, double clock) {
    told = clock;
    told_to = rank;
    told_here = here();
}

static uint64_t now(void) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    const double clock = simgrid_get_clock();
    const uint64_t nanoseconds = (uint64_t)(clock * 1e9);
    if (rank == NULL || rank->speed == 0) /* not in MPI: nothing is simulated */
        return nanoseconds;
    if (told != clock || told_to != rank)
        listen(rank, clock);
    return nanoseconds + (uint64_t)((double)(here() - told_here) * rank->speed);
}

void quipu_mpi_compute(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL || rank->active_wrapper != NULL || rank->speed == 0)
        return;
    smpi_bench_end();
    smpi_bench_begin();
    listen(rank, simgrid_get_clock());
}

void quipu_mpi_simulated(void) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL)
        return;
    /* Functions that communicate without stopping SMPI's timer (MPI_Cart_create) let it run while other ranks compute:
     * that is no computation of this one. */
    if (rank->speed != 0)
        smpi_bench_begin();
    listen(rank, simgrid_get_clock());
}

void quipu_mpi_initialized(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    const struct quipu_mpi_group world = quipu_mpi_group_of(MPI_COMM_WORLD);
    char text[16];
    if (rank == NULL || world.all == 0)
        return;
    if (sg_cfg_get_boolean("smpi/simulate-computation"))
        rank->speed = &_smpi_cfg_host_speed == NULL ? 1 : _smpi_cfg_host_speed / sg_host_get_speed(sg_host_self());
    snprintf(text, sizeof text, "%d", world.rank);
    quipu_location_attribute("rank", text);
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
    static const struct quipu_ranks by_actor = {running, now};
    static struct quipu_module module = {.source = "the MPI wrappers"};
    quipu_check_library(&module);
    if (!quipu_active())
        return;
    quipu_mpi_on = 1;
    quipu_share(&by_actor);
    quipu_mpi_replace_calls();
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the runtime with SimGrid SMPI, where ranks are actors that a simulator runs one at a time in one process.
 *
 * The runtime uses the call tree and the simulated time of the running actor (quipu_share). The clock of the simulator
 * advances only in calls of MPI. Between two calls, the time of a rank is this clock plus the real elapsed time, scaled
 * to the speed of the simulated host. The next call makes SMPI simulate the computation, and the simulated duration
 * replaces the real one.
 *
 * In a simulation by effort (quipu_compute_by_effort), real time is not used. Before each MPI call, the simulator
 * executes a computation with the duration that follows from the effort of the rank. This duration includes the time by
 * which earlier MPI calls took longer than the simulated network (quipu_operated).
 */
#include "call.h"
#include "tables.h"

#ifdef SMPI_H

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Functions of libsimgrid that no header declares. The first begins to measure a computation. The second ends the
 * measurement and simulates the computation. */
extern void smpi_bench_begin(void);
extern void smpi_bench_end(void);

/* Replacements of gettimeofday and similar functions by SMPI. Only the header that smpicc adds to programs declares
 * them. */
extern int smpi_gettimeofday(struct timeval *time, struct timezone *zone);
extern int smpi_clock_gettime(clockid_t clock, struct timespec *time);
extern unsigned int smpi_sleep(unsigned int seconds);
extern int smpi_usleep(useconds_t microseconds);
extern int smpi_nanosleep(const struct timespec *time, struct timespec *rest);

static struct quipu_mpi_rank **ranks; /* indexed by the id of the actor */
static size_t room;

/* The latest call of `listen`: the clock of the simulator (s), the running rank, and the real time (ns,
 * CLOCK_MONOTONIC).
 */
static double shown_clock;
static const struct quipu_mpi_rank *shown_rank;
static uint64_t told_here;

static bool by_effort;

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
    if (pid <= 0) /* the simulator itself, or a thread that is no actor */
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

/* Notes that the simulated time of a rank continues now from `clock` (s). */
static void listen(const struct quipu_mpi_rank *rank, double clock) {
    shown_clock = clock;
    shown_rank = rank;
    told_here = quipu_mpi_nanoseconds();
}

static uint64_t now(void) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    const double clock = simgrid_get_clock();
    const uint64_t nanoseconds = (uint64_t)(clock * 1e9);
    if (rank == NULL || rank->speed == 0 || by_effort) /* real time is not used */
        return nanoseconds;
    if (shown_clock != clock || shown_rank != rank)
        listen(rank, clock);
    return nanoseconds + (uint64_t)((double)(quipu_mpi_nanoseconds() - told_here) * rank->speed);
}

/* Simulates the computation since the previous MPI call by its effort. Other ranks run meanwhile. */
static void compute_effort(double speed) {
    const double seconds = quipu_computation(), begin = simgrid_get_clock();
    if (seconds > 0)
        smpi_execute_flops(seconds * speed * sg_host_get_speed(sg_host_self()));
    quipu_computed(simgrid_get_clock() - begin);
}

void quipu_mpi_begin_computing(struct quipu_mpi_rank *rank, double speed) {
    rank->speed = speed;
    if (by_effort)
        quipu_begin_computations();
}

void quipu_mpi_compute(void) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL || rank->active_wrapper != NULL || rank->speed == 0)
        return;
    if (by_effort) {
        compute_effort(rank->speed);
        rank->called = simgrid_get_clock();
        return;
    }
    smpi_bench_end();
    smpi_bench_begin();
    listen(rank, simgrid_get_clock());
}

void quipu_mpi_simulated(void) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL)
        return;
    if (by_effort) {
        if (rank->speed > 0)
            quipu_operated((simgrid_get_clock() - rank->called) / rank->speed);
        return;
    }
    /* The timer of SMPI begins again. Some functions (MPI_Cart_create) communicate without stopping it, and the time in
     * which other ranks compute is not computation of this rank. */
    if (rank->speed != 0)
        smpi_bench_begin();
    listen(rank, simgrid_get_clock());
}

/* Wrappers of functions that read or advance the simulated clock and have no generated wrapper. In a simulation by
 * effort, the previous computation must be simulated first. Otherwise SMPI does this, so these wrappers are not used.
 */
static double wtime(void) {
    quipu_mpi_compute();
    return MPI_Wtime();
}

static int time_of_day(struct timeval *time, struct timezone *zone) {
    quipu_mpi_compute();
    return smpi_gettimeofday(time, zone);
}

static int clock_time(clockid_t clock, struct timespec *time) {
    quipu_mpi_compute();
    return smpi_clock_gettime(clock, time);
}

static unsigned int sleep_seconds(unsigned int seconds) {
    quipu_mpi_compute();
    return smpi_sleep(seconds);
}

static int sleep_microseconds(useconds_t microseconds) {
    quipu_mpi_compute();
    return smpi_usleep(microseconds);
}

static int sleep_nanoseconds(const struct timespec *time, struct timespec *rest) {
    quipu_mpi_compute();
    return smpi_nanosleep(time, rest);
}

const void *quipu_mpi_clock_of(const char *name) {
    static const struct quipu_mpi_replacement clocks[] = {
        {"MPI_Wtime", (const void *)wtime, NULL},
        {"smpi_gettimeofday", (const void *)time_of_day, NULL},
        {"smpi_clock_gettime", (const void *)clock_time, NULL},
        {"smpi_sleep", (const void *)sleep_seconds, NULL},
        {"smpi_usleep", (const void *)sleep_microseconds, NULL},
        {"smpi_nanosleep", (const void *)sleep_nanoseconds, NULL},
    };
    for (size_t i = 0; by_effort && i < sizeof clocks / sizeof *clocks; i++)
        if (strcmp(name, clocks[i].name) == 0)
            return clocks[i].function;
    return NULL;
}

void quipu_mpi_share(void) {
    static const struct quipu_ranks by_actor = {running, now};
    quipu_share(&by_actor);
    by_effort = quipu_compute_by_effort() != 0;
}

#endif

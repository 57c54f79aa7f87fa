/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long MPI calls wait for other processes: the metric wait_time.
 *
 * Point-to-point: the waiting of a blocking call is its duration minus the transfer time of its bytes. For a long
 * receive the waiting is exact: MPI_Probe first waits for the envelope (header) of the message. The receive that
 * follows then only transfers the message. Its duration gives the time per byte for other calls.
 *
 * Collective operations: a reduction before the operation, called probe, lasts until the last process arrives
 * (delays.c). Probes disturb the program, so few calls are probed. The number of the call on its communicator selects
 * these calls, so all processes select the same ones. The call before a selected call is probed, too: delays are found
 * by the time since the latest synchronization. */
#include "wait.h"

#ifndef SMPI_H

#include "group.h"
#include "transfer_rate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_PROBES = 16,       /* first calls on a communicator, which are all probed: some programs have few calls */
    SAMPLED_ONE_OF = 128,    /* QUIPU_MPI_WAIT=sample: of the later calls, one of this number is probed */
    COPIED = 1 << 18,        /* bytes of a copy in `calibrate` */
    COPIES = 4,              /* number of these copies */
    CLOCK_SPAN_NS = 50000,   /* time over which `calibrate` compares quipu_ticks with nanoseconds */
    RAREST_ONE_OF = 1 << 20, /* upper limit of `one_of` in struct arrivals */
};
/* If the probes take a larger share of the time of a rank, half as many calls are probed from then on. */
static const double probes_share = 0.01;

bool quipu_mpi_tell_waits = false;
bool quipu_mpi_wait_mode_is_on = false;
uint32_t quipu_mpi_probe_one_of = 0;
uint64_t quipu_mpi_wait_floor = 0;

static struct quipu_mpi_rates rates; /* ticks per byte */
static int arrivals_key = MPI_KEYVAL_INVALID;
static int largest_tag = 32767; /* MPI_TAG_UB; initially the smallest value that the standard allows */
/* Numbers of probed calls and of calls that could be probed (collectives). probe_cost: time that the probes have taken
 * in addition to waiting (ticks). */
static _Atomic uint64_t probes, probe_cost, collectives;
static uint64_t began; /* quipu_ticks when waiting began to be measured */

/* State of the collective operations of a communicator. The program calls them one after the other. */
struct arrivals {
    uint64_t calls;  /* number of calls so far */
    uint64_t cost;   /* duration of a probe without waiting (ticks): the smallest that was measured */
    uint32_t one_of; /* one of this number of calls is probed */
    struct quipu_mpi_since since;
    uint64_t synchronized; /* 1 + index of the call after the latest probed call; 0: there is none */
    bool probed;           /* calls may be probed, because all processes belong to MPI_COMM_WORLD */
    bool met;              /* a call failed after its probe, and the probe counts for the next call */
    bool inside; /* inside of a collective call; still set at the next call if an error handler left by longjmp */
};
static _Thread_local struct arrivals *entered; /* the communicator whose collective call this thread is in, or NULL */

/* Stores the duration of a probe for which all processes had arrived before, if it is the shortest one so far. */
static void note_cost(struct arrivals *arrivals, const struct quipu_mpi_probe *probe) {
    const uint64_t cost = probe->left - probe->arrived;
    arrivals->cost = arrivals->cost == 0 || cost < arrivals->cost ? cost : arrivals->cost;
}

/* Measures the ticks per nanosecond, and the time per byte of copies in memory. No message is transferred faster, so
 * this time per byte is used until receives give a better one. */
static void calibrate(void) {
    const uint64_t start = quipu_ticks(), start_ns = quipu_mpi_nanoseconds();
    char *from = calloc(1, COPIED), *to = calloc(1, COPIED);
    double best = 0;
    for (int i = 0; from != NULL && to != NULL && i < COPIES; i++) {
        const uint64_t before = quipu_ticks();
        memcpy(to, from, COPIED);
        __asm__ volatile("" : : "r"(to) : "memory");
        const double each = (double)(quipu_ticks() - before) / COPIED;
        best = best == 0 || each < best ? each : best;
    }
    free(from);
    free(to);
    uint64_t now_ns;
    do
        now_ns = quipu_mpi_nanoseconds();
    while (now_ns - start_ns < CLOCK_SPAN_NS);
    quipu_mpi_ticks_per_ns = (double)(quipu_ticks() - start) / (double)(now_ns - start_ns);
    quipu_mpi_take_rate(&rates, best);
    quipu_mpi_wait_floor = (uint64_t)(quipu_mpi_ticks_per_ns * QUIPU_MPI_WAIT_FLOOR_NS);
}

static int delete_arrivals(MPI_Comm comm, int key, void *value, void *state) {
    (void)comm, (void)key, (void)state;
    if (entered == value)
        entered = NULL;
    quipu_end_interval(((struct arrivals *)value)->since.interval);
    free(value);
    return MPI_SUCCESS;
}

static struct arrivals *arrivals_of(MPI_Comm comm);

/* Probes MPI_COMM_WORLD repeatedly, so that all ranks begin their first interval at the same moment. */
static void synchronize_world(void) {
    struct arrivals *arrivals = arrivals_of(MPI_COMM_WORLD);
    if (arrivals == NULL || !arrivals->probed)
        return;
    /* In the second half, the ranks adapt to the corrections that other ranks made in the first half. */
    for (int probe = 0; probe <= 2 * QUIPU_MPI_LAGS; probe++) {
        struct quipu_mpi_probe found;
        if (!quipu_mpi_probe(&arrivals->since, NULL, MPI_COMM_WORLD, 0, 0, &found))
            return;
        note_cost(arrivals, &found);
        quipu_mpi_begin_since(&arrivals->since, &found, arrivals->cost);
    }
    arrivals->synchronized = 1;
}

void quipu_mpi_choose_waits(bool world) {
    const char *mode = quipu_setting("QUIPU_MPI_WAIT"), *clock = quipu_setting("QUIPU_CLOCK");
    if (mode == NULL || *mode == '\0')
        mode = "local";
    const bool sample = strcmp(mode, "sample") == 0, all = strcmp(mode, "all") == 0;
    if (!sample && !all && strcmp(mode, "local") != 0 && strcmp(mode, "off") != 0) {
        fprintf(stderr, "quipu: error: QUIPU_MPI_WAIT=%s: it must be off, local, sample or all [bad-setting]\n", mode);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    quipu_attribute("mpi_wait", (sample || all) && !world ? "local" : mode);
    quipu_mpi_wait_mode_is_on = strcmp(mode, "off") != 0;
    if (!quipu_mpi_wait_mode_is_on || (clock != NULL && strcmp(clock, "none") == 0))
        return;
    /* All ranks make the same decision, because it uses only variables with the same value on all ranks. */
    if ((sample || all) && world &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_arrivals, &arrivals_key, NULL) == MPI_SUCCESS)
        quipu_mpi_probe_one_of = all ? 1 : SAMPLED_ONE_OF;
    if (quipu_mpi_probe_one_of != 0 && !quipu_mpi_prepare_probes()) { /* other processes would wait for this one */
        fputs("quipu: error: MPI returned an error for an operation that the probes of collective operations need "
              "[no-probes]\n",
              stderr);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    int *bound = NULL, known = 0;
    if (quipu_ticks() != 0) {
        if (world && PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&bound, &known) == MPI_SUCCESS && known)
            largest_tag = *bound;
        calibrate();
        quipu_mpi_tell_waits = true;
        began = quipu_ticks();
    }
    if (quipu_mpi_probe_one_of != 0)
        synchronize_world();
}

void quipu_mpi_report_waits(void) {
    char text[32];
    if (quipu_mpi_probe_one_of == 0 || quipu_mpi_ticks_per_ns <= 0)
        return;
    snprintf(text, sizeof text, "%llu", (unsigned long long)atomic_load(&probes));
    quipu_attribute("mpi_wait_probes", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)atomic_load(&collectives));
    quipu_attribute("mpi_wait_collectives", text);
    const unsigned long long cost = (unsigned long long)((double)atomic_load(&probe_cost) / quipu_mpi_ticks_per_ns);
    snprintf(text, sizeof text, "%llu.%09llu", cost / 1000000000, cost % 1000000000); /* %f depends on the locale */
    quipu_attribute("mpi_wait_probe_seconds", text);
}

static void add_wait(struct quipu_node *node, uint64_t ticks) {
    if (node != NULL)
        quipu_mpi_add(node, QUIPU_WAIT_TIME, ticks);
}

void quipu_mpi_waited(struct quipu_node *node, uint64_t ticks, uint64_t bytes) {
    const double transfer = (double)bytes * quipu_mpi_usual_rate(&rates);
    if ((double)ticks > transfer)
        add_wait(node, ticks - (uint64_t)transfer);
}

/* Returns whether MPI_Probe accepts the arguments of a receive. With a wrong argument, the error handler of the program
 * would run twice: for MPI_Probe and for the receive. */
static bool can_probe(int source, int tag, MPI_Comm comm) {
    if (comm == MPI_COMM_NULL || (tag != MPI_ANY_TAG && (tag < 0 || tag > largest_tag)))
        return false;
    return source == MPI_ANY_SOURCE || (source >= 0 && source < quipu_mpi_group_of(comm).size);
}

bool quipu_mpi_await_message(struct quipu_node *node, int source, int tag, MPI_Comm comm) {
    if (!can_probe(source, tag, comm))
        return false;
    const uint64_t begin = quipu_ticks();
    if (PMPI_Probe(source, tag, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    const uint64_t ticks = quipu_ticks() - begin;
    if (ticks > quipu_mpi_wait_floor)
        add_wait(node, ticks);
    return true;
}

void quipu_mpi_learn_rate(uint64_t ticks, uint64_t bytes) {
    quipu_mpi_take_rate(&rates, (double)ticks / (double)bytes);
}

/* Returns whether a communicator has several processes, and all belong to MPI_COMM_WORLD. Spawned or connected
 * processes may be measured in another way, or not at all. False for an inter-communicator. */
static bool inside_world(MPI_Comm comm) {
    MPI_Group members = MPI_GROUP_NULL, world = MPI_GROUP_NULL, both = MPI_GROUP_NULL;
    int size = 0, common = 0, inter = 0;
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return false;
    if (PMPI_Comm_group(comm, &members) == MPI_SUCCESS && PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS &&
        PMPI_Group_intersection(members, world, &both) == MPI_SUCCESS) {
        PMPI_Group_size(members, &size);
        PMPI_Group_size(both, &common);
        PMPI_Group_free(&both);
    }
    if (world != MPI_GROUP_NULL)
        PMPI_Group_free(&world);
    if (members != MPI_GROUP_NULL)
        PMPI_Group_free(&members);
    return size > 1 && common == size;
}

static struct arrivals *arrivals_of(MPI_Comm comm) {
    static struct arrivals *of_world = NULL;
    struct arrivals *arrivals = comm == MPI_COMM_WORLD ? of_world : NULL;
    int found = 0;
    if (arrivals != NULL)
        return arrivals;
    if (PMPI_Comm_get_attr(comm, arrivals_key, &arrivals, &found) == MPI_SUCCESS && found)
        return arrivals;
    arrivals = calloc(1, sizeof *arrivals);
    if (arrivals == NULL) { /* other processes would wait for this one */
        fputs("quipu: error: no memory for the probes of collective operations [no-memory]\n", stderr);
        PMPI_Abort(MPI_COMM_WORLD, 1);
        return NULL;
    }
    arrivals->probed = inside_world(comm);
    arrivals->one_of = quipu_mpi_probe_one_of;
    /* The initial cost is that of MPI_COMM_WORLD, because a probe of fewer processes takes no longer. The first probe
     * of this communicator may be interrupted by other work of the processor. */
    arrivals->cost = of_world == NULL ? 0 : of_world->cost;
    PMPI_Comm_set_attr(comm, arrivals_key, arrivals);
    if (comm == MPI_COMM_WORLD)
        of_world = arrivals;
    return arrivals;
}

/* Returns the number of calls that a call represents; 0: the call is not selected. call: its index. A hash of the index
 * selects the calls, because a regular selection could coincide with a repeated sequence of calls. */
static uint64_t weight_of(const struct arrivals *arrivals, uint64_t call) {
    if (arrivals->one_of == 1 || call < FIRST_PROBES)
        return 1;
    const uint64_t hash = (call + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return (hash >> 40) % arrivals->one_of == 0 ? arrivals->one_of : 0;
}

/* Returns the interval since the latest probe of the communicator or, if this was later, of MPI_COMM_WORLD. A probe is
 * used only if no call without a probe followed on its communicator. All members are 0 if there is no such probe. */
static struct quipu_mpi_since since_of(const struct arrivals *arrivals, uint64_t call) {
    const struct arrivals *world = arrivals_of(MPI_COMM_WORLD);
    struct quipu_mpi_since since = {0};
    if (arrivals->synchronized == call + 1)
        since = arrivals->since;
    /* Concurrent calls of threads may have another order on another rank. */
    if (!quipu_mpi_concurrent && world != NULL && world != arrivals && world->synchronized == world->calls + 1 &&
        world->since.begun > since.begun)
        since = world->since;
    return since;
}

static double cost_share(void) {
    const uint64_t now = quipu_ticks();
    return now <= began ? 0 : (double)atomic_load(&probe_cost) / (double)(now - began);
}

void quipu_mpi_await_all(struct quipu_node *node, MPI_Comm comm) {
    if (comm == MPI_COMM_NULL || comm == MPI_COMM_SELF)
        return;
    struct arrivals *arrivals = arrivals_of(comm);
    if (arrivals == NULL || !arrivals->probed)
        return;
    entered = arrivals;
    if (arrivals->met || arrivals->inside) {
        arrivals->inside = true;
        arrivals->met = false;
        return;
    }
    arrivals->inside = true;
    atomic_fetch_add_explicit(&collectives, 1, memory_order_relaxed);
    const uint64_t call = arrivals->calls++, weight = weight_of(arrivals, call);
    if (weight == 0 && weight_of(arrivals, call + 1) == 0)
        return;
    const struct quipu_mpi_since since = since_of(arrivals, call);
    const uint64_t begin = quipu_ticks();
    struct quipu_mpi_probe probe;
    if (!quipu_mpi_probe(&since, node, comm, weight, cost_share(), &probe))
        return;
    const uint64_t inside = probe.left - probe.arrived;
    if (call < FIRST_PROBES) { /* all processes have arrived, so a second probe measures the cost */
        struct quipu_mpi_probe other;
        if (!quipu_mpi_probe(&since, NULL, comm, 0, 0, &other))
            return;
        note_cost(arrivals, &other);
    }
    if (inside > arrivals->cost)
        add_wait(node, (inside - arrivals->cost) * weight);
    if (arrivals->one_of > 1 && call >= FIRST_PROBES && probe.cost_share > probes_share &&
        arrivals->one_of < RAREST_ONE_OF)
        arrivals->one_of *= 2;
    quipu_mpi_begin_since(&arrivals->since, &probe, arrivals->cost);
    arrivals->synchronized = call + 2;
    const uint64_t took = quipu_ticks() - begin;
    atomic_fetch_add_explicit(&probes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&probe_cost, took - inside + arrivals->cost, memory_order_relaxed);
}

/* Returns whether a collective call failed because of its arguments, before any communication. The other processes may
 * have correct arguments: they then wait in the operation until this process repeats the call. */
static bool is_refused(int error) {
    int class = MPI_SUCCESS;
    if (PMPI_Error_class(error, &class) != MPI_SUCCESS)
        return false;
    return class == MPI_ERR_BUFFER || class == MPI_ERR_COUNT || class == MPI_ERR_TYPE || class == MPI_ERR_ROOT ||
           class == MPI_ERR_OP || class == MPI_ERR_ARG;
}

void quipu_mpi_collective_over(MPI_Comm comm, int error) {
    if (entered != NULL)
        entered->inside = false;
    entered = NULL;
    if (error == MPI_SUCCESS || comm == MPI_COMM_NULL || comm == MPI_COMM_SELF || !is_refused(error))
        return;
    struct arrivals *arrivals = arrivals_of(comm);
    if (arrivals != NULL && arrivals->probed)
        arrivals->met = true;
}

#endif

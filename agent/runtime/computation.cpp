// SPDX-License-Identifier: Apache-2.0
/* Simulates computation from its effort: the seconds of a rank between two calls of MPI.
 *
 * The file that QUIPU_RATES names contains seconds per unit of effort for call paths. Each unit of a counter therefore
 * takes a constant time, and the time of a node is a weighted sum of its counters. The time of a computation is the sum
 * of the increases of its nodes. Only active nodes, and nodes that were entered since the last call of MPI, can
 * increase. They are in a list, so the cost of a call of MPI does not depend on the size of the tree.
 *
 * Sums are whole femtoseconds modulo 2^64 and therefore exact: a difference depends neither on the order of additions
 * nor on the length of the run.
 *
 * A call of MPI takes at least the processor time of the MPI library itself (file of rates). If the simulated network
 * takes less, the rest of this time is added to the computation before the next call. */
#include "computation.h"

#include "clock.h"
#include "mpi_handles.h"
#include "number_map.h"
#include "rates.h"
#include "settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace quipu {

bool by_effort;

namespace {

constexpr int64_t fs_per_ns = 1000000;

/* Femtoseconds per unit of the counts of a node, at the rates of its call path. The visits and counters of an inlined
 * function belong to its owner. */
struct Costs {
    uint64_t metrics[QUIPU_WEIGHTED];
    uint64_t visit; /* additional time of a visit; 0 for regions without hooks */
    uint32_t count;
    struct Row {
        uint64_t number; /* 0: a visit; i + 1: counter i */
        uint64_t fs;
    } rows[1];
};

/* State of a node: its effort at the last call of MPI, and its time. */
struct Grown {
    Node *node;
    Node *counting; /* the node with its visits and counters: itself, or the function that it was inlined into */
    Node *active;   /* the node that gets the time: itself, or for a quiet region its caller */
    uint64_t path;  /* hash of the call path (rates.h) */
    const Rates *rates;
    const Costs *costs;
    const Operation *operation; /* MPI operation, or null */
    uint64_t seen;              /* effort at the last call of MPI (fs, modulo 2^64) */
    int64_t change;             /* change since then */
    int64_t owed;               /* time that `active` does not contain yet (fs) */
    uint64_t noted;             /* number of the computation whose list last contained it */
    Grown *quiet;               /* list of callees without a hook; they may run as long as this node is active */
    Grown *next;
};

/* A rank and its current computation. */
struct Rank {
    Map nodes; /* states of nodes, by address of the node */
    uint64_t computation = 1;
    Grown **list = nullptr;
    size_t count = 0, room = 0;
    int64_t sum = 0; /* time of the current computation (fs); negative: earlier computations were too long */
    const Node *operated = nullptr; /* last MPI operation since the last computation */
    int64_t took = 0;               /* simulated time of this operation (fs) */
};

Rank **ranks_by_location;
size_t ranks_room;

Rank &rank_of(const quipu_thread *thread) {
    const size_t location = thread->location;
    if (location >= ranks_room) {
        const size_t room = 2 * location + 64;
        auto **more = static_cast<Rank **>(realloc(static_cast<void *>(ranks_by_location), room * sizeof(Rank *)));
        if (!more)
            no_memory();
        memset(static_cast<void *>(more + ranks_room), 0, (room - ranks_room) * sizeof(Rank *));
        ranks_by_location = more;
        ranks_room = room;
    }
    Rank *&rank = ranks_by_location[location];
    if (!rank) {
        rank = make<Rank>();
        rank->computation = 1;
    }
    return *rank;
}

/* Returns the record of a region; null for the root, and if there was no memory for it. */
const RegionRecord *record(uint64_t id) {
    static Map records;
    if (!id)
        return nullptr;
    if (!records.find(id)) {
        const Locked locked;
        records.at(id) = const_cast<RegionRecord *>(region_of(id));
    }
    return static_cast<const RegionRecord *>(records.find(id));
}

/* Returns the hash of a path extended by a region, as in the file of rates. */
uint64_t with_region(uint64_t path, const RegionRecord *region) {
    const char *name = region ? region->text : "";
    const size_t length = strcspn(name, "\x1f");
    char *alike = static_cast<char *>(malloc(length + 1));
    if (!alike)
        no_memory();
    const uint64_t hash = with_name(path, alike, built_alike(name, length, alike));
    free(alike);
    return hash;
}

uint64_t whole(double fs) { return static_cast<uint64_t>(static_cast<int64_t>(fs < 0 ? fs - 0.5 : fs + 0.5)); }

const Costs *costs_of(const RegionRecord *region, const Rates *rates) {
    static Map known;
    void *&place = known.at((region ? region->id * 0x9e3779b97f4a7c15u : 0) ^ reinterpret_cast<uint64_t>(rates));
    if (place)
        return static_cast<const Costs *>(place);
    const uint32_t rows = region ? region->rows : 0, inner = region && region->index ? region->scope_row_count : 0;
    auto *costs = make<Costs>(sizeof(Costs) + sizeof(Costs::Row) * (rows + inner));
    for (int metric = 0; metric < QUIPU_WEIGHTED; metric++)
        costs->metrics[metric] = whole(rates->fs[metric]);
    costs->visit = region && region->hook == QUIPU_HOOKED ? whole(rates->fs[QUIPU_WEIGHTED]) : 0;
    const auto add = [&](uint64_t number, const int64_t *weights) {
        double fs = 0;
        for (int metric = 0; metric < QUIPU_WEIGHTED; metric++)
            fs += static_cast<double>(weights[metric]) * rates->fs[metric];
        costs->rows[costs->count++] = {number, whole(fs)};
    };
    for (uint32_t row = 0; row < rows; row++)
        add(row, region->weights + size_t{row} * QUIPU_WEIGHTED);
    for (uint32_t i = 0; i < inner; i++) {
        const int64_t *row = region->scope_rows + size_t{i} * QUIPU_SCOPE_ROW;
        add(static_cast<uint64_t>(row[0]), row + 2);
    }
    place = costs;
    return costs;
}

/* Returns the state of a node, created at first use. */
Grown *grown(Rank &rank, Node *node) {
    if (void *known = rank.nodes.find(reinterpret_cast<uint64_t>(node)))
        return static_cast<Grown *>(known);
    Grown *up = node->up ? grown(rank, node->up) : nullptr;
    auto *fresh = make<Grown>();
    const RegionRecord *region = record(node->region);
    Node *counting = node;
    while (counting->up && counting->owner && counting->id != node->owner)
        counting = counting->up;
    if (up && region && region->hook != QUIPU_HOOKED) {
        *fresh = {node, counting, up->active, up->path, up->rates, nullptr, nullptr, 0, 0, 0, 0, nullptr, nullptr};
        if (counting == node) {
            fresh->next = up->quiet;
            up->quiet = fresh;
        }
    } else {
        const uint64_t path = region ? with_region(up ? up->path : no_names, region) : no_names;
        const uint64_t alone = with_region(no_names, region);
        *fresh = {node, counting, node,    path,   rates_of(path, alone), nullptr, operation_of(path, alone), 0, 0,
                  0,    0,        nullptr, nullptr};
    }
    fresh->costs = costs_of(region, fresh->rates);
    rank.nodes.at(reinterpret_cast<uint64_t>(node)) = fresh;
    return fresh;
}

/* Adds a node and its scopes to the list of the current computation. */
void note(Rank &rank, Grown *node) {
    if (node->noted == rank.computation)
        return;
    node->noted = rank.computation;
    if (rank.count == rank.room) {
        rank.room = rank.room ? 2 * rank.room : 64;
        auto **more = static_cast<Grown **>(realloc(static_cast<void *>(rank.list), rank.room * sizeof(Grown *)));
        if (!more)
            no_memory();
        rank.list = more;
    }
    rank.list[rank.count++] = node;
    const RegionRecord *region = node->node->scopes ? record(node->node->region) : nullptr;
    for (uint32_t i = 1; region && i < region->scopes; i++)
        note(rank, grown(rank, node->node->scopes[i]));
}

/* Returns the time of the effort of a node (fs, modulo 2^64). */
uint64_t effort_of(const Grown *grown) {
    const Node *node = grown->node, *counting = grown->counting;
    const Costs *costs = grown->costs;
    uint64_t fs = 0;
    if (const Operation *operation = grown->operation)
        return node->metrics[QUIPU_VISITS] * whole(operation->fs_per_call) +
               (node->metrics[QUIPU_BYTES_SENT] + node->metrics[QUIPU_BYTES_RECEIVED]) * whole(operation->fs_per_byte);
    for (int metric = 0; metric < QUIPU_WEIGHTED; metric++)
        fs += node->metrics[QUIPU_BLOCKS + metric] * costs->metrics[metric];
    fs += node->metrics[QUIPU_VISITS] * costs->visit;
    for (uint32_t i = 0; i < costs->count; i++) {
        const Costs::Row &row = costs->rows[i];
        fs += (row.number ? counting->counters[row.number - 1] : counting->metrics[QUIPU_VISITS]) * row.fs;
    }
    return fs;
}

} // namespace

void note_visit(quipu_thread *thread, Link *link) {
    if (is_locked_here() || link->folded || link->visits == &own(thread)->no_visits)
        return; /* the node belongs to measure_overhead or a signal handler, or counts with the active node */
    auto *node = reinterpret_cast<Node *>(reinterpret_cast<char *>(link->visits) - offsetof(Node, metrics) -
                                          sizeof(uint64_t) * QUIPU_VISITS);
    note_node(thread, node);
}

void note_node(quipu_thread *thread, Node *node) {
    Rank &rank = rank_of(thread);
    note(rank, grown(rank, node));
}

} // namespace quipu

extern "C" {

int quipu_compute_by_effort(void) {
    using namespace quipu;
    const char *path = setting("QUIPU_RATES");
    if (!by_effort && active && path && *path) {
        read_rates(path);
        by_effort = true;
    }
    return by_effort;
}

double quipu_computation(void) {
    using namespace quipu;
    quipu_thread *thread = running_rank();
    if (!thread)
        return 0;
    Rank &rank = rank_of(thread);
    for (size_t i = 0; i < rank.count; i++) {
        Grown *node = rank.list[i];
        const uint64_t now = effort_of(node);
        node->change = static_cast<int64_t>(now - node->seen);
        node->seen = now;
        if (node->operation && node->node == rank.operated)
            node->change = node->change > rank.took ? node->change - rank.took : 0;
        rank.sum += node->change;
    }
    rank.operated = nullptr;
    return rank.sum > 0 ? static_cast<double>(rank.sum) / fs_per_second : 0;
}

void quipu_begin_computations(void) {
    using namespace quipu;
    quipu_thread *thread = running_rank();
    if (!thread)
        return;
    (void)quipu_computation();
    quipu_computed(0);
    for (const Frame *frame = own(thread)->frames; frame <= thread->top; frame++) {
        Grown *node = grown(rank_of(thread), frame->node);
        node->seen -= node->costs->visit;
    }
}

void quipu_operated(double seconds) {
    using namespace quipu;
    quipu_thread *thread = running_rank();
    if (!thread)
        return;
    Rank &rank = rank_of(thread);
    rank.operated = thread->here;
    rank.took = static_cast<int64_t>(seconds * fs_per_second);
}

void quipu_computed(double seconds) {
    using namespace quipu;
    quipu_thread *thread = running_rank();
    if (!thread)
        return;
    Rank &rank = rank_of(thread);
    const double stretch = rank.sum > 0 ? seconds * fs_per_second / static_cast<double>(rank.sum) : 1;
    for (size_t i = 0; i < rank.count; i++) {
        Grown *node = rank.list[i];
        node->owed += static_cast<int64_t>(static_cast<double>(node->change) * stretch);
        if (node->owed < fs_per_ns || clock_kind == QUIPU_CLOCK_NONE)
            continue;
        quipu_add_alone(node->active, QUIPU_TIME, static_cast<uint64_t>(node->owed / fs_per_ns));
        node->owed %= fs_per_ns;
    }
    /* The begin of a visit adds the weights of the whole visit. If some of this work is not executed, counters subtract
     * it later, and the sum may be negative. */
    rank.sum = rank.sum < 0 ? rank.sum : 0;
    rank.computation++;
    rank.count = 0;
    for (const Frame *frame = own(thread)->frames; frame <= thread->top; frame++) {
        Grown *node = grown(rank, frame->node);
        note(rank, node);
        for (Grown *quiet = node->quiet; quiet; quiet = quiet->next)
            note(rank, quiet);
    }
    thread->last = ticks(clock_kind);
}
}

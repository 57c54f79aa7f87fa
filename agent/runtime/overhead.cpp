// SPDX-License-Identifier: Apache-2.0
#include "clock.h"
#include "hot.h"
#include "tree.h"

#include <sys/mman.h>

namespace quipu {
namespace {

constexpr int attempts = 8;
constexpr int repetitions = 256;
constexpr int most_counters = 8;
constexpr int sums_of_work = 4; /* additions of the program per addition to a counter */
constexpr int functions = 4;    /* number of independent visits that may overlap */

/* A thread that is not in the file, with two call paths: a caller, and a region that it enters. The caller also visits
 * a region without hooks (quiet). */
struct Stage {
    Thread own;
    quipu_thread shared;
    Frame frames[4];
    Node caller, callee;
    quipu_region region, quiet;
    Link enter, count;
    Link *volatile slot[functions]; /* slots of quiet regions, which have separate links */
    Link followed[functions];
    uint64_t visits[functions];
    uint64_t counters[most_counters];
};

void set_up(Stage *stage) {
    stage->region.name = stage->quiet.name = "";
    stage->region.id = stage->region.hash = 1;
    stage->quiet.id = stage->quiet.hash = 2;
    stage->quiet.hook = QUIPU_QUIET;
    stage->caller.id = 1;
    stage->callee.id = 2;
    stage->caller.charged = &stage->caller;
    stage->callee.charged = &stage->callee;
    stage->callee.up = &stage->caller;
    stage->callee.salt = 3;
    stage->enter.region = stage->region.id;
    stage->enter.to = &stage->callee;
    stage->count.region = stage->quiet.id;
    stage->count.to = &stage->caller;
    Link *const links[] = {&stage->enter, &stage->count};
    for (Link *link : links) {
        link->from = &stage->caller;
        link->counters = stage->counters;
        link->visits = &link->to->metrics[QUIPU_VISITS];
    }
    for (int i = 0; i < functions; i++) {
        stage->followed[i] = stage->count;
        stage->followed[i].visits = &stage->visits[i];
        stage->slot[i] = &stage->followed[i];
    }
    for (Link *&entry : stage->own.table)
        entry = &stage->enter;
    stage->own.table[QUIPU_TABLE_INDEX(stage->caller.salt, stage->quiet.hash)] = &stage->count;
    stage->own.shared = &stage->shared;
    stage->own.frames = stage->frames;
    stage->frames[0].node = &stage->caller;
    stage->frames[0].back = &stage->caller;
    stage->frames[0].counters = stage->counters;
    stage->shared.here = &stage->caller;
    stage->shared.top = stage->frames;
    stage->shared.limit = stage->frames + 3;
    stage->shared.table = stage->own.table;
    stage->shared.clock = clock_kind;
    stage->shared.own = &stage->own;
    stage->shared.last = ticks(clock_kind);
}

/* Returns the nanoseconds of one call of `what`, minimum over all attempts. */
template <typename What> double cost_of(What what) {
    uint64_t least = ~uint64_t{0};
    for (int attempt = 0; attempt < attempts; attempt++) {
        const uint64_t before = nanoseconds(CLOCK_MONOTONIC);
        for (int i = 0; i < repetitions; i++)
            what(i);
        const uint64_t took = nanoseconds(CLOCK_MONOTONIC) - before;
        least = took < least ? took : least;
    }
    return static_cast<double>(least) / repetitions;
}

/* The code of the pass for a visit of a function without a hook. */
inline void count_inline(Stage *stage) {
#pragma GCC unroll functions
    for (Link *volatile &slot : stage->slot) {
        Link *const link = slot;
        if (link->from != *const_cast<Node *const volatile *>(quipu_active_node))
            quipu_count(&stage->quiet);
        quipu_increase(link->visits, 1);
    }
}

/* Work of a program with some additions to counters. The difference to work without counters is the cost of counting.
 * Loads and stores of counters alone would wait for each other. */
template <bool counts> inline void work(volatile uint64_t *counters) {
    uint64_t a = 0, b = 0, c = 0, d = 0; /* separate variables, because some compilers keep an array in memory */
#pragma GCC unroll most_counters
    for (int i = 0; i < most_counters; i++) {
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        a++, b++, c++, d++;
        if (counts)
            counters[i] = counters[i] + 1;
    }
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
}

/* The code of the pass for a visit of a function with a hook and a clock. */
inline void visit_with_clock(Stage *stage) {
#if defined(__x86_64__)
    quipu_visit visit;
    quipu_enter_missed(&stage->region, nullptr, &visit);
    quipu_exit_missed(&visit);
#else
    quipu_exit_inline(quipu_enter_inline(&stage->region), 0);
#endif
}

/* Returns the part of the time of both call paths that belongs to the callee. */
double inner_share(const Stage *stage) {
    const auto inside = static_cast<double>(stage->callee.metrics[QUIPU_TIME]);
    const auto outside = static_cast<double>(stage->caller.metrics[QUIPU_TIME]);
    return inside > 0 ? inside / (inside + outside) : 0;
}

} // namespace

Overhead measure_overhead() {
    Overhead found;
    auto *stage = static_cast<Stage *>(reserve(sizeof(Stage)));
    if (!stage)
        return found;
    set_up(stage);
    quipu_thread *const before = quipu_current;
    make_current(&stage->shared);
    found.pair = cost_of([stage](int) { visit_with_clock(stage); });
    found.inside = found.pair * inner_share(stage);
    found.quiet = cost_of([stage](int) { count_inline(stage); }) / functions;
    volatile uint64_t *const counters = stage->counters;
    const double alone = cost_of([counters](int) { work<false>(counters); });
    const double with = cost_of([counters](int) { work<true>(counters); });
    const double least = alone / (most_counters * sums_of_work); /* lower bound of one addition */
    found.counter = (with - alone) / most_counters;
    found.counter = found.counter < least ? least : found.counter;
    volatile uint64_t reading = 0;
    found.clock = cost_of([&reading](int) { reading = ticks(clock_kind); });
    make_current(before);
    munmap(stage, sizeof(Stage));
    return found;
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
/* Records time and effort of each iteration of a phase, while the process runs.
 *
 * A span consists of consecutive iterations, at first of one. Each phase has at most `most_spans` spans. When it needs
 * more, neighbouring spans are joined in pairs, and later spans are twice as long. If the initial thread runs the
 * phase, the effort is the effort of all threads of the process. Otherwise it is the effort of the thread. The effort
 * is a sum over all call paths, computed at the end of a span. */
#include "annotations.h"
#include "clock.h"

#include <stdio.h>
#include <string.h>

namespace quipu {

constexpr uint32_t most_spans = 128;
constexpr uint32_t most_phases = 256; /* largest number of phases of a process */

struct Span {
    long long first, last; /* iteration numbers from the program */
    uint64_t count, ticks;
    uint64_t effort[QUIPU_METRIC_COUNT];
    uint64_t counted; /* number of iterations with known effort */
};

struct PhaseRecord {
    const quipu_region *region;
    PhaseRecord *next;
    uint64_t width, begun; /* number of iterations per span, and of all iterations so far */
    uint64_t started;      /* begin of the present iteration (ticks) */
    bool open;
    uint64_t cost; /* duration of the latest count_so_far() (ticks) */
    uint64_t at_start[QUIPU_METRIC_COUNT];
    uint32_t spans;
    Span span[most_spans];
};

namespace {

uint32_t phases;

constexpr bool is_summed[] = {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description) (over_locations)[0] == 's',
#include "metrics.def"
};

/* Returns whether a metric is recorded. Metrics from other sources, and metrics that are computed later, are not. */
bool is_kept(uint32_t metric) {
    return is_summed[metric] && metric != QUIPU_VISITS && metric != QUIPU_TIME && metric != QUIPU_THREAD_TIME;
}

struct Sum {
    bool all;
    uint32_t location;
    uint64_t total[QUIPU_METRIC_COUNT];
};
Sum sum; /* under the lock */

void add_node(const Node *node) {
    for (uint32_t metric = 0; metric < QUIPU_METRIC_COUNT; metric++)
        sum.total[metric] += get(node->metrics[metric]);
    const RegionRecord *region = node->region && !node->owner ? region_of(node->region) : nullptr;
    if (!region || !region->rows)
        return;
    const uint64_t visits = get(node->metrics[QUIPU_VISITS]);
    const auto times_of = [&](uint64_t row) { return row == 0 ? visits : get(node->counters[row - 1]); };
    for (uint32_t row = 0; row < region->rows; row++)
        if (const uint64_t times = times_of(row))
            for (uint32_t column = 0; column < QUIPU_WEIGHTED; column++)
                sum.total[QUIPU_BLOCKS + column] +=
                    times * static_cast<uint64_t>(region->weights[size_t{row} * QUIPU_WEIGHTED + column]);
    for (uint32_t i = 1; i < region->scopes; i++) {
        const RegionRecord *scope = region_of(region->id + i);
        for (uint32_t at = 0; at < scope->scope_row_count; at++) {
            const int64_t *row = scope->scope_rows + size_t{at} * QUIPU_SCOPE_ROW;
            const uint64_t times = times_of(static_cast<uint64_t>(row[0]));
            for (uint32_t column = 0; times && column < QUIPU_WEIGHTED; column++)
                sum.total[QUIPU_BLOCKS + column] += times * static_cast<uint64_t>(row[2 + column]);
        }
    }
}

/* Sets `total` to the effort until now. Changes nothing if this thread holds the lock. */
void count_so_far(quipu_thread *thread, PhaseRecord *phase, uint64_t *total) {
    const uint64_t began = ticks(clock_kind);
    if (is_locked_here())
        return;
    const Locked locked;
    sum = {thread->location == 0 && !ranks, thread->location, {}};
    profile.for_each_chunk([](quipu_profile_chunk *chunk) {
        if (chunk->type != QUIPU_CHUNK_NODES || (!sum.all && chunk->location != sum.location))
            return;
        const uint32_t used = __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE);
        for (uint32_t at = 0; at + node_size <= used; at += node_size)
            add_node(reinterpret_cast<Node *>(reinterpret_cast<char *>(chunk + 1) + at));
    });
    memcpy(total, sum.total, sizeof sum.total);
    phase->cost = ticks(clock_kind) - began;
}

void join(Span *span, const Span &other) {
    span->last = other.last;
    span->count += other.count;
    span->ticks += other.ticks;
    span->counted += other.counted;
    for (uint32_t metric = 0; metric < QUIPU_METRIC_COUNT; metric++)
        span->effort[metric] += other.effort[metric];
}

/* Makes spans twice as long. */
void widen(PhaseRecord *phase) {
    for (uint32_t i = 0; i < most_spans / 2; i++) {
        phase->span[i] = phase->span[size_t{2} * i];
        join(&phase->span[i], phase->span[2 * i + 1]);
    }
    memset(phase->span + most_spans / 2, 0, sizeof phase->span / 2);
    phase->spans = most_spans / 2;
    phase->width *= 2;
}

} // namespace

PhaseRecord *phase_of(Thread *thread, const quipu_region *region) {
    for (PhaseRecord *phase = thread->annotations->phases; phase; phase = phase->next)
        if (phase->region == region)
            return phase;
    if (is_locked_here())
        return nullptr;
    const Locked locked;
    auto *fresh =
        phases < most_phases && may_call_system() ? static_cast<PhaseRecord *>(keep(sizeof(PhaseRecord))) : nullptr;
    if (!fresh)
        return nullptr;
    phases++;
    fresh->region = region;
    fresh->width = 1;
    fresh->next = thread->annotations->phases;
    return thread->annotations->phases = fresh;
}

void begin_iteration(quipu_thread *thread, PhaseRecord *phase, long long iteration) {
    const uint64_t in_span = phase->begun % phase->width;
    if (in_span == 0) {
        if (phase->spans == most_spans)
            widen(phase);
        if (phase->begun % phase->width == 0) {
            phase->span[phase->spans] = {};
            phase->span[phase->spans++].first = iteration;
        }
        count_so_far(thread, phase, phase->at_start);
    }
    phase->span[phase->spans - 1].last = iteration;
    phase->begun++;
    phase->open = true;
    phase->started = ticks(clock_kind);
}

void end_iteration(quipu_thread *thread, PhaseRecord *phase) {
    if (!phase->open)
        return;
    phase->open = false;
    Span *span = &phase->span[phase->spans - 1];
    const uint64_t took = ticks(clock_kind) - phase->started;
    span->ticks += took;
    span->count++;
    const bool full = phase->begun % phase->width == 0;
    constexpr uint64_t cheap = 64;
    if (!full && phase->cost * cheap > took)
        return;
    uint64_t now[QUIPU_METRIC_COUNT];
    memcpy(now, phase->at_start, sizeof now);
    count_so_far(thread, phase, now);
    for (uint32_t metric = 0; metric < QUIPU_METRIC_COUNT; metric++)
        if (is_kept(metric))
            span->effort[metric] += now[metric] - phase->at_start[metric];
    memcpy(phase->at_start, now, sizeof now);
    span->counted = span->count;
}

/* Writes attributes "iterations:LOCATION:NAME": the iterations of a span, then for each span first, last, count, ticks,
 * the number of iterations with known effort, and the metrics in the order of the table. */
void describe_iterations(const Thread *thread) {
    constexpr size_t number = 21, most_bytes = size_t{48} << 10;
    static char text[most_bytes], key[1200];
    for (const PhaseRecord *phase = thread->annotations ? thread->annotations->phases : nullptr; phase;
         phase = phase->next) {
        char *to = text + snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(phase->width));
        for (uint32_t i = 0; i < phase->spans; i++) {
            const Span &span = phase->span[i];
            if (static_cast<size_t>(text + sizeof text - to) < number * (5 + QUIPU_METRIC_COUNT) + 2)
                break;
            to += snprintf(to, 6 * number, ";%lld %lld %llu %llu %llu", span.first, span.last,
                           static_cast<unsigned long long>(span.count), static_cast<unsigned long long>(span.ticks),
                           static_cast<unsigned long long>(span.counted));
            for (uint64_t value : span.effort)
                to += snprintf(to, number + 1, " %llu", static_cast<unsigned long long>(value));
        }
        snprintf(key, sizeof key, "iterations:%u:%s", thread->shared->location, phase->region->name);
        set_attribute(key, text, ranks ? uint64_t{thread->shared->location} + 1 : 0);
    }
}

void forget_iterations() {
    for_each_thread([](quipu_thread *thread) {
        if (own(thread)->annotations)
            own(thread)->annotations->phases = nullptr;
    });
    phases = 0;
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
/* Call paths without space in the file. Their exact effort is added to their callers.
 *
 * Each region of these call paths has one set of counters per thread in memory. The counters belong to the innermost
 * running call of the region. Before another call begins, and when a call ends, the counters times the weights of the
 * region are added to the caller. Such a call has two additional frames above its frame. Inline code that ends the call
 * expects the frame of the call on top. It finds another frame there, and therefore calls the runtime:
 *
 *   frame: counters of the region; node: the caller
 *   mark:  no counters; node: the previous user of the counters
 *   cover: no counters; node: the caller */
#include "hot.h"
#include "tree.h"

#include <stddef.h>
#include <string.h>

namespace quipu {
namespace {

constexpr uint32_t frames_of_one = 3;

/* Adds the counters to the caller, without the lock. A signal handler may do the same at any point. */
void add_to_caller(Folded *folded) {
    Node *caller = folded->caller ? counted(folded->caller) : nullptr;
    const RegionRecord *region = folded->region;
    for (uint32_t row = 1; row < region->rows; row++) {
        if (!get(folded->counters[row - 1]))
            continue;
        const uint64_t times = __atomic_exchange_n(&folded->counters[row - 1], 0, __ATOMIC_RELAXED);
        const int64_t *weights = folded->weights + size_t{row} * QUIPU_WEIGHTED;
        for (uint32_t column = 0; caller && column < QUIPU_WEIGHTED; column++)
            quipu_add(caller, static_cast<quipu_metric>(QUIPU_BLOCKS + column),
                      times * static_cast<uint64_t>(weights[column]));
    }
}

/* Adds the constant effort of a visit, which does not depend on counters. */
void add_visit(const Folded *folded) {
    const RegionRecord *region = folded->region;
    for (uint32_t column = 0; region->rows && column < QUIPU_WEIGHTED; column++)
        quipu_add(counted(folded->caller), static_cast<quipu_metric>(QUIPU_BLOCKS + column),
                  static_cast<uint64_t>(folded->weights[column]));
}

Folded *of_counters(uint64_t *counters) {
    return reinterpret_cast<Folded *>(reinterpret_cast<char *>(counters) - offsetof(Folded, counters));
}

/* Returns the weights of a visit and of each counter, summed over the region and all scopes in it; null if there is no
 * memory. */
const int64_t *weights_of_all(const RegionRecord *region) {
    if (!region->rows || !region->scopes)
        return region->weights;
    const size_t numbers = size_t{region->rows} * QUIPU_WEIGHTED;
    auto *sum = static_cast<int64_t *>(keep(sizeof(int64_t) * numbers));
    if (!sum)
        return nullptr;
    memcpy(sum, region->weights, sizeof(int64_t) * numbers);
    for (uint32_t i = 1; i < region->scopes; i++) {
        const RegionRecord *scope = region_of(region->id + i);
        for (uint32_t row = 0; row < scope->scope_row_count; row++) {
            const int64_t *from = scope->scope_rows + size_t{row} * QUIPU_SCOPE_ROW;
            for (uint32_t column = 0; column < QUIPU_WEIGHTED; column++)
                sum[from[0] * QUIPU_WEIGHTED + column] += from[2 + column];
        }
    }
    return sum;
}

/* Returns the value of `counters` that identifies mark frames (and cover frames, in cover_of); it points to no
 * counters. */
uint64_t *mark_of(Thread *thread) { return &thread->folding[0]; }
uint64_t *cover_of(Thread *thread) { return &thread->folding[1]; }

} // namespace

Folded *folded_of(Thread *thread, uint64_t region) {
    const RegionRecord *record = region_of(region);
    if (!record)
        return nullptr;
    if (const Link *known = thread->links.find(&thread->folder, region))
        return known->folded;
    auto *fresh = static_cast<Folded *>(keep(sizeof(Folded) + sizeof(uint64_t) * (record->rows + 1)));
    auto *link = static_cast<Link *>(keep(sizeof(Link)));
    const int64_t *weights = weights_of_all(record);
    if (!fresh || !link || !weights)
        return nullptr;
    fresh->region = record;
    fresh->weights = weights;
    fresh->next = thread->folded;
    *link = {&thread->folder, region, &thread->folder, fresh->counters, &thread->no_visits, fresh};
    if (!thread->links.add(link))
        return nullptr;
    __atomic_store_n(&thread->folded, fresh, __ATOMIC_RELEASE);
    return fresh;
}

Frame *enter_folded(quipu_thread *shared, const Link *link) {
    Thread *thread = own(shared);
    Folded *folded = link->folded;
    if (shared->limit - shared->top < frames_of_one)
        return nullptr;
    add_to_caller(folded);
    Node *before = folded->caller, *caller = shared->here;
    folded->caller = caller;
    add_visit(folded);
    Frame *frame = quipu_push(shared, caller, folded->counters);
    quipu_push(shared, before, mark_of(thread));
    quipu_push(shared, caller, cover_of(thread));
    return frame;
}

uint64_t *count_folded(quipu_thread *shared, const Link *link) {
    Folded *folded = link->folded;
    add_to_caller(folded);
    folded->caller = shared->here;
    add_visit(folded);
    return folded->counters;
}

void end_folded(Thread *thread, const Frame *frame) {
    for (const Frame *top = get(thread->shared->top); top >= frame; top--) {
        if (top->counters != cover_of(thread) || top[-1].counters != mark_of(thread))
            continue;
        Folded *folded = of_counters(top[-2].counters);
        add_to_caller(folded);
        folded->caller = top[-1].node;
        const_cast<Frame *>(top)[0].counters = const_cast<Frame *>(top)[-1].counters =
            nullptr; /* a later frame at this place need not set its counters */
        top -= 2;
    }
}

Frame *last_of(Thread *thread, Frame *frame) {
    const bool covered = thread->shared->top - frame >= 2 && frame[1].counters == mark_of(thread) &&
                         frame[2].counters == cover_of(thread);
    return covered ? frame + 2 : frame;
}

void settle_folded(Thread *thread) {
    for (Folded *folded = __atomic_load_n(&thread->folded, __ATOMIC_ACQUIRE); folded; folded = folded->next)
        add_to_caller(folded);
}

} // namespace quipu

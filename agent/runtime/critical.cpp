// SPDX-License-Identifier: Apache-2.0
/* The metric critical_blocks: the executed basic blocks of a call path, plus the blocks that the rank would wait for if
 * only this call path took time.
 *
 * At synchronizing operations, the MPI library reads the executed blocks of each call path of the rank, and computes
 * the waiting of ranks with fewer blocks (quipu_await_blocks). Each flush writes the metric. */
#include "delays.h"

namespace quipu {

/* Data of a thread: the number of the call path of each listed node (the first `known` are set), and the blocks that
 * the rank waited for. */
struct Critical {
    uint32_t *number;
    uint32_t known, number_room;
    uint64_t *awaited; /* blocks that the rank waited for, by number; stored with the thread that reported them */
    uint32_t awaited_paths, awaited_room;
};

namespace {

/* Call paths of all threads, indexed by number, and the blocks that one rank has executed in them. */
quipu_blocks *blocks_so_far;
uint32_t paths, executed_room;
uint32_t *numbers; /* hash table with open addressing: 1 + number of the call path; 0: free */
uint32_t numbers_room;

uint32_t &place_of(uint64_t path) {
    for (uint64_t at = path * 0x9e3779b97f4a7c15u >> 32;; at++) {
        uint32_t &number = numbers[at & (numbers_room - 1)];
        if (number == 0 || blocks_so_far[number - 1].path == path)
            return number;
    }
}

/* Makes room in the hash table for another call path. Returns false if there is no memory. Call under the lock. */
bool make_numbers() {
    if (2 * (paths + 1) <= numbers_room)
        return true;
    const uint32_t room = numbers_room ? 2 * numbers_room : 256;
    auto *larger = static_cast<uint32_t *>(keep(room * sizeof(uint32_t)));
    if (!larger)
        return false;
    numbers = larger;
    numbers_room = room;
    for (uint32_t i = 0; i < paths; i++)
        place_of(blocks_so_far[i].path) = i + 1;
    return true;
}

/* Returns the numbers of the call paths of the first `listed` nodes of the thread; null if there is no memory. */
const Critical *numbers_of(Thread *thread, uint32_t listed) {
    if (Critical *known = thread->critical; known && known->known >= listed)
        return known;
    const uint64_t *hashes = paths_of(thread, listed);
    const Locked locked;
    if (!hashes || (!thread->critical && !(thread->critical = static_cast<Critical *>(keep(sizeof(Critical))))) ||
        !grow(thread->critical->number, thread->critical->number_room, listed))
        return nullptr;
    for (Critical &all = *thread->critical; all.known < listed; all.known++) {
        if (!make_numbers() || !grow(blocks_so_far, executed_room, size_t{paths} + 1))
            return nullptr;
        uint32_t &number = place_of(hashes[all.known]);
        if (number == 0) {
            blocks_so_far[paths].path = hashes[all.known];
            number = ++paths;
        }
        all.number[all.known] = number - 1;
    }
    return thread->critical;
}

/* Returns the blocks of a node, with the formula in profile.def. */
uint64_t blocks_of(const Node *node) {
    uint64_t blocks = get(node->metrics[QUIPU_BLOCKS]);
    const RegionRecord *region = node->region ? region_of(node->region) : nullptr;
    if (!region)
        return blocks;
    const Node *counting = node;
    while (node->owner && counting->up && counting->id != node->owner)
        counting = counting->up;
    const uint64_t visits = get(counting->metrics[QUIPU_VISITS]);
    const auto times_of = [&](uint64_t row) { return row == 0 ? visits : get(counting->counters[row - 1]); };
    for (uint32_t row = 0; !node->owner && row < region->rows; row++)
        if (const int64_t weight = region->weights[size_t{row} * QUIPU_WEIGHTED])
            blocks += times_of(row) * static_cast<uint64_t>(weight);
    for (uint32_t i = 0; (node->owner || node->scopes) && i < region->scope_row_count; i++) {
        const int64_t *row = region->scope_rows + size_t{i} * QUIPU_SCOPE_ROW;
        if (row[2])
            blocks += times_of(static_cast<uint64_t>(row[0])) * static_cast<uint64_t>(row[2]);
    }
    return blocks;
}

void add_blocks(Thread *thread) {
    const uint32_t listed = __atomic_load_n(&thread->listed, __ATOMIC_ACQUIRE);
    const Critical *all = numbers_of(thread, listed);
    for (uint32_t i = 0; all && i < listed; i++) {
        const uint64_t blocks = blocks_of(thread->list[i]);
        if (!(blocks >> 63)) /* negative while a visit is running, whose counters are incomplete */
            blocks_so_far[all->number[i]].blocks += blocks;
    }
}

/* Sets blocks_so_far to the blocks that the rank of this thread has executed. */
void count_rank(quipu_thread *thread) {
    for (uint32_t i = 0; i < paths; i++)
        blocks_so_far[i].blocks = 0;
    if (ranks)
        add_blocks(own(thread));
    else
        for_each_thread([](quipu_thread *other) { add_blocks(own(other)); });
}

/* Writes the metric of the nodes of a thread, after count_rank() of its rank. awaited: the data with the blocks that
 * the rank waited for, or null. place: index of the metric. */
void put_critical(Thread *thread, const Critical *awaited, uint32_t place) {
    const uint32_t listed = __atomic_load_n(&thread->listed, __ATOMIC_ACQUIRE);
    const Critical *all = numbers_of(thread, listed);
    for (uint32_t i = 0; all && i < listed; i++) {
        const uint32_t number = all->number[i];
        const uint64_t blocks = blocks_so_far[number].blocks;
        put(thread->list[i]->metrics[place],
            blocks + (blocks && awaited && number < awaited->awaited_paths ? awaited->awaited[number] : 0));
    }
}

} // namespace

void count_critical(uint32_t place) {
    if (is_locked_here())
        return;
    static uint32_t at; /* static, because for_each_thread takes a function without state */
    static const Critical *of_process;
    at = place;
    of_process = nullptr;
    if (ranks) {
        for_each_thread([](quipu_thread *thread) {
            count_rank(thread);
            put_critical(own(thread), own(thread)->critical, at);
        });
        return;
    }
    count_rank(nullptr);
    for_each_thread([](quipu_thread *thread) {
        const Critical *all = own(thread)->critical;
        of_process = all && all->awaited_paths ? all : of_process;
    });
    for_each_thread([](quipu_thread *thread) { put_critical(own(thread), of_process, at); });
}

} // namespace quipu

extern "C" {

size_t quipu_executed(const struct quipu_blocks **list) {
    using namespace quipu;
    quipu_thread *thread = measured_thread();
    if (!thread || is_idle(thread) || is_locked_here())
        return 0;
    count_rank(thread);
    *list = blocks_so_far;
    return paths;
}

void quipu_await_blocks(const uint64_t *blocks, size_t count) {
    using namespace quipu;
    quipu_thread *thread = measured_thread();
    if (!thread || is_idle(thread) || is_locked_here())
        return;
    Critical *all = own(thread)->critical;
    if (!all || !has_room(all->awaited, all->awaited_room, count))
        return;
    memcpy(all->awaited, blocks, count * sizeof *blocks);
    all->awaited_paths = static_cast<uint32_t>(count);
}
}

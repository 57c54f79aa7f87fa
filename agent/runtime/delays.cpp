// SPDX-License-Identifier: Apache-2.0
/* Causes of waiting, recorded while the process runs: intervals between synchronizations, and a table of charges.
 *
 * An interval stores the time of each call path at its begin. At the next synchronization, the MPI library reads the
 * time since then, and charges the waiting of the other ranks to call paths of the rank that came last. Each flush of
 * the profile writes the increase of the charges since the previous flush. */
#include "delays.h"

#include "clock.h"

#include <stdio.h>
#include <string.h>

namespace quipu {
namespace {

constexpr uint32_t most_charges = 4096; /* largest number of charges of a thread; further charges are not recorded */

} // namespace

/* Waiting at `operation` because of `cause`; cause is null if it is unknown. */
struct Charge {
    const Node *operation, *cause;
    uint64_t ticks, written; /* the waiting so far, and the part that the profile contains */
};

/* The data of a thread for intervals. */
struct Delays {
    uint64_t *path; /* hash of the call path of each listed node */
    uint32_t known, path_room;
    Charge *charge;
    uint32_t charges, charge_room; /* hash table with open addressing; the room is a power of two */
};

namespace {

/* Returns a hash of the names from the root, which is equal in all processes. */
uint64_t path_of(const Node *node) {
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; node && node->region; node = node->up) {
        const char *name = region_of(node->region)->text;
        hash = hash_more(name, strcspn(name, "\x1f") + 1, hash);
    }
    return hash;
}

Delays *delays_of(Thread *thread) {
    if (!thread->delays)
        __atomic_store_n(&thread->delays, static_cast<Delays *>(keep(sizeof(Delays))), __ATOMIC_RELEASE);
    return thread->delays;
}

uint64_t time_of(const Node *node) { return get(node->metrics[QUIPU_TIME]); }

bool is_charged(const Node *node) { return node->region && !region_of(node->region)->is_mpi; }

/* Returns the place of a charge in the table, used or free. */
Charge *place_of(const Delays *all, const Node *operation, const Node *cause) {
    constexpr uint64_t golden = 0x9e3779b97f4a7c15u;
    const uint64_t key = (uint64_t{operation->id} << 32 | (cause ? cause->id : 0)) * golden;
    for (auto at = static_cast<uint32_t>(key >> 40);; at++) {
        Charge *charge = &all->charge[at & (all->charge_room - 1)];
        if (!charge->operation || (charge->operation == operation && charge->cause == cause))
            return charge;
    }
}

/* Returns the charge, created at first use; null if the table is full, or if there is no memory. */
Charge *charge_of(Delays *all, const Node *operation, const Node *cause) {
    if (2 * (all->charges + 1) > all->charge_room) {
        Delays larger = *all;
        larger.charge = nullptr;
        larger.charge_room = 0;
        if (!grow(larger.charge, larger.charge_room, size_t{all->charge_room} + 1))
            return nullptr;
        for (uint32_t i = 0; i < all->charge_room; i++)
            if (all->charge[i].operation)
                *place_of(&larger, all->charge[i].operation, all->charge[i].cause) = all->charge[i];
        *all = larger;
    }
    Charge *charge = place_of(all, operation, cause);
    if (!charge->operation) {
        if (all->charges >= most_charges)
            return nullptr;
        *charge = {operation, cause, 0, 0};
        all->charges++;
    }
    return charge;
}

/* Writes the region ids from the root, separated by spaces. Returns false if they do not fit. */
bool write_path(const Node *node, char *text, size_t size) {
    constexpr size_t most_depth = 512;
    const Node *path[most_depth];
    size_t depth = 0, used = 0;
    for (; node && node->region && depth < most_depth; node = node->up)
        path[depth++] = node;
    text[0] = '\0';
    while (depth > 0 && used + 24 < size) {
        const auto id = static_cast<unsigned long long>(path[--depth]->region);
        used += static_cast<size_t>(snprintf(text + used, size - used, "%s%llu", used ? " " : "", id));
    }
    return depth == 0;
}

} // namespace

void describe_delays() {
    for_each_thread([](quipu_thread *thread) {
        Delays *all = own(thread)->delays;
        static char texts[2][4096];
        for (uint32_t i = 0; all && i < all->charge_room; i++) {
            Charge &charge = all->charge[i];
            char number[24];
            if (charge.ticks == charge.written || !write_path(charge.operation, texts[0], sizeof texts[0]) ||
                !write_path(charge.cause, texts[1], sizeof texts[1]))
                continue;
            snprintf(number, sizeof number, "%llu", static_cast<unsigned long long>(charge.ticks - charge.written));
            const char *parts[] = {texts[0], texts[1], number};
            if (profile.add_text(QUIPU_TEXT_DELAY, thread->location, parts, 3))
                charge.written = charge.ticks;
        }
    });
}

const uint64_t *paths_of(Thread *thread, uint32_t listed) {
    Delays *all = __atomic_load_n(&thread->delays, __ATOMIC_ACQUIRE);
    if (!all) {
        const Locked locked;
        all = delays_of(thread);
    }
    /* Atomic, because the thread that ends a region calls this function for each thread of its team. */
    uint32_t known = all ? __atomic_load_n(&all->known, __ATOMIC_ACQUIRE) : 0;
    if (!all || !has_room(all->path, all->path_room, listed))
        return nullptr;
    for (; known < listed; known++)
        all->path[known] = path_of(thread->list[known]);
    __atomic_store_n(&all->known, known, __ATOMIC_RELEASE);
    return all->path;
}

void caused(Thread *thread, const Node *operation, const Node *cause, uint64_t ticks) {
    Delays *all = ticks ? delays_of(thread) : nullptr;
    if (Charge *charge = all ? charge_of(all, operation, cause) : nullptr)
        charge->ticks += ticks;
}

void forget_delays() {
    for_each_thread([](quipu_thread *thread) {
        own(thread)->delays = nullptr;
        own(thread)->critical = nullptr;
    });
}

} // namespace quipu

struct quipu_interval {
    quipu_thread *thread;
    uint64_t *seen; /* time of each listed node at the begin of the interval */
    uint32_t nodes, seen_room;
    struct quipu_spent *spent;
    uint32_t spent_room;
    quipu_interval *next; /* next interval in the list of unused intervals */
};

extern "C" {

static quipu_interval *unused_intervals;

struct quipu_interval *quipu_begin_interval(struct quipu_interval *interval) {
    using namespace quipu;
    quipu_thread *shared = measured_thread();
    if (!shared || is_idle(shared) || clock_kind == QUIPU_CLOCK_NONE || is_locked_here())
        return interval;
    if (!interval) {
        const Locked locked;
        interval = unused_intervals;
        if (interval)
            unused_intervals = interval->next;
        else if (!(interval = static_cast<quipu_interval *>(keep(sizeof *interval))))
            return nullptr;
    }
    const Thread *thread = own(shared);
    const uint32_t listed = thread->listed; /* a signal handler may add nodes */
    interval->thread = nullptr;
    if (!has_room(interval->seen, interval->seen_room, listed))
        return interval;
    for (uint32_t i = 0; i < listed; i++)
        interval->seen[i] = time_of(thread->list[i]);
    interval->nodes = listed;
    interval->thread = shared;
    return interval;
}

size_t quipu_interval_spent(struct quipu_interval *interval, const struct quipu_spent **spent) {
    using namespace quipu;
    if (!interval || !interval->thread || interval->thread != measured_thread() || is_locked_here())
        return 0;
    Thread *thread = own(interval->thread);
    const uint32_t listed = thread->listed;
    const uint64_t *paths = paths_of(thread, listed);
    if (!paths || !has_room(interval->seen, interval->seen_room, listed))
        return 0;
    for (; interval->nodes < listed; interval->nodes++)
        interval->seen[interval->nodes] = 0; /* node created since the begin */
    size_t count = 0;
    for (uint32_t i = 0; i < listed; i++) {
        Node *node = thread->list[i];
        const uint64_t time = time_of(node), before = interval->seen[i];
        if (time <= before || !is_charged(node)) /* less if the call path lost its time to a caller */
            continue;
        if (!has_room(interval->spent, interval->spent_room, count + 1))
            break;
        interval->spent[count++] = {node, paths[i], time - before};
    }
    *spent = interval->spent;
    return count;
}

void quipu_caused(const struct quipu_interval *interval, const struct quipu_node *operation,
                  const struct quipu_node *cause, uint64_t ticks) {
    using namespace quipu;
    if (!interval || !interval->thread || !operation || ticks == 0 || is_locked_here())
        return;
    const Locked locked;
    caused(own(interval->thread), operation, cause, ticks);
}

void quipu_end_interval(struct quipu_interval *interval) {
    using namespace quipu;
    if (!interval || is_locked_here())
        return;
    const Locked locked;
    interval->thread = nullptr;
    interval->next = unused_intervals;
    unused_intervals = interval;
}
}

// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <pthread.h>
#include <sys/mman.h>

namespace quipu {
namespace {

/* Largest number of frames. Deeper recursion uses the slow path. */
constexpr size_t depth = size_t{1} << 15;

/* State of a thread that is not measured. Most of it is address space until it is used. */
struct Idle {
    quipu_thread shared;
    Node node; /* always active */
    Link link; /* link from the node, for unregistered regions (id 0) */
    uint64_t visits;
    Idle *next; /* next unused state */
    Link *table[2 * QUIPU_TABLE_ENTRIES];
    uint64_t counters[QUIPU_MOST_COUNTERS];
    Frame frames[depth];
};

pthread_key_t key;
pthread_once_t once = PTHREAD_ONCE_INIT;
bool has_key;
uint64_t shared_counters[QUIPU_MOST_COUNTERS]; /* used if there is no memory */
__thread bool reserving;                       /* in take_idle(): mmap may be a function of the program with hooks */

/* Unused states. Not protected by the lock, which another thread may hold while this process forks. */
Idle *unused;

void give_back(Idle *idle) {
    idle->next = __atomic_load_n(&unused, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&unused, &idle->next, idle, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

/* Runs at the end of a thread. Slots (inlined.h) of the thread may still point to the link of this state. The memory
 * therefore stays allocated, and the next thread reuses it. */
void end(void *ended) {
    auto *idle = static_cast<Idle *>(ended);
    if (quipu_current == &idle->shared)
        make_current(nullptr);
    give_back(idle);
}

/* Returns an unused or a new state; null if there is no memory. */
Idle *take_idle() {
    Idle *const idle = __atomic_exchange_n(&unused, nullptr, __ATOMIC_ACQUIRE);
    for (Idle *other = idle ? idle->next : nullptr; other;) {
        Idle *const next = other->next;
        give_back(other);
        other = next;
    }
    return idle ? idle : static_cast<Idle *>(reserve(sizeof(Idle)));
}

void make_key() { has_key = pthread_key_create(&key, end) == 0; }

/* Returns the state of this thread; null if there is no memory. */
Idle *idle_state() {
    pthread_once(&once, make_key);
    if (!has_key)
        return nullptr;
    if (void *known = pthread_getspecific(key))
        return static_cast<Idle *>(known);
    if (reserving)
        return nullptr;
    reserving = true;
    Idle *idle = take_idle();
    if (idle && pthread_setspecific(key, idle) != 0) {
        end(idle);
        idle = nullptr;
    }
    reserving = false;
    return idle;
}

} // namespace

uint64_t *idle_counters() {
    Idle *idle = idle_state();
    return idle ? idle->counters : shared_counters;
}

void idle_thread() {
    Idle *idle = idle_state();
    if (!idle)
        return;
    idle->node.charged = &idle->node;
    idle->link = {&idle->node, 0, &idle->node, idle->counters, &idle->visits, nullptr};
    for (Link *&entry : idle->table)
        entry = &idle->link;
    idle->frames[0] = {idle->counters, &idle->node, &idle->node};
    quipu_thread &thread = idle->shared;
    thread.here = &idle->node;
    thread.top = idle->frames;
    thread.limit = idle->frames + depth - 1;
    thread.table = idle->table;
    thread.clock = QUIPU_CLOCK_NONE;
    make_current(&thread);
}

void end_idle(Frame *frame) {
    quipu_thread *thread = quipu_current;
    if (!thread || !is_idle(thread))
        return;
    Frame *const frames = reinterpret_cast<Idle *>(thread)->frames;
    if (frame >= frames && frame < thread->top)
        thread->top = frame;
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "tree.h"
#include "clock.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace quipu {
namespace {

Thread *threads;
pthread_key_t end_key;
bool has_end_key; /* otherwise ended threads keep their locations */
uint32_t locations;
uint32_t nodes;
quipu_profile_chunk *thread_records;
quipu_thread at_fork;          /* the state of the thread that forks */
__thread quipu_thread *forked; /* state of the thread that forked (keep_one_thread()) */
Link no_link;                  /* empty entry of a table: no node is its origin */

constexpr size_t counter_bytes = sizeof(uint64_t) * QUIPU_MOST_COUNTERS;
static_assert(counter_bytes + sizeof(quipu_profile_counters) <= chunk_room);

/* Runs at the end of a thread. Ends all active regions, and keeps the state for the next thread. */
void end_thread(void *state) {
    auto *thread = static_cast<Thread *>(state);
    if (!active)
        return;
    leave_contexts(thread);
    forget_annotations(thread);
    quipu_exit(thread->frames);
    end_sampling();
    const Locked locked;
    thread->shared->in_use = 0;
    make_current(nullptr);
}

/* Runs before main, so that the key has a low number, for which pthread_setspecific needs no malloc. */
__attribute__((constructor(150))) void make_key() { has_end_key = pthread_key_create(&end_key, end_thread) == 0; }

/* Returns the memory for as many frames as fit onto the stack of the thread. A call with a frame needs at least 32
 * bytes of stack (return address, frame, alignment to 16). If the size of stacks is unlimited, the memory has a
 * constant limit. */
size_t frame_bytes() {
    constexpr size_t most = size_t{64} << 20, smallest_call = 32;
    struct rlimit limit;
    size_t stack = thread_stack;
    if (!stack && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        stack = limit.rlim_cur;
    const size_t bytes = (stack / smallest_call * sizeof(Frame) + 4095) & ~size_t{4095};
    return stack && bytes < most ? bytes : most;
}

Frame *reserve_frames(size_t *bytes) {
    constexpr size_t smallest = size_t{64} << 10;
    for (*bytes = frame_bytes() + smallest; *bytes >= smallest; *bytes = *bytes / 2 & ~size_t{4095})
        if (void *memory = reserve(*bytes))
            return static_cast<Frame *>(memory);
    return nullptr;
}

/* Creates the state of a thread with a new location; null if there is no memory. Call under the lock. */
Thread *new_thread() {
    auto *thread = may_call_system() ? static_cast<Thread *>(keep(sizeof(Thread))) : nullptr;
    auto *shared =
        static_cast<quipu_thread *>(profile.room_for(thread_records, QUIPU_CHUNK_THREADS, 0, sizeof(quipu_thread)));
    size_t bytes = 0;
    Frame *frames = thread && shared ? reserve_frames(&bytes) : nullptr;
    if (frames) {
        thread->shared = shared;
        thread->frames = frames;
        shared->location = locations;
        shared->table = thread->table;
        shared->limit = frames + bytes / sizeof(Frame) - 1;
        thread->begun = ticks(clock_kind);
        thread->own_stack = {frames, shared->limit, false, nullptr};
        thread->stack = &thread->own_stack;
        shared->own = thread;
        for (Link *&entry : thread->table)
            entry = &no_link;
        /* Like all counters in the file, `nowhere` follows a record with their number (0), which copy_link() reads. */
        auto *record = static_cast<quipu_profile_counters *>(reserve(sizeof(quipu_profile_counters) + counter_bytes));
        thread->nowhere = record ? reinterpret_cast<uint64_t *>(record + 1) : nullptr;
        thread->root = thread->nowhere ? new_node(thread, nullptr, 0, 0) : nullptr;
    }
    if (!thread || !thread->root) {
        if (frames)
            munmap(frames, bytes);
        profile.note_lost();
        return nullptr;
    }
    profile.publish(thread_records, sizeof(quipu_thread));
    locations++;
    thread->next = threads;
    __atomic_store_n(&threads, thread, __ATOMIC_RELEASE);
    return thread;
}

Link *keep_link(Thread *thread, const Link &made) {
    auto *link = static_cast<Link *>(keep(sizeof(Link)));
    if (!link)
        return nullptr;
    *link = made;
    return thread->links.add(link) ? link : nullptr;
}

/* Creates a link from the active node. Call under the lock. */
Link *new_link(Thread *thread, Node *from, const quipu_region *region) {
    if (Link *known = thread->links.find(from, region->id))
        return known;
    if (!from->id) {
        const Link *inner = new_link(thread, from->up, region);
        if (!inner)
            return nullptr;
        Link link = *inner;
        link.from = from;
        if (region->hook != QUIPU_HOOKED || link.folded || link.visits == &thread->no_visits)
            link.to = from;
        return keep_link(thread, link);
    }
    /* A recursive call has no separate node. If the region is active, the link leads to its active node. */
    Node *target = region->hook == QUIPU_HOOKED ? from : nullptr;
    while (target && target->region != region->id)
        target = target->up;
    /* A filtered region has a node only for its counters. */
    const RegionRecord *record = region_of(region->id);
    if (!target && region->hook == QUIPU_LEFT_OUT && record && !record->rows && !record->scopes)
        return keep_link(thread, {from, region->id, from, thread->nowhere, &thread->no_visits, nullptr});
    if (!target && record && record->index)
        target = annotated_scope(thread, from, record);
    if (!target && record && record->index)
        target = scope_below(thread, from, record);
    if (!target && record && record->in_file)
        target = new_function_node(thread, from, record, region->counters);
    if (target)
        return keep_link(thread, {from, region->id, region->hook == QUIPU_HOOKED ? target : from, target->counters,
                                  &target->metrics[QUIPU_VISITS], nullptr});
    Folded *folded = folded_of(thread, region->id);
    if (!folded)
        return nullptr;
    profile.note_folded();
    return keep_link(thread, {from, region->id, from, folded->counters, &thread->no_visits, folded});
}

/* Creates a link to a copy of `path`. The parent of the copy is a copy of the parent of `path`. Call under the lock. */
Link *copy_link(Thread *thread, Node *up, const Node *path) {
    if (Link *known = thread->links.find(up, path->region))
        return known;
    const auto *counters = reinterpret_cast<const quipu_profile_counters *>(path->counters) - 1;
    const RegionRecord *region = region_of(path->region);
    Node *node = path->owner ? scope_below(thread, up, region) : nullptr;
    if (!node)
        node = new_function_node(thread, up, region, counters->count);
    if (!node) {
        profile.note_folded();
        return nullptr;
    }
    return keep_link(thread, {up, path->region, node, node->counters, &node->metrics[QUIPU_VISITS], nullptr});
}

/* Returns the active node of a thread that `path` started, outside of all regions. Call under the lock. */
Node *outside_of(Thread *thread, Node *path) {
    constexpr uint64_t nobody = ~uint64_t{0}; /* no region */
    if (const Link *known = thread->links.find(path, nobody))
        return known->to;
    auto *outside = static_cast<Node *>(keep(sizeof(Node)));
    if (!outside)
        return path;
    outside->up = path;
    outside->charged = outside;
    outside->salt = path->salt + QUIPU_TABLE_ENTRIES / 2;
    const Link *link = keep_link(thread, {path, nobody, outside, thread->nowhere, &thread->no_visits, nullptr});
    return link ? outside : path;
}

} // namespace

/* Adds a node to the nodes of the thread, if there is memory. Call under the lock. */
static void list_node(Thread *thread, Node *node) {
    if (thread->listed == thread->list_room) {
        const uint32_t room = thread->list_room ? 2 * thread->list_room : 64;
        auto **larger = static_cast<Node **>(keep(room * sizeof(Node *)));
        if (!larger)
            return;
        if (thread->listed)
            memcpy(static_cast<void *>(larger), static_cast<const void *>(thread->list),
                   thread->listed * sizeof(Node *));
        __atomic_store_n(&thread->list, larger, __ATOMIC_RELEASE);
        thread->list_room = room;
    }
    thread->list[thread->listed] = node;
    __atomic_store_n(&thread->listed, thread->listed + 1, __ATOMIC_RELEASE);
}

Node *new_node(Thread *thread, Node *up, uint64_t region, uint32_t count) {
    const size_t bytes = sizeof(quipu_profile_counters) + sizeof(uint64_t) * count;
    const uint32_t location = thread->shared->location;
    auto *node = static_cast<Node *>(profile.room_for(thread->nodes, QUIPU_CHUNK_NODES, location, node_size));
    auto *record = node && count ? static_cast<quipu_profile_counters *>(
                                       profile.room_for(thread->counters, QUIPU_CHUNK_COUNTERS, location, bytes))
                                 : nullptr;
    if (!node || (count && !record))
        return nullptr;
    node->id = ++nodes;
    node->parent = up ? up->id : 0;
    node->region = region;
    node->up = up;
    node->charged = node;
    node->salt = uint64_t{node->id} * 0x9e3779b97f4a7c15u >> 40;
    node->counters = count ? reinterpret_cast<uint64_t *>(record + 1) : thread->nowhere;
    profile.publish(thread->nodes, node_size);
    list_node(thread, node);
    if (count) {
        record->node = node->id;
        record->count = count;
        profile.publish(thread->counters, bytes);
    }
    return node;
}

/* Returns an unused thread, or a new one. Call under the lock. */
static Thread *take_thread() {
    /* Selects the lowest free location, so that short threads share few locations. */
    Thread *thread = nullptr;
    for (Thread *other = threads; other; other = other->next)
        if (!other->shared->in_use && (!thread || other->shared->location < thread->shared->location))
            thread = other;
    if (!thread)
        thread = new_thread();
    if (thread) {
        thread->shared->in_use = 1;
        put(thread->frames->node, thread->root);
        thread->frames->back = thread->root;
        thread->frames->counters = thread->nowhere;
        put(thread->shared->top, thread->frames);
        put(thread->shared->here, thread->root);
        thread->shared->clock = clock_kind;
        put(thread->shared->last, ticks(clock_kind));
    }
    return thread;
}

/* Returns the state of the thread that forked, if it is this thread, which continues in the child. Call under the lock.
 */
static Thread *take_forked() {
    quipu_thread *left = forked;
    forked = nullptr;
    if (left)
        put(left->last, ticks(clock_kind));
    return left ? own(left) : nullptr;
}

quipu_thread *begin_thread() {
    if (is_locked_here() || !open_profile())
        return nullptr;
    Thread *thread;
    bool goes_on;
    {
        const Locked locked;
        if (quipu_current && !ranks) /* a signal handler created it */
            return quipu_current;
        thread = take_forked();
        goes_on = thread;
        if (!thread)
            thread = take_thread();
        if (thread && !ranks)
            make_current(thread->shared);
    }
    if (!thread)
        return nullptr;
    if (thread_origin && !ranks && !goes_on) {
        Node *path = copy_path(thread->shared, thread_origin);
        const Locked locked;
        put(thread->frames->node, outside_of(thread, path));
        thread->frames->back = thread->frames->node;
        put(thread->shared->here, thread->frames->node);
    }
    if (!ranks && has_end_key && !goes_on)
        pthread_setspecific(end_key, thread);
    begin_sampling();
    return thread->shared;
}

quipu_thread *running_rank() {
    void **place = ranks->running();
    if (!place)
        return nullptr;
    if (!*place)
        *place = begin_thread();
    return static_cast<quipu_thread *>(*place);
}

Node *current_path() {
    const quipu_thread *thread = quipu_current || !forked ? quipu_current : begin_thread();
    return thread ? counted(thread->here) : thread_origin;
}

quipu_thread *measured_thread() { return ranks ? running_rank() : quipu_current; }

bool make_known(quipu_region *region) {
    if (id_of(region) != 0)
        return true;
    if (is_locked_here())
        return false;
    const Locked locked;
    if (id_of(region) == 0) {
        const uint64_t begun = may_call_system() ? processor_time() : 0;
        register_region(region);
        if (profile.header)
            profile.header->setup_ns += processor_time_since(begun);
    }
    return true;
}

Link *find_link(quipu_thread *shared, quipu_region *region) {
    Thread *thread = own(shared);
    Node *from = shared->here;
    /* Registering the first region takes longest, because of system calls and first accesses to memory. Outside of all
     * regions, as before main, this time does not count. */
    const bool outside = from == thread->root && id_of(region) == 0;
    if (outside)
        charge_any_time(shared);
    if (!make_known(region))
        return nullptr;
    Link *link = thread->links.find(from, id_of(region));
    if (!link && !is_locked_here()) {
        const Locked locked;
        if (!(link = new_link(thread, from, region)))
            profile.note_lost();
    }
    if (link && !link->folded)
        shared->table[QUIPU_TABLE_INDEX(from->salt, hash_of(region))] = link;
    if (outside)
        put(shared->last, ticks(clock_kind));
    return link;
}

Node *copy_path(quipu_thread *shared, Node *path) {
    Thread *thread = own(shared);
    if (!path->up)
        return thread->root;
    Thread::Copy &known = thread->copies[path->salt % (sizeof thread->copies / sizeof *thread->copies)];
    if (known.of == path)
        return known.node;
    Node *up = copy_path(shared, path->up);
    const Link *link = thread->links.find(up, path->region);
    if (!link && !is_locked_here()) {
        const Locked locked;
        link = copy_link(thread, up, path);
    }
    if (!link || link->folded)
        return up;
    known = {path, link->to};
    return link->to;
}

void charge_any_time(quipu_thread *thread) {
    uint64_t *place = &get(get(thread->here)->charged)->metrics[QUIPU_TIME];
    const uint64_t now = ticks(clock_kind), last = get(thread->last), time = get(*place);
    put(*place, now >= last || time >= last - now ? time + (now - last) : 0);
    put(thread->last, now);
}

void settle(quipu_thread *thread) {
    /* Outside of all regions no time is recorded. For a rank that does not run, time was recorded until its last call
     * of MPI. */
    if (!is_outside(thread) && (!ranks || thread == running_rank()))
        charge_any_time(thread);
    settle_folded(own(thread));
}

void for_each_thread(void (*visit)(quipu_thread *)) {
    for (Thread *thread = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); thread; thread = thread->next)
        visit(thread->shared);
}

QUIPU_BARE void note_this_thread() {
    if (quipu_current)
        at_fork = *quipu_current;
}

QUIPU_BARE void keep_one_thread() {
    for (Thread *thread = threads; thread; thread = thread->next) {
        if (thread->shared !=
            quipu_current) { /* it continues in the parent only, and may have entered nodes that are not in the copy */
            put(thread->shared->top, thread->frames);
            put(thread->shared->here, thread->root);
            thread->shared->in_use = 0;
            forget_annotations(thread);
            memset(thread->copies, 0, sizeof thread->copies); /* the thread may have been writing one of the copies */
        }
        for (Folded *folded = thread->folded; folded; folded = folded->next)
            memset(folded->counters, 0, sizeof(uint64_t) * folded->region->rows);
    }
    if (quipu_current) {
        forked = quipu_current;
        *forked = at_fork;
    }
    make_current(nullptr);
}

} // namespace quipu

#include "tree.h"
#include "clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace quipu {
namespace {

Thread *threads;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t end_key;
pthread_once_t key_once = PTHREAD_ONCE_INIT;
uint32_t locations;
uint32_t nodes;
quipu_profile_chunk *thread_records;
quipu_thread *forked; /* see keep_one_thread() */
Link no_link;         /* leads from nowhere */

/* Address space for frames is reserved, memory is used as the stack grows. */
constexpr size_t frame_bytes = size_t{256} << 20;
constexpr size_t frame_bytes_small = size_t{4} << 20;
constexpr size_t counter_bytes = sizeof(uint64_t) * QUIPU_MOST_COUNTERS;
static_assert(counter_bytes + sizeof(quipu_profile_counters) <= chunk_room);

/* Counters in the file for a node; null if there is no room. */
uint64_t *new_counters(Thread *thread, const Node *node, uint32_t count) {
    size_t bytes = sizeof(quipu_profile_counters) + sizeof(uint64_t) * count;
    auto *record = static_cast<quipu_profile_counters *>(
        profile.room_for(thread->counters, QUIPU_CHUNK_COUNTERS, thread->shared->location, bytes));
    if (!record)
        return nullptr;
    record->node = node->id;
    record->count = count;
    profile.publish(thread->counters, bytes);
    return reinterpret_cast<uint64_t *>(record + 1);
}

/* The lock, in a thread whose signal handlers must not wait for it. */
class Slow {
  public:
    explicit Slow(Thread *of) : thread(of) {
        thread->busy = true;
        lock();
    }
    ~Slow() {
        unlock();
        thread->busy = false;
    }
    Slow(const Slow &) = delete;
    Slow &operator=(const Slow &) = delete;

  private:
    Thread *thread;
};

/* Runs when a thread ends: what is still active ends now, the state waits for the next thread. */
void end_thread(void *state) {
    auto *thread = static_cast<Thread *>(state);
    if (!active)
        return;
    quipu_exit(thread->frames);
    const Locked locked;
    thread->shared->in_use = 0;
    quipu_current = nullptr;
}

void make_key() { pthread_key_create(&end_key, end_thread); }

Frame *reserve_frames(size_t *bytes) {
    for (*bytes = frame_bytes; *bytes >= frame_bytes_small; *bytes /= 8)
        if (void *memory = reserve(*bytes))
            return static_cast<Frame *>(memory);
    return nullptr;
}

/* Under the lock. */
Thread *new_thread() {
    auto *thread = static_cast<Thread *>(calloc(1, sizeof(Thread)));
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
        shared->own = thread;
        for (Link *&entry : thread->table)
            entry = &no_link;
        /* A record of no counters, and where they would follow. */
        auto *record = static_cast<quipu_profile_counters *>(reserve(sizeof(quipu_profile_counters) + counter_bytes));
        thread->nowhere = record ? reinterpret_cast<uint64_t *>(record + 1) : nullptr;
        thread->root = thread->nowhere ? new_node(thread, nullptr, 0) : nullptr;
    }
    if (!thread || !thread->root) {
        if (frames)
            munmap(frames, bytes);
        free(thread);
        profile.note_lost();
        return nullptr;
    }
    profile.publish(thread_records, sizeof(quipu_thread));
    locations++;
    thread->next = threads;
    __atomic_store_n(&threads, thread, __ATOMIC_RELEASE);
    return thread;
}

/* Makes a link from the active node. Under the lock. */
Link *new_link(Thread *thread, Node *from, const quipu_region *region) {
    auto *link = static_cast<Link *>(keep(sizeof(Link)));
    if (!link)
        return nullptr;
    if (!from->id) {
        const Link *inner = link_to(from->up, region->id);
        if (!inner && !(inner = new_link(thread, from->up, region)))
            return nullptr;
        *link = *inner;
        link->from = from;
        link->next = from->links;
        if (region->hook != QUIPU_HOOKED || link->visits == &thread->no_visits)
            link->to = from;
        from->links = link;
        return link;
    }
    *link = {from, region->id, from, thread->nowhere, &thread->no_visits, from->links};
    /* A region that is active already leads back to its node: recursion folds. */
    Node *target = region->hook == QUIPU_HOOKED ? from : nullptr;
    while (target && target->region != region->id)
        target = target->up;
    const bool fresh = !target;
    /* A region that was left out has a place of its own only for its counters. */
    const bool wanted =
        region->id != no_room && (region->hook != QUIPU_LEFT_OUT || region->weights || region->scope_count);
    if (fresh && wanted)
        target = new_node(thread, from, region->id);
    uint64_t *counters = thread->nowhere;
    if (target && region->counters) {
        counters = fresh ? new_counters(thread, target, region->counters) : target->counters;
    }
    if (target && counters) {
        target->counters = counters;
        if (fresh)
            add_scopes(thread, target);
        link->to = region->hook == QUIPU_HOOKED ? target : from;
        link->counters = counters;
        link->visits = &target->metrics[QUIPU_VISITS];
    } else if (wanted) {
        profile.note_lost();
    }
    from->links = link;
    return link;
}

/* Makes a link to a copy of `path`, whose parent is a copy of the parent of that. Under the lock. */
Link *copy_link(Thread *thread, Node *up, const Node *path) {
    const auto *record = reinterpret_cast<const quipu_profile_counters *>(path->counters) - 1;
    const uint32_t count = path->counters && !path->owner ? record->count : 0;
    auto *link = static_cast<Link *>(keep(sizeof(Link)));
    Node *node = link ? new_node(thread, up, path->region) : nullptr;
    uint64_t *counters = node && count ? new_counters(thread, node, count) : thread->nowhere;
    if (!node || !counters) {
        profile.note_lost();
        return nullptr;
    }
    node->counters = counters;
    if (!path->owner)
        add_scopes(thread, node);
    *link = {up, path->region, node, counters, &node->metrics[QUIPU_VISITS], up->links};
    up->links = link;
    return link;
}

/* What is active in a thread that `path` started, outside of all regions. Under the lock. */
Node *outside_of(Node *path) {
    if (!path->outside) {
        auto *outside = static_cast<Node *>(keep(sizeof(Node)));
        if (!outside)
            return path;
        outside->up = path;
        outside->salt = path->salt + QUIPU_TABLE_ENTRIES / 2;
        path->outside = outside;
    }
    return path->outside;
}

} // namespace

Node *new_node(Thread *thread, Node *up, uint64_t region) {
    auto *node =
        static_cast<Node *>(profile.room_for(thread->nodes, QUIPU_CHUNK_NODES, thread->shared->location, sizeof(Node)));
    if (!node)
        return nullptr;
    node->id = ++nodes;
    node->parent = up ? up->id : 0;
    node->region = region;
    node->up = up;
    node->salt = uint64_t{node->id} * 0x9e3779b97f4a7c15u >> 40;
    profile.publish(thread->nodes, sizeof(Node));
    return node;
}

Link *link_to(const Node *from, uint64_t region) {
    Link *link = from->links;
    while (link && link->region != region)
        link = link->next;
    return link;
}

void *reserve(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void *keep(size_t bytes) {
    constexpr size_t block = size_t{256} << 10;
    static char *at, *end;
    bytes = (bytes + 15) & ~size_t{15};
    if (static_cast<size_t>(end - at) < bytes) {
        const size_t size = bytes > block ? bytes : block;
        auto *fresh = static_cast<char *>(reserve(size));
        if (!fresh)
            return nullptr;
        at = fresh;
        end = fresh + size;
    }
    void *memory = at;
    at += bytes;
    return memory;
}

QUIPU_BARE void lock() { pthread_mutex_lock(&mutex); }
QUIPU_BARE void unlock() { pthread_mutex_unlock(&mutex); }

/* A thread that nobody uses, or a new one. Under the lock. */
static Thread *take_thread() {
    /* The lowest location that is free: threads that come and go share few locations. */
    Thread *thread = nullptr;
    for (Thread *other = threads; other; other = other->next)
        if (!other->shared->in_use && (!thread || other->shared->location < thread->shared->location))
            thread = other;
    if (!thread)
        thread = new_thread();
    if (thread) {
        thread->shared->in_use = 1;
        put(thread->frames->node, thread->root);
        thread->frames->counters = thread->nowhere;
        put(thread->shared->top, thread->frames);
        put(thread->shared->here, thread->root);
        thread->shared->clock = clock_kind;
        put(thread->shared->last, ticks(clock_kind));
    }
    return thread;
}

quipu_thread *begin_thread() {
    if (!open_profile())
        return nullptr;
    pthread_once(&key_once, make_key);
    Thread *thread;
    {
        const Locked locked;
        if (quipu_thread *left = forked) {
            forked = nullptr;
            put(left->last, ticks(clock_kind));
            return left;
        }
        thread = take_thread();
    }
    if (!thread)
        return nullptr;
    if (thread_origin && !ranks) {
        Node *path = copy_path(thread->shared, thread_origin);
        const Locked locked;
        put(thread->frames->node, outside_of(path));
        put(thread->shared->here, thread->frames->node);
    }
    if (!ranks)
        pthread_setspecific(end_key, thread);
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

quipu_thread *measured_thread() { return ranks ? running_rank() : quipu_current; }

Link *find_link(quipu_thread *shared, quipu_region *region) {
    Thread *thread = own(shared);
    Node *from = shared->here;
    if (id_of(region) == 0) {
        if (thread->busy)
            return nullptr;
        const Slow slow(thread);
        if (id_of(region) == 0)
            register_region(region);
    }
    Link *link = link_to(from, id_of(region));
    if (!link && !thread->busy) {
        const Slow slow(thread);
        link = new_link(thread, from, region);
    }
    if (link)
        shared->table[QUIPU_TABLE_INDEX(from->salt, hash_of(region))] = link;
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
    const Link *link = link_to(up, path->region);
    if (!link && thread->busy)
        return up;
    if (!link) {
        const Slow slow(thread);
        link = copy_link(thread, up, path);
    }
    if (!link)
        return up;
    known = {path, link->to};
    return link->to;
}

void charge_any_time(quipu_thread *thread) {
    uint64_t *place = &get(thread->here)->metrics[QUIPU_TIME];
    const uint64_t now = ticks(clock_kind), last = get(thread->last), time = get(*place);
    put(*place, now >= last || time >= last - now ? time + (now - last) : 0);
    put(thread->last, now);
}

void settle(quipu_thread *thread) {
    /* Outside of all regions no time is kept. The time of a rank that does not run is not known; it was kept until its
     * last call of MPI. */
    if (get(thread->top) > own(thread)->frames && (!ranks || thread == running_rank()))
        charge_any_time(thread);
}

void for_each_thread(void (*visit)(quipu_thread *)) {
    for (Thread *thread = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); thread; thread = thread->next)
        visit(thread->shared);
}

QUIPU_BARE void keep_one_thread() {
    for (Thread *thread = threads; thread; thread = thread->next)
        if (thread->shared != quipu_current)
            thread->shared->in_use = 0;
    if (quipu_current)
        forked = quipu_current;
    quipu_current = nullptr;
}

} // namespace quipu

#include "tree.h"
#include "clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace quipu {
namespace {

Thread *threads;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t end_key;
pthread_once_t end_key_once = PTHREAD_ONCE_INIT;
uint32_t locations;
uint32_t nodes;
Link no_link = {no_region, nullptr, nullptr, false};

/* Address space for frames is reserved, memory is used as the stack grows. */
constexpr size_t frame_bytes = size_t{256} << 20;
constexpr size_t frame_bytes_small = size_t{4} << 20;

Node *new_node(Thread *thread, Node *up, uint64_t region) {
    constexpr uint32_t room = chunk_size - sizeof(quipu_profile_chunk);
    if (!thread->chunk || thread->chunk->used + sizeof(Node) > room) {
        quipu_profile_chunk *chunk = profile.add_chunk(QUIPU_CHUNK_NODES, thread->location);
        if (!chunk)
            return nullptr;
        thread->chunk = chunk;
    }
    auto *node = reinterpret_cast<Node *>(reinterpret_cast<char *>(thread->chunk + 1) + thread->chunk->used);
    node->id = ++nodes;
    node->parent = up ? up->id : 0;
    node->region = region;
    node->up = up;
    node->latest = &no_link;
    __atomic_store_n(&thread->chunk->used, thread->chunk->used + static_cast<uint32_t>(sizeof(Node)), __ATOMIC_RELEASE);
    return node;
}

Frame *reserve_frames(size_t *bytes) {
    for (*bytes = frame_bytes; *bytes >= frame_bytes_small; *bytes /= 8) {
        void *memory =
            mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory != MAP_FAILED)
            return static_cast<Frame *>(memory);
    }
    return nullptr;
}

/* Runs when a thread ends: what is still active ends now, the state waits for the next thread. */
void end_thread(void *state) {
    auto *thread = static_cast<Thread *>(state);
    if (!active)
        return;
    quipu_exit(thread->frames);
    lock();
    thread->in_use = false;
    unlock();
}

void make_end_key() { pthread_key_create(&end_key, end_thread); }

Thread *new_thread() {
    auto *thread = static_cast<Thread *>(calloc(1, sizeof(Thread)));
    if (!thread)
        return nullptr;
    size_t bytes;
    thread->frames = reserve_frames(&bytes);
    thread->location = locations;
    thread->root = thread->frames ? new_node(thread, nullptr, 0) : nullptr;
    if (!thread->root) {
        if (thread->frames)
            munmap(thread->frames, bytes);
        free(thread);
        profile.note_lost();
        return nullptr;
    }
    locations++;
    thread->limit = thread->frames + bytes / sizeof(Frame) - 1;
    thread->next = threads;
    __atomic_store_n(&threads, thread, __ATOMIC_RELEASE);
    return thread;
}

} // namespace

void lock() { pthread_mutex_lock(&mutex); }
void unlock() { pthread_mutex_unlock(&mutex); }

Thread *begin_thread() {
    if (!open_profile())
        return nullptr;
    pthread_once(&end_key_once, make_end_key);
    lock();
    /* The lowest location that is free: threads that come and go share few locations. */
    Thread *thread = nullptr;
    for (Thread *other = threads; other; other = other->next)
        if (!other->in_use && (!thread || other->location < thread->location))
            thread = other;
    if (!thread)
        thread = new_thread();
    if (thread) {
        thread->in_use = true;
        thread->top = thread->frames;
        thread->top->node = thread->root;
        thread->last = ticks(clock_kind);
    }
    unlock();
    if (thread && !ranks)
        pthread_setspecific(end_key, thread);
    return thread;
}

Thread *running_rank() {
    void **place = ranks->running();
    if (!place)
        return nullptr;
    if (!*place)
        *place = begin_thread();
    return static_cast<Thread *>(*place);
}

Link *find_link(Thread *thread, Node *node, quipu_region *region) {
    for (Link *link = node->links; link; link = link->next)
        if (link->region == region->id)
            return node->latest = link;
    if (thread->busy)
        return nullptr;
    thread->busy = true;
    lock();
    if (region->id == 0) {
        register_region(region);
        unlock();
        thread->busy = false;
        /* Another descriptor of the same region may have its link here already. */
        return region->id == left_out ? nullptr : find_link(thread, node, region);
    }
    auto *link = static_cast<Link *>(malloc(sizeof(Link)));
    if (link) {
        Node *target = node;
        while (target && target->region != region->id)
            target = target->up;
        bool counts = true;
        if (!target && !(target = new_node(thread, node, region->id))) {
            profile.note_lost();
            counts = false;
            target = node;
        }
        *link = {region->id, target, node->links, counts};
        node->links = link;
        node->latest = link;
    }
    unlock();
    thread->busy = false;
    return link;
}

Thread *measured_thread() {
    if (ranks)
        return running_rank();
    pthread_once(&end_key_once, make_end_key);
    return static_cast<Thread *>(pthread_getspecific(end_key));
}

void charge_any_time(Thread *thread, Node *node) {
    uint64_t now = ticks(clock_kind), *time = &node->metrics[QUIPU_TIME];
    *time = now >= thread->last || *time >= thread->last - now ? *time + (now - thread->last) : 0;
    thread->last = now;
}

void settle(Thread *thread) {
    for (Frame *frame = thread->frames; frame <= thread->top; frame++) {
        uint64_t blocks = frame->blocks;
        frame->node->metrics[QUIPU_BLOCKS] += blocks - frame->flushed;
        frame->flushed = blocks;
    }
    /* The time of a rank that does not run is not known; it was kept until its last call of MPI. */
    if (thread->top > thread->frames && (!ranks || thread == running_rank()))
        charge_any_time(thread, thread->top->node);
}

void for_each_thread(void (*visit)(Thread *)) {
    for (Thread *thread = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); thread; thread = thread->next)
        visit(thread);
}

} // namespace quipu

/* The hot path: enter, exit, add. */
#include "clock.h"
#include "tree.h"

using namespace quipu;

namespace {

thread_local Thread *current;
/* Where blocks go that are not measured: written to, never read. Its node is null. */
thread_local quipu_frame idle;

__attribute__((noinline)) Thread *begin() {
    if (!active)
        return nullptr;
    return ranks ? running_rank() : current = begin_thread();
}

inline Thread *this_thread() {
    Thread *thread = current;
    return __builtin_expect(thread != nullptr, 1) ? thread : begin();
}

/* The thread that has entered something; only ranks of a shared process are not found by their thread. */
inline Thread *entered_thread() {
    Thread *thread = current;
    return __builtin_expect(!thread && ranks, 0) ? this_thread() : thread;
}

inline void charge_time(Thread *thread, Node *node) {
    if (__builtin_expect(clock_kind != QUIPU_CLOCK_TSC, 0))
        return charge_any_time(thread, node);
    uint64_t now = cycle_counter();
    node->metrics[QUIPU_TIME] += now - thread->last;
    thread->last = now;
}

/* At a time that was read before; a signal handler may have been measured since. */
inline void charge_time_until(Thread *thread, Node *node, uint64_t now) {
    if (!now || clock_kind == simulated_clock)
        return charge_time(thread, node);
    if (now > thread->last) {
        node->metrics[QUIPU_TIME] += now - thread->last;
        thread->last = now;
    }
}

/* Blocks of the frame since the latest flush. */
inline void charge_blocks(const Frame *frame) { frame->node->metrics[QUIPU_BLOCKS] += frame->blocks - frame->flushed; }

/* Ends frames above `frame`: their code never returned here. */
__attribute__((noinline)) void unwind_to(Thread *thread, Frame *frame) {
    charge_time(thread, thread->top->node);
    for (; thread->top > frame; thread->top--)
        charge_blocks(thread->top);
}

bool belongs(const Thread *thread, const Frame *frame) { return frame >= thread->frames && frame <= thread->top; }

inline quipu_frame *push(Thread *thread, Node *node) {
    Frame *frame = thread->top + 1;
    frame->blocks = 0;
    frame->node = node;
    frame->entered = thread->last;
    frame->flushed = 0;
    thread->top = frame;
    return frame;
}

/* Regions that are entered for the first time from here, left out by the filter, or in no thread that is measured. */
__attribute__((noinline)) quipu_frame *enter_slowly(quipu_region *region) {
    Thread *thread = this_thread();
    if (!thread)
        return &idle;
    if (thread->top == thread->limit) {
        profile.note_lost();
        return &idle;
    }
    Node *node = thread->top->node;
    Link *link = nullptr;
    if (region->id != left_out)
        link = region->id != 0 && node->latest->region == region->id ? node->latest : find_link(thread, node, region);
    if (link) {
        charge_time(thread, node);
        link->target->metrics[QUIPU_VISITS] += link->counts;
        return push(thread, link->target);
    }
    /* A region that the filter leaves out has a frame too, so that its blocks go to its caller. */
    return region->id == left_out ? push(thread, node) : &idle;
}

/* Frames that are not the innermost one, or of no thread. */
__attribute__((noinline)) void exit_slowly(Frame *frame, uint64_t now) {
    Thread *thread = entered_thread();
    if (!thread || frame == &idle || !belongs(thread, frame))
        return;
    if (thread->top != frame)
        unwind_to(thread, frame);
    if (frame == thread->frames)
        return; /* the root stays */
    charge_blocks(frame);
    if (frame->node != (frame - 1)->node)
        charge_time_until(thread, frame->node, now);
    thread->top = frame - 1;
}

inline void exit_frame(Frame *frame, uint64_t now) {
    Thread *thread = current;
    if (__builtin_expect(!thread || frame != thread->top || frame == thread->frames, 0))
        return exit_slowly(frame, now);
    charge_blocks(frame);
    if (frame->node != (frame - 1)->node)
        charge_time_until(thread, frame->node, now);
    thread->top = frame - 1;
}

} // namespace

void quipu::forget_thread() { current = nullptr; }

extern "C" {

struct quipu_frame *quipu_enter(struct quipu_region *region) {
    Thread *thread = current;
    if (__builtin_expect(!thread, 0))
        return enter_slowly(region);
    Node *node = thread->top->node;
    Link *link = node->latest;
    if (__builtin_expect(link->region != region->id || thread->top == thread->limit, 0))
        return enter_slowly(region);
    charge_time(thread, node);
    link->target->metrics[QUIPU_VISITS] += link->counts;
    return push(thread, link->target);
}

void quipu_exit(struct quipu_frame *ended) { exit_frame(static_cast<Frame *>(ended), 0); }

void quipu_exit_at(struct quipu_frame *ended, uint64_t ticks) { exit_frame(static_cast<Frame *>(ended), ticks); }

void quipu_unwind(struct quipu_frame *reached) {
    Thread *thread = entered_thread();
    auto *frame = static_cast<Frame *>(reached);
    if (thread && reached != &idle && belongs(thread, frame) && thread->top != frame)
        unwind_to(thread, frame);
}

struct quipu_frame *quipu_top(void) {
    Thread *thread = this_thread();
    return thread ? static_cast<quipu_frame *>(thread->top) : &idle;
}

void quipu_blocks(uint64_t blocks) {
    if (Thread *thread = this_thread())
        thread->top->node->metrics[QUIPU_BLOCKS] += blocks;
}

int quipu_active(void) { return active; }

uint64_t quipu_ticks(void) { return this_thread() ? ticks(clock_kind) : 0; }

struct quipu_node *quipu_here(void) {
    Thread *thread = this_thread();
    return thread ? thread->top->node : nullptr;
}

void quipu_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (node && active)
        __atomic_fetch_add(&node->metrics[metric], value, __ATOMIC_RELAXED);
}

void quipu_max(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (!node || !active)
        return;
    uint64_t *slot = &node->metrics[metric];
    uint64_t old = __atomic_load_n(slot, __ATOMIC_RELAXED);
    while (value > old && !__atomic_compare_exchange_n(slot, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
}

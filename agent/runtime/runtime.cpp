// SPDX-License-Identifier: Apache-2.0
/* Enters, exits and counts visits in the cases that inline hooks do not handle, and for code without inline hooks. */
#include "annotations.h"
#include "budget.h"
#include "clock.h"
#include "computation.h"
#include "hot.h"
#include "missed.h"
#include "teams.h"
#include "tree.h"

using namespace quipu;

__thread quipu_thread *quipu_current;
static Node nobody = {0, 0, 0, nullptr, 0, nullptr, nullptr, &nobody, 0, {}};              /* no link begins here */
static quipu_thread no_thread = {0, 0, &nobody, 0, nullptr, nullptr, nullptr, 0, nullptr}; /* a state without frames */
__thread Node *const *quipu_active_node = &no_thread.here;
__thread Node *quipu::thread_origin;
__thread size_t quipu::thread_stack;

static quipu_program *programs;

static void set_active_node(Node *const *place) {
    __atomic_store_n(&quipu_active_node, place, __ATOMIC_RELAXED);
    for (const quipu_program *program = programs; program; program = program->next)
        __atomic_store_n(program->active_node(), place, __ATOMIC_RELAXED);
}

void quipu::make_current(quipu_thread *thread) {
    /* Inline code uses the state of the thread only if it finds a link from the active node. The active node is
     * therefore reset before, and set after, quipu_current. */
    if (!thread)
        set_active_node(&no_thread.here);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    put(quipu_current, thread);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (thread)
        set_active_node(&thread->here);
}

void quipu::set_measuring(bool value) {
    __atomic_store_n(&quipu_measuring, value, __ATOMIC_RELAXED);
    for (const quipu_program *program = programs; program; program = program->next)
        __atomic_store_n(program->measuring, value, __ATOMIC_RELAXED);
}

void quipu_know_program(quipu_program *program) {
    program->next = programs;
    programs = program;
    set_measuring(quipu_measuring);
    set_active_node(quipu_active_node);
}

namespace {

/* Result of quipu_count_slowly if there is no other link to return: for a folded region (folding.cpp), or while nothing
 * is measured. */
thread_local Link without_link;
thread_local uint64_t visits_of_nobody;

/* The frame of code that is not measured. Its counters are written and never read. */
thread_local Frame idle;

inline quipu_thread *this_thread() {
    quipu_thread *thread = quipu_current;
    if (__builtin_expect(thread != nullptr, 1))
        return is_idle(thread) ? nullptr : thread;
    if (!active) {
        if (decided && !ranks)
            idle_thread();
        return nullptr;
    }
    return ranks ? running_rank() : begin_thread();
}

inline void charge_time(quipu_thread *thread) {
    if (__builtin_expect(clock_kind != QUIPU_CLOCK_TSC, 0))
        return charge_any_time(thread);
    quipu_charge(thread, quipu_cycles());
}

inline Link *follow(quipu_thread *thread, quipu_region *region) {
    Link *link = quipu_known_link(thread, region);
    return link ? link : find_link(thread, region);
}

__attribute__((noinline)) Frame *idle_frame() {
    if (!idle.counters)
        idle.counters = idle_counters();
    return &idle;
}

/* Ends the frames above `frame`, because their code did not return (longjmp, exception). */
__attribute__((noinline)) void unwind_to(quipu_thread *thread, Frame *frame) {
    charge_time(thread);
    if (own(thread)->folded)
        end_folded(own(thread), frame + 1);
    quipu_activate(thread, frame, frame->node);
}

inline bool has_marks(quipu_thread *thread) {
    const Annotations *all = own(thread)->annotations;
    return all && all->count;
}

bool belongs(quipu_thread *thread, const Frame *frame) { return frame >= own(thread)->frames && frame <= thread->top; }

} // namespace

extern "C" {

struct quipu_frame *quipu_enter(struct quipu_region *region) {
    quipu_thread *thread = this_thread();
    if (__builtin_expect(!thread, 0))
        return idle_frame();
    if (__builtin_expect(ranks != nullptr, 0))
        enter_construct(thread, region);
    Link *link = follow(thread, region);
    const bool folds = link && link->folded;
    if (__builtin_expect(!link || thread->top == thread->limit || folds, 0)) {
        Frame *frame = folds ? enter_folded(thread, link) : nullptr;
        if (link && !frame)
            profile.note_lost();
        return frame ? frame : idle_frame();
    }
    if (is_to_be_reviewed(link->to))
        review(thread, link->to);
    if (!quipu_charged_alike(link->to, thread->here))
        charge_time(thread);
    if (__builtin_expect(by_effort, 0))
        note_visit(thread, link);
    return quipu_push_link(thread, link);
}

uint64_t **quipu_enter_slowly(struct quipu_region *region, uint64_t *slot, struct quipu_visit *visit) {
    quipu_thread *thread = this_thread();
    const Link *link = thread && !ranks && !by_effort ? follow(thread, region) : nullptr;
    if (!thread || (link && !link->folded && quipu_needs_no_clock(thread, link)))
        if (uint64_t **known = quipu_enter_known(region, slot, visit)) /* this_thread() may have made the thread idle */
            return known;
    Frame *frame = quipu_enter(region);
    visit->top = reinterpret_cast<uint64_t>(frame) | QUIPU_FRAMED;
    return &frame->counters;
}

void quipu_exit(struct quipu_frame *frame) {
    quipu_thread *thread = frame == &idle ? nullptr : this_thread();
    if (__builtin_expect(!thread || !belongs(thread, frame), 0))
        return end_idle(frame - 1);
    const bool cuts = thread->top != frame;
    if (__builtin_expect(cuts, 0)) {
        if (own(thread)->folded)
            end_folded(own(thread), frame);
        unwind_to(thread, frame);
    }
    if (frame == own(thread)->frames) { /* the root stays */
        if (thread->here != frame->node)
            unwind_to(thread, frame);
        return;
    }
    if (__builtin_expect(ranks != nullptr, 0))
        frame = with_construct(frame);
    Node *back = frame->back, *ended = frame->node;
    if (!quipu_charged_alike(back, thread->here))
        charge_time(thread);
    quipu_activate(thread, frame - 1, back);
    if (__builtin_expect(has_marks(thread), 0))
        after_end(thread, frame, ended, cuts);
}

/* Returns the frame of a visit, or the innermost frame at the begin of the visit. */
static Frame *top_of(const struct quipu_visit *visit) {
    return __builtin_bit_cast(Frame *, visit->top & ~uint64_t{QUIPU_FRAMED});
}

void quipu_exit_visit(struct quipu_visit *visit) {
    Frame *top = top_of(visit);
    if (visit->top & QUIPU_FRAMED)
        return quipu_exit(top);
    quipu_thread *thread = this_thread();
    if (!thread || !belongs(thread, top))
        return;
    const bool cuts = thread->top != top;
    charge_time(thread);
    if (cuts && own(thread)->folded)
        end_folded(own(thread), top + 1);
    quipu_activate(thread, top, has_marks(thread) ? going_on(thread, top, visit->back) : visit->back);
    if (has_marks(thread))
        after_end(thread, top + 1, nullptr, cuts);
}

void quipu_unwind_visit(struct quipu_visit *visit) {
    Frame *top = top_of(visit);
    if (visit->top & QUIPU_FRAMED)
        return quipu_unwind(top);
    quipu_thread *thread = this_thread();
    if (!thread || !belongs(thread, top) || (thread->top == top && thread->here == visit->here))
        return;
    charge_time(thread);
    const bool cuts = thread->top != top;
    if (cuts && own(thread)->folded)
        end_folded(own(thread), top + 1);
    quipu_activate(thread, top, visit->here);
    if (cuts && has_marks(thread))
        reopen(thread, top + 1, nullptr);
}

struct quipu_frame *quipu_attach(struct quipu_node *path) {
    quipu_thread *thread = path ? this_thread() : nullptr;
    if (!thread)
        return idle_frame();
    Node *copy = copy_path(thread, path);
    if (thread->top == thread->limit) {
        profile.note_lost();
        return idle_frame();
    }
    /* Outside of all regions a thread waits for work, and this time does not count. */
    if (thread->here == own(thread)->root)
        put(thread->last, ticks(clock_kind));
    else
        charge_time(thread);
    if (by_effort)
        note_node(thread, copy);
    return quipu_push(thread, copy, own(thread)->nowhere);
}

uint64_t *quipu_count(struct quipu_region *region) {
    quipu_thread *thread = this_thread();
    Link *link = thread ? follow(thread, region) : nullptr;
    if (__builtin_expect(!link || link->folded, 0))
        return link ? count_folded(thread, link) : idle_frame()->counters;
    if (__builtin_expect(by_effort, 0))
        note_visit(thread, link);
    quipu_increase(link->visits, 1);
    return link->counters;
}

uint64_t quipu_count_slowly(struct quipu_region *region, uint64_t *slot) {
    quipu_thread *thread = this_thread();
    Link *link = thread ? follow(thread, region) : nullptr;
    if (__builtin_expect(!link || link->folded, 0)) {
        const uint64_t known =
            thread ? 0 : quipu_count_known(region, slot); /* this_thread() may make the thread idle */
        if (known)
            return known;
        without_link.counters = link ? count_folded(thread, link) : idle_frame()->counters;
        without_link.visits = &visits_of_nobody;
        return quipu_place(&without_link, slot);
    }
    if (__builtin_expect(by_effort, 0))
        note_visit(thread, link);
    else if (slot && !ranks)
        *slot = quipu_place(link, slot);
    else if (!ranks)
        quipu_note_quick(thread, region, link);
    return quipu_place(link, slot);
}

void quipu_unwind(struct quipu_frame *frame) {
    quipu_thread *thread = frame == &idle ? nullptr : this_thread();
    if (!thread)
        end_idle(frame);
    else if (belongs(thread, frame)) {
        Frame *last = last_of(own(thread), frame);
        const bool cuts = thread->top != last;
        if (cuts || thread->here != last->node) /* visits without a frame may have been left */
            unwind_to(thread, last);
        if (cuts && has_marks(thread))
            reopen(thread, last + 1, nullptr);
    }
}

struct quipu_frame *quipu_top(void) {
    if (quipu_thread *thread = this_thread()) {
        if (thread->here != thread->top->node && thread->top != thread->limit)
            quipu_push(thread, thread->here, own(thread)->nowhere); /* so that quipu_unwind finds the active node */
        return thread->top;
    }
    return quipu_current ? quipu_current->top : idle_frame();
}

void quipu_effort(struct quipu_region *function, uint64_t scope, const int64_t *work) {
    quipu_thread *thread = this_thread();
    if (!thread)
        return;
    Node *inner = find_scope(thread, function, scope);
    if (inner)
        quipu_add_alone(inner, QUIPU_VISITS, static_cast<uint64_t>(work[0]));
    for (int i = 0; i < QUIPU_WEIGHTED; i++)
        quipu_add_alone(inner ? inner : counted(thread->here), static_cast<quipu_metric>(QUIPU_BLOCKS + i),
                        static_cast<uint64_t>(work[1 + i]));
}

void quipu_moved(struct quipu_region *function, uint64_t scope, uint64_t bytes_loaded, uint64_t bytes_stored) {
    if (quipu_thread *thread = this_thread()) {
        Node *inner = find_scope(thread, function, scope), *node = inner ? inner : counted(thread->here);
        quipu_add_alone(node, QUIPU_BYTES_LOADED, bytes_loaded);
        quipu_add_alone(node, QUIPU_BYTES_STORED, bytes_stored);
        quipu_add_alone(node, QUIPU_BYTES_IN_ORDER, bytes_loaded + bytes_stored);
    }
}

int quipu_active(void) { return active; }

uint64_t quipu_ticks(void) { return this_thread() ? ticks(clock_kind) : 0; }

struct quipu_node *quipu_here(void) {
    quipu_thread *thread = this_thread();
    return thread ? counted(thread->here) : nullptr;
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

// SPDX-License-Identifier: Apache-2.0
/* Intercepts swapcontext for user-level threads, like threads.cpp.
 *
 * Each context has a separate stack of frames. The call paths of a new context are below the call path that switched to
 * it first. A resumed context always continues in its own call of swapcontext, which restores its frames. */
#include "behind.h"
#include "clock.h"
#include "tree.h"

#include <errno.h>
#include <ucontext.h>

namespace quipu {
namespace {

/* The contexts of all threads that wait in swapcontext. */
struct Waiting {
    const ucontext_t *context;
    Waiting *next;
};

Waiting *waiting; /* access under the lock; each element is on the stack of its context */

QUIPU_BARE bool is_waiting(const ucontext_t *context) {
    for (const Waiting *one = waiting; one; one = one->next)
        if (one->context == context)
            return true;
    return false;
}

QUIPU_BARE void forget(Waiting *gone) {
    for (Waiting **place = &waiting; *place; place = &(*place)->next)
        if (*place == gone) {
            *place = gone->next;
            return;
        }
}

QUIPU_BARE void use(quipu_thread *shared, FrameStack *stack, Frame *top, Node *here) {
    Thread *thread = own(shared);
    thread->stack = stack;
    thread->frames = stack->frames;
    shared->limit = stack->limit;
    put(shared->top, top);
    put(shared->here, here);
}

/* Returns an unused or a new stack of frames; null if there is no memory. bytes_of_stack: size of the stack of the
 * context. Call under the lock. */
QUIPU_BARE FrameStack *take_stack(Thread *thread, size_t bytes_of_stack) {
    if (FrameStack *stack = thread->spare) {
        thread->spare = stack->next;
        return stack;
    }
    constexpr size_t least = size_t{16} << 10, most = size_t{1} << 20, smallest_call = 32;
    size_t bytes = bytes_of_stack / smallest_call * sizeof(Frame);
    bytes = (bytes < least ? least : bytes > most ? most : bytes) & ~size_t{4095};
    auto *stack = may_call_system() ? static_cast<FrameStack *>(keep(sizeof(FrameStack))) : nullptr;
    auto *frames = stack ? static_cast<Frame *>(reserve(bytes)) : nullptr;
    if (!frames)
        return nullptr;
    *stack = {frames, frames + bytes / sizeof(Frame) - 1, false, nullptr};
    return stack;
}

/* Continues the thread in a context that has just begun. Returns false, and keeps the frames of the thread, if there is
 * no memory. Call under the lock. */
QUIPU_BARE bool begin_context(quipu_thread *shared, size_t bytes_of_stack) {
    Thread *thread = own(shared);
    FrameStack *stack = take_stack(thread, bytes_of_stack);
    if (!stack)
        return false;
    stack->frames->node = stack->frames->back = shared->here;
    stack->frames->counters = thread->nowhere;
    use(shared, stack, stack->frames, shared->here);
    return true;
}

QUIPU_BARE int swap(SwapContext real, ucontext_t *from, const ucontext_t *to) {
    quipu_thread *shared = quipu_current;
    if (!active || ranks || !shared || is_idle(shared) || is_locked_here())
        return real(from, to);
    Thread *thread = own(shared);
    charge_any_time(shared);
    FrameStack *mine = thread->stack;
    Frame *top = shared->top;
    Node *active_here = shared->here;
    Waiting here = {from, nullptr};
    {
        const Locked locked;
        const bool begins = !is_waiting(to);
        here.next = waiting;
        waiting = &here;
        mine->suspended = true;
        if (begins)
            begin_context(shared, to->uc_stack.ss_size);
    }
    const int result = real(from, to);
    const int error = errno;
    {
        const Locked locked;
        forget(&here);
        mine->suspended = false;
        quipu_thread *now = quipu_current;
        if (now == shared) {
            charge_any_time(shared);
            FrameStack *ended = thread->stack;
            if (!ended->suspended && ended != mine && ended != &thread->own_stack) {
                ended->next = thread->spare;
                thread->spare = ended;
            }
            use(shared, mine, top, active_here);
        } else {
            set_attribute("contexts_problem",
                          "user-level threads moved between threads: their call paths are incomplete");
        }
    }
    errno = error;
    return result;
}

} // namespace

void leave_contexts(Thread *thread) {
    if (thread->stack != &thread->own_stack)
        use(thread->shared, &thread->own_stack, thread->own_stack.frames, thread->own_stack.frames->node);
}

} // namespace quipu

extern "C" {

#ifdef QUIPU_STATIC
int __real_swapcontext(ucontext_t *, const ucontext_t *);

int __wrap_swapcontext(ucontext_t *from, const ucontext_t *to) { return quipu::swap(__real_swapcontext, from, to); }
#else
QUIPU_BARE __attribute__((visibility("default"))) int swapcontext(ucontext_t *from, const ucontext_t *to) noexcept {
    const quipu::SwapContext real = quipu::swapcontext_behind();
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    return quipu::swap(real, from, to);
}
#endif
}

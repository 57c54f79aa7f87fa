// SPDX-License-Identifier: Apache-2.0
/* Intercepts pthread_create, so that the work of a thread is below the call path that created it. The loader finds the
 * shared library before the C library. Statically linked programs use --wrap, which the compiler wrappers add. */
#include "behind.h"
#include "tree.h"

#include <errno.h>
#include <pthread.h>

using namespace quipu;

namespace {

using Function = ThreadFunction;

/* The data that a thread passes to a thread that it creates. These objects are never freed, but used again. */
struct Start {
    Function function;
    void *argument;
    Node *origin;
    size_t stack;
    bool sampled; /* whether the thread is sampled outside of regions, too */
    bool unused;  /* the new thread has read the data */
    Start *next;
};

Start *starts;

/* Returns an unused start, or null without memory. Needs no lock, because a process may fork while it creates threads.
 */
Start *take_start() {
    for (Start *start = __atomic_load_n(&starts, __ATOMIC_ACQUIRE); start; start = start->next)
        if (__atomic_exchange_n(&start->unused, false, __ATOMIC_ACQ_REL))
            return start;
    auto *start = static_cast<Start *>(reserve(sizeof(Start)));
    if (!start)
        return nullptr;
    start->next = __atomic_load_n(&starts, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&starts, &start->next, start, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    return start;
}

/* The first function of a new thread. Sanitizers do not know the thread yet, so this function calls none of the
 * functions that sanitizers intercept. */
QUIPU_BARE void *begin(void *argument) {
    auto *start = static_cast<Start *>(argument);
    Function function = start->function;
    void *own = start->argument;
    thread_origin = start->origin;
    thread_stack = start->stack;
    const bool sampled = start->sampled;
    __atomic_store_n(&start->unused, true, __ATOMIC_RELEASE);
    if (sampled && !quipu_current)
        begin_thread(); /* because it may never enter a region */
    return function(own);
}

template <typename Create>
int create(Create real, pthread_t *thread, const pthread_attr_t *attributes, Function function, void *argument) {
    Node *origin = active ? current_path() : nullptr;
    Start *start = origin ? take_start() : nullptr;
    if (!start)
        return real(thread, attributes, function, argument);
    start->function = function;
    start->argument = argument;
    start->origin = origin;
    start->sampled = samples_functions();
    if (!attributes || pthread_attr_getstacksize(attributes, &start->stack) != 0)
        start->stack = 0;
    const int failure = real(thread, attributes, begin, start);
    if (failure)
        __atomic_store_n(&start->unused, true, __ATOMIC_RELEASE);
    return failure;
}

} // namespace

extern "C" {

#ifdef QUIPU_STATIC
int __real_pthread_create(pthread_t *, const pthread_attr_t *, Function, void *);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, Function function, void *argument) {
    return create(__real_pthread_create, thread, attributes, function, argument);
}
#else
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          Function function, void *argument) noexcept {
    const PthreadCreate real = pthread_create_behind();
    return real ? create(real, thread, attributes, function, argument) : ENOSYS;
}
#endif
}

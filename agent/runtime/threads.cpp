/* What a thread does belongs to the call path that created it: pthread_create on its way to the C library. In shared
 * form this library is asked first; programs that are linked statically name us with --wrap (the compiler wrappers do).
 */
#include "tree.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

using namespace quipu;

namespace {

using Function = void *(*)(void *);

struct Start {
    Function function;
    void *argument;
    Node *origin;
};

void *begin(void *argument) {
    const Start start = *static_cast<Start *>(argument);
    free(argument);
    thread_origin = start.origin;
    return start.function(start.argument);
}

/* Threads that nobody measured created have the origin of their creator. */
Node *current_path() { return quipu_current ? counted(quipu_current->here) : thread_origin; }

template <typename Create>
int create(Create real, pthread_t *thread, const pthread_attr_t *attributes, Function function, void *argument) {
    Node *origin = active ? current_path() : nullptr;
    auto *start = origin ? static_cast<Start *>(malloc(sizeof(Start))) : nullptr;
    if (!start)
        return real(thread, attributes, function, argument);
    *start = {function, argument, origin};
    const int failure = real(thread, attributes, begin, start);
    if (failure)
        free(start);
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
    using Create = int (*)(pthread_t *, const pthread_attr_t *, Function, void *);
    static Create known;
    Create real = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!real) {
        real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
        __atomic_store_n(&known, real, __ATOMIC_RELAXED);
    }
    return create(real, thread, attributes, function, argument);
}
#endif
}

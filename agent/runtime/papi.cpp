// SPDX-License-Identifier: Apache-2.0
#include "papi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

namespace quipu {
namespace {

/* Codes and versions from papi.h of PAPI 5 to 7. */
constexpr int ok = 0, no_set = -1;
constexpr int versions[] = {7 << 24, 6 << 24, 5 << 24};
[[maybe_unused]] const char *const names[] = {"libpapi.so.7.0", "libpapi.so.7", "libpapi.so.6.0", "libpapi.so.5.7",
                                              "libpapi.so"};

struct Papi {
    int (*library_init)(int);
    int (*thread_init)(unsigned long (*)());
    int (*register_thread)();
    int (*create_eventset)(int *);
    int (*add_named_event)(int, const char *);
    int (*start)(int);
    int (*read)(int, long long *);
    int (*stop)(int, long long *);
    int (*cleanup_eventset)(int);
    int (*destroy_eventset)(int *);
    char *(*strerror)(int);
} papi;

const char *problem; /* null: PAPI can be used */
pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef QUIPU_STATIC
void *symbol(void *, const char *) { return nullptr; }
#else
void *symbol(void *library, const char *name) { return dlsym(library, name); }
#endif

template <typename Function> bool find(void *library, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(symbol(library, name));
    return *function;
}

bool find_all(void *library) {
    return find(library, "PAPI_library_init", &papi.library_init) &&
           find(library, "PAPI_thread_init", &papi.thread_init) &&
           find(library, "PAPI_register_thread", &papi.register_thread) &&
           find(library, "PAPI_create_eventset", &papi.create_eventset) &&
           find(library, "PAPI_add_named_event", &papi.add_named_event) && find(library, "PAPI_start", &papi.start) &&
           find(library, "PAPI_read", &papi.read) && find(library, "PAPI_stop", &papi.stop) &&
           find(library, "PAPI_cleanup_eventset", &papi.cleanup_eventset) &&
           find(library, "PAPI_destroy_eventset", &papi.destroy_eventset) &&
           find(library, "PAPI_strerror", &papi.strerror);
}

unsigned long thread_number() { return pthread_self(); }

#ifdef QUIPU_STATIC
void *open_library() {
    problem = "a program that is linked statically cannot load PAPI";
    return nullptr;
}
#else
void *open_library() {
    for (const char *name : names)
        if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
            return library;
    problem = "PAPI is not installed: apt-get install libpapi7.0";
    return nullptr;
}
#endif

void load() {
    void *library = open_library();
    if (!library)
        return;
    if (!find_all(library)) {
        problem = "libpapi lacks functions: PAPI 5.7 or later is needed";
        return;
    }
    int accepted = -1;
    for (const int version : versions) /* PAPI returns its own version if it differs */
        if (accepted != version)
            accepted = papi.library_init(version) == version ? version : accepted;
    if (accepted < 0)
        problem = "PAPI_library_init failed: its version is not known";
    else if (papi.thread_init(thread_number) != ok)
        problem = "PAPI_thread_init failed";
}

} // namespace

uint32_t papi_begin(const SampleOptions &options, int *set, char *failure, size_t size) {
    pthread_once(&once, load);
    *set = no_set;
    int code = ok;
    if (problem || (code = papi.register_thread()) != ok || (code = papi.create_eventset(set)) != ok) {
        snprintf(failure, size, "%s", problem ? problem : papi.strerror(code));
        *set = no_set;
        return 0;
    }
    for (uint32_t i = 0; i < options.events; i++)
        if ((code = papi.add_named_event(*set, options.event[i].papi)) != ok) {
            snprintf(failure, size, "%s", papi.strerror(code));
            papi_end(*set);
            *set = no_set;
            return i;
        }
    if ((code = papi.start(*set)) != ok) {
        snprintf(failure, size, "%s", papi.strerror(code));
        papi_end(*set);
        *set = no_set;
        return 0;
    }
    return options.events;
}

bool papi_read(int set, long long *values) { return papi.read(set, values) == ok; }

void papi_end(int set) {
    long long values[most_events];
    papi.stop(set, values);
    papi.cleanup_eventset(set);
    papi.destroy_eventset(&set);
}

} // namespace quipu

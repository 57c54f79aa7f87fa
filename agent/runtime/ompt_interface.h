/* The part of the tool interface of OpenMP that the runtime uses (OpenMP 5.2 specification, chapter 19: OMPT). Any
 * OpenMP library that offers it fits; none is needed to build or to run. */
#ifndef QUIPU_OMPT_INTERFACE_H
#define QUIPU_OMPT_INTERFACE_H

#include <stdint.h>

namespace quipu::ompt {

union Data {
    uint64_t value;
    void *pointer;
};

struct TaskFrame; /* not looked at */

/* 19.4.4.1: ompt_callbacks_t */
enum Event {
    event_thread_begin = 1,
    event_parallel_begin = 3,
    event_parallel_end = 4,
    event_task_create = 5,
    event_task_schedule = 6,
    event_implicit_task = 7,
    event_sync_region_wait = 16,
    event_mutex_acquire = 26,
    event_mutex_acquired = 27
};
enum Endpoint { scope_begin = 1, scope_end = 2 };
enum ThreadKind { thread_worker = 2 };
enum TaskFlag { task_initial = 1, task_explicit = 4 };
enum TaskStatus { task_complete = 1, task_yield = 2, task_cancel = 3, task_detach = 4, task_switch = 7 };
enum SyncRegion {
    sync_barrier_explicit = 3,
    sync_taskwait = 5,
    sync_taskgroup = 6,
    sync_reduction = 7,
    sync_barrier_implicit_parallel = 9
};
enum Mutex { mutex_lock = 1, mutex_nest_lock = 3, mutex_critical = 5, mutex_atomic = 6, mutex_ordered = 7 };

using Callback = void (*)();
using Lookup = Callback (*)(const char *name);
using SetCallback = int (*)(int event, Callback callback);

struct StartToolResult {
    int (*initialize)(Lookup lookup, int device, Data *tool);
    void (*finalize)(Data *tool);
    Data tool;
};

} // namespace quipu::ompt

#endif

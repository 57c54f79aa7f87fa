/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of the processor for one thread: events of the kernel (perf_event_open) or of PAPI. */
#ifndef QUIPU_COUNTING_H
#define QUIPU_COUNTING_H

#include "perf_page.h"
#include "profile.h"
#include "sample_options.h"

#include <sys/types.h>

namespace quipu {

/* A descriptor of an event. The program may close it and open a file of its own with the number, so the kernel is asked
 * for the id of the event before each use. */
struct EventFile {
    int fd = -1;
    uint64_t id = 0;
    bool counts = false; /* against the limit of the program */

    /* Of this thread, in user space. Returns 0 or what failed (errno). with_kernel: in the kernel, too. */
    int open(uint32_t type, const uint64_t *config, bool with_kernel, int leader, uint64_t period);
    bool is_ours() const;
    /* By which signal it says that a period has passed. */
    bool send(int signal) const;
    void close();
};

/* Events that count at the same times. */
struct EventGroup {
    EventFile leader;
    uint32_t events = 0;
    struct Member {
        EventFile file;
        const CounterEvent *event;
        const perf_event_mmap_page *page; /* null: only read() gives its count */
        uint64_t last;
    } member[most_events];
    PerfTimes last = {};  /* when values were last given to a call path */
    PerfTimes total = {}; /* so far */
};

/* The counters of one thread. add: gets the number of a counter and what it counted since the last time. */
class Counting {
  public:
    /* Of the calling thread. Returns null, or the event that cannot be counted, with the reason in `failure`. */
    const char *begin(const SampleOptions &options, char *failure, size_t size);
    /* Async-signal-safe; on the thread that is counted. */
    void take(void (*add)(void *to, uint32_t counter, uint64_t value), void *to);
    void end();
    /* In the child of a fork. */
    void forget();
    /* How long an event was wanted, and how long it counted; 0 where that is not known. */
    PerfTimes times_of(const CounterEvent *event) const;

  private:
    bool read_pages(EventGroup &group, PerfTimes *times, uint64_t *values) const;
    bool read_files(EventGroup &group, PerfTimes *times, uint64_t *values) const;
    const char *begin_perf(const SampleOptions &options, char *failure, size_t size);
    const char *begin_papi(const SampleOptions &options, char *failure, size_t size);

    static constexpr uint32_t most_groups = 8;
    EventGroup *groups = nullptr; /* [most_groups] */
    uint32_t used = 0;
    int papi_set = -1;
    const SampleOptions *papi_options = nullptr;
    long long papi_last[most_events] = {};
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware counters of one thread: events of the kernel (perf_event_open) or of PAPI. */
#ifndef QUIPU_COUNTING_H
#define QUIPU_COUNTING_H

#include "perf_page.h"
#include "profile.h"
#include "sample_options.h"

#include <sys/types.h>

namespace quipu {

/* A descriptor of an event. The program may close it and open another file with the same number. The identifier of the
 * event is therefore checked before each use. */
struct EventFile {
    int fd = -1;
    uint64_t id = 0;
    bool counts = false; /* whether its number counts against the program's limit of open files */

    /* Opens an event that counts this thread in user space. Returns 0 or errno. config: config, config1 and config2 of
     * perf_event_attr. with_kernel: also counts in the kernel. leader: descriptor of the leader of a group; -1: none.
     * period: number of events between two signals; 0: no signals. */
    int open(uint32_t type, const uint64_t *config, bool with_kernel, int leader, uint64_t period);
    bool is_ours() const;
    /* Sets the signal that is sent after each period. */
    bool send(int signal) const;
    void close();
};

/* Events that are counted at the same time. */
struct EventGroup {
    EventFile leader;
    uint32_t events = 0;
    struct Member {
        EventFile file;
        const CounterEvent *event;
        const perf_event_mmap_page *page; /* null: only read() returns its count */
        uint64_t last;                    /* count at the last sample */
    } member[most_events];
    PerfTimes last = {};  /* at the last sample */
    PerfTimes total = {}; /* since the start */
};

/* The counters of one thread. add: is called with the index of a counter and its increase since the last call. */
class Counting {
  public:
    /* Begins counting on the calling thread. Returns null, or the event that cannot be counted, with the reason in
     * `failure`. */
    const char *begin(const SampleOptions &options, char *failure, size_t size);
    /* Reads the counters. Async-signal-safe; call on the counted thread. */
    void take(void (*add)(void *to, uint32_t counter, uint64_t value), void *to);
    void end();
    /* Runs in the child of a fork. */
    void forget();
    /* Returns how long an event was requested and how long it was counted (ns); 0 if unknown. */
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

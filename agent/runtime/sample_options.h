/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sampling: QUIPU_SAMPLE and QUIPU_COUNTERS. */
#ifndef QUIPU_SAMPLE_OPTIONS_H
#define QUIPU_SAMPLE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

namespace quipu {

constexpr uint32_t most_counters = 16, most_events = 32;

/* An event whose count is added to a counter or subtracted from it. */
struct CounterEvent {
    uint32_t counter;
    bool negative;
    bool with_kernel; /* else user space only */
    uint32_t type;    /* of perf_event_attr, with config, config1, config2 */
    uint64_t config[3];
    char papi[128]; /* its name for PAPI; empty: an event of perf */
};

struct SampleOptions {
    uint64_t period; /* nanoseconds of processor time; 0: nothing is sampled */
    uint32_t counters, events;
    char names[most_counters][40];
    CounterEvent event[most_events];
};

/* Reads the options. rate: samples per second of processor time; counters: QUIPU_COUNTERS as in docs/environment.md;
 * both may be null. Returns an error message, or null. */
const char *read_sample_options(const char *rate, const char *counters, SampleOptions *options);

} // namespace quipu

#endif

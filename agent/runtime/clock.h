/* SPDX-License-Identifier: Apache-2.0 */
/* Time stamps: the invariant time stamp counter if it exists, otherwise clock_gettime. */
#ifndef QUIPU_CLOCK_H
#define QUIPU_CLOCK_H

#include "hot.h"

#include <stdint.h>
#include <time.h>

namespace quipu {

/* Makes nanoseconds() use system calls from now on. The clocks of the C library read the time stamp counter, which the
 * program has disabled. */
void forbid_counter();
extern bool counter_is_forbidden;
void read_clock_of_kernel(clockid_t id, struct timespec *now);

inline uint64_t nanoseconds(clockid_t id) {
    struct timespec now;
    if (__builtin_expect(counter_is_forbidden, 0))
        read_clock_of_kernel(id, &now);
    else
        clock_gettime(id, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/* Returns the nanoseconds of processor time of this thread, by a system call. */
inline uint64_t processor_time() { return nanoseconds(CLOCK_THREAD_CPUTIME_ID); }
/* Returns the processor time since `begun`; 0 if `begun` is 0, which means that system calls were not allowed then. */
inline uint64_t processor_time_since(uint64_t begun) { return begun ? processor_time() - begun : 0; }

/* The clock of simulated nanoseconds (quipu_share). In the profile it is QUIPU_CLOCK_NANOSECONDS. */
constexpr uint32_t simulated_clock = 255;
uint64_t simulated_ticks();

/* Returns ticks of the selected clock; 0 with QUIPU_CLOCK_NONE. */
inline uint64_t ticks(uint32_t clock) {
    if (__builtin_expect(clock == QUIPU_CLOCK_TSC, 1))
        return quipu_cycles();
    if (clock == simulated_clock)
        return simulated_ticks();
    return clock == QUIPU_CLOCK_NANOSECONDS ? nanoseconds(CLOCK_MONOTONIC) : 0;
}

/* Returns the clock that `choice` (value of QUIPU_CLOCK, or null) selects, or the best clock of this machine. */
uint32_t choose_clock(const char *choice);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes counts of the kernel: the result of read() for a group of events, and the mapped page of an event. Pure
 * functions on these bytes. */
#ifndef QUIPU_PERF_PAGE_H
#define QUIPU_PERF_PAGE_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

namespace quipu {

/* Times of an event or a group, in nanoseconds: requested and counted. The second one is smaller if more events are
 * requested than the processor has counters. */
struct PerfTimes {
    uint64_t enabled, running;
};

constexpr uint64_t perf_read_format =
    PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

/* Decodes read() of a leader with perf_read_format (perf_event_open(2)): number of events, times, one value per event.
 * Returns false if these are not `events` values. */
inline bool read_group(const uint64_t *buffer, size_t bytes, uint32_t events, PerfTimes *times, uint64_t *values) {
    if (bytes != sizeof(uint64_t) * (3 + size_t{events}) || buffer[0] != events)
        return false;
    *times = {buffer[1], buffer[2]};
    for (uint32_t i = 0; i < events; i++)
        values[i] = buffer[3 + i];
    return true;
}

/* Returns the count of an interval, scaled to the requested time; 0 while the event did not run. The caller then keeps
 * the interval open until it runs again. */
inline uint64_t scaled(uint64_t count, PerfTimes passed) {
    if (passed.running == 0 || passed.running >= passed.enabled)
        return count;
    return static_cast<uint64_t>(static_cast<double>(count) * static_cast<double>(passed.enabled) /
                                 static_cast<double>(passed.running));
}

/* Reads an event from its page, which the kernel may change at any time (`lock`; protocol of linux/perf_event.h).
 * Returns false if the event is not on the processor, or user space may not read its counter; then read() is necessary.
 * `counter` reads the hardware counter with an index (rdpmc), `ticks` is the time stamp counter. */
template <typename Counter, typename Ticks>
bool read_page(const perf_event_mmap_page *page, Counter counter, Ticks ticks, PerfTimes *times, uint64_t *value) {
    uint32_t sequence;
    do {
        sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
        const uint32_t index = __atomic_load_n(&page->index, __ATOMIC_RELAXED);
        if (!page->cap_user_rdpmc || index == 0)
            return false;
        times->enabled = page->time_enabled;
        times->running = page->time_running;
        if (page->cap_user_time) {
            const uint64_t now = ticks();
            const uint64_t whole = now >> page->time_shift, part = now & ((uint64_t{1} << page->time_shift) - 1);
            const uint64_t passed =
                page->time_offset + whole * page->time_mult + ((part * page->time_mult) >> page->time_shift);
            times->enabled += passed;
            times->running += passed;
        } else if (times->enabled != times->running) {
            return false; /* the running time is unknown here */
        }
        const unsigned unused = 64 - page->pmc_width;
        const auto here = static_cast<int64_t>(counter(index - 1) << unused) >> unused; /* sign of the counter */
        *value = static_cast<uint64_t>(page->offset) + static_cast<uint64_t>(here);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&page->lock, __ATOMIC_RELAXED) != sequence);
    return true;
}

} // namespace quipu

#endif

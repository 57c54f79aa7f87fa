// SPDX-License-Identifier: Apache-2.0
/* Opens perf events in groups: an event is added to the last group if the kernel accepts this, and otherwise begins
 * another group. Reads events through their mapped pages if the processor allows this in user space, and otherwise with
 * read(). */
#include "counting.h"
#include "clock.h"
#include "papi.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quipu {
namespace {

constexpr size_t page_size = 4096;

#if defined(__x86_64__)
uint64_t processor_counter(uint32_t index) { return __builtin_ia32_rdpmc(static_cast<int>(index)); }
constexpr bool has_counter_instruction = true;
#else
uint64_t processor_counter(uint32_t) { return 0; }
constexpr bool has_counter_instruction = false;
#endif

/* Returns null if there is no page. The mapping stays valid if the program closes the descriptor. */
const perf_event_mmap_page *map_page(int fd) {
    void *page = has_counter_instruction ? mmap(nullptr, page_size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    return page == MAP_FAILED ? nullptr : static_cast<const perf_event_mmap_page *>(page);
}

/* Number of open events whose descriptors count against the limit of the program. */
rlim_t in_reach;

/* Opens a descriptor for an event, and leaves the descriptors up to the limit of open files to the program. If the
 * limit can be raised, events get numbers above the limit, which is then restored. Otherwise events use at most an
 * eighth of the limit. *reach: whether the descriptor counts against the limit. Returns the descriptor; -1 and errno if
 * this fails. Call under the lock. */
template <typename Open> long open_out_of_reach(Open open, bool *reach) {
    constexpr rlim_t large = 65536, room = 64; /* the kernel's table of descriptors grows with the highest number */
    struct rlimit limit;
    *reach = false;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > large)
        return open();
    if (limit.rlim_max < limit.rlim_cur + room) {
        constexpr rlim_t share = 8;
        if (in_reach >= limit.rlim_cur / share) {
            errno = EMFILE;
            return -1;
        }
        const long opened = open();
        *reach = opened >= 0;
        in_reach += *reach;
        return opened;
    }
    const rlim_t most = limit.rlim_cur + 4 * large < limit.rlim_max ? limit.rlim_cur + 4 * large : limit.rlim_max;
    const struct rlimit raised = {most, limit.rlim_max};
    struct rlimit now = {};
    if (prlimit(0, RLIMIT_NOFILE, &raised, &limit) != 0)
        return open();
    const long low = open();
    const int failure = errno, high = low < 0 ? -1 : fcntl(static_cast<int>(low), F_DUPFD_CLOEXEC, limit.rlim_cur);
    if (prlimit(0, RLIMIT_NOFILE, &limit, &now) == 0 && now.rlim_cur != most)
        prlimit(0, RLIMIT_NOFILE, &now, nullptr); /* the program changed the limit meanwhile */
    if (high >= 0)
        close(static_cast<int>(low));
    errno = failure;
    return high >= 0 ? high : low;
}

} // namespace

int EventFile::open(uint32_t type, const uint64_t *config, bool with_kernel, int leader, uint64_t period) {
    perf_event_attr attributes = {};
    attributes.type = type;
    attributes.size = sizeof attributes;
    attributes.config = config[0];
    attributes.config1 = config[1];
    attributes.config2 = config[2];
    attributes.sample_period = period;
    attributes.exclude_kernel = !with_kernel;
    attributes.exclude_hv = 1;
    attributes.read_format = perf_read_format;
    const auto open = [&] { return syscall(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC); };
    long opened;
    int failure;
    const auto try_it = [&] {
        opened = open_out_of_reach(open, &counts);
        failure = errno; /* the lock restores errno */
    };
    if (is_locked_here()) {
        try_it();
    } else {
        const Locked locked;
        try_it();
    }
    if (opened < 0)
        return failure;
    struct rlimit limit;
    const bool far = getrlimit(RLIMIT_NOFILE, &limit) == 0 && static_cast<rlim_t>(opened) >= limit.rlim_cur;
    fd = far ? static_cast<int>(opened) : keep_high(static_cast<int>(opened));
    if (ioctl(fd, PERF_EVENT_IOC_ID, &id) != 0)
        id = 0;
    return 0;
}

bool EventFile::is_ours() const {
    uint64_t found = 0;
    return fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &found) == 0 && found == id;
}

bool EventFile::send(int signal) const { return is_ours() && fcntl(fd, F_SETSIG, signal) == 0; }

void EventFile::close() {
    if (is_ours())
        ::close(fd);
    if (counts)
        in_reach--;
    counts = false;
    fd = -1;
}

const char *Counting::begin(const SampleOptions &options, char *failure, size_t size) {
    if (options.events == 0)
        return nullptr;
    return options.event[0].papi[0] ? begin_papi(options, failure, size) : begin_perf(options, failure, size);
}

const char *Counting::begin_perf(const SampleOptions &options, char *failure, size_t size) {
    const Locked locked;
    groups = groups ? groups : static_cast<EventGroup *>(keep(sizeof(EventGroup) * most_groups));
    if (!groups) {
        snprintf(failure, size, "no memory");
        return options.names[0];
    }
    used = 0;
    for (uint32_t i = 0; i < options.events; i++) {
        const CounterEvent &event = options.event[i];
        EventFile file;
        EventGroup *group = used ? &groups[used - 1] : nullptr;
        /* The kernel refuses an event if the group would not fit onto the processor at once. */
        int refused = !group ? EINVAL : file.open(event.type, event.config, event.with_kernel, group->leader.fd, 0);
        if (refused && used < most_groups) {
            refused = file.open(event.type, event.config, event.with_kernel, -1, 0);
            if (!refused) {
                group = &groups[used++];
                *group = {};
                group->leader = file;
            }
        }
        if (refused) {
            snprintf(failure, size, "%s", strerror(refused));
            end();
            return options.names[event.counter];
        }
        group->member[group->events++] = {file, &event, map_page(file.fd), 0};
    }
    return nullptr;
}

bool Counting::read_pages(EventGroup &group, PerfTimes *times, uint64_t *values) const {
    for (uint32_t i = 0; i < group.events; i++)
        if (!group.member[i].page ||
            !read_page(group.member[i].page, processor_counter, quipu_cycles, times, values + i))
            return false;
    return true;
}

bool Counting::read_files(EventGroup &group, PerfTimes *times, uint64_t *values) const {
    uint64_t buffer[3 + most_events];
    if (!group.leader.is_ours())
        return false;
    const ssize_t got = read(group.leader.fd, buffer, sizeof buffer);
    return got > 0 && read_group(buffer, static_cast<size_t>(got), group.events, times, values);
}

void Counting::take(void (*add)(void *to, uint32_t counter, uint64_t value), void *to) {
    const auto give = [&](const CounterEvent &event, uint64_t count) {
        add(to, event.counter, event.negative ? uint64_t{0} - count : count);
    };
    for (uint32_t i = 0; i < used; i++) {
        EventGroup &group = groups[i];
        PerfTimes now = {};
        uint64_t values[most_events];
        if (!read_pages(group, &now, values) && !read_files(group, &now, values))
            continue;
        group.total = now;
        const PerfTimes passed = {now.enabled - group.last.enabled, now.running - group.last.running};
        if (passed.running == 0)
            continue; /* another group was on the processor: the interval stays open */
        group.last = now;
        for (uint32_t member = 0; member < group.events; member++) {
            EventGroup::Member &one = group.member[member];
            give(*one.event, scaled(values[member] - one.last, passed));
            one.last = values[member];
        }
    }
    if (papi_set >= 0) {
        long long values[most_events];
        if (papi_read(papi_set, values))
            for (uint32_t i = 0; i < papi_options->events; i++) {
                give(papi_options->event[i], static_cast<uint64_t>(values[i] - papi_last[i]));
                papi_last[i] = values[i];
            }
    }
}

void Counting::end() {
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t member = groups[i].events; member-- > 0;) {
            EventGroup::Member &one = groups[i].member[member];
            if (one.page)
                munmap(const_cast<perf_event_mmap_page *>(one.page), page_size);
            one.file.close();
        }
    used = 0;
    if (papi_set >= 0)
        papi_end(papi_set);
    papi_set = -1;
}

void Counting::forget() {
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t member = 0; member < groups[i].events; member++)
            groups[i].member[member].page = nullptr; /* not mapped in the child */
    papi_set = -1;
}

const char *Counting::begin_papi(const SampleOptions &options, char *failure, size_t size) {
    papi_options = &options;
    const uint32_t refused = papi_begin(options, &papi_set, failure, size);
    memset(papi_last, 0, sizeof papi_last);
    return refused < options.events ? options.event[refused].papi : nullptr;
}

PerfTimes Counting::times_of(const CounterEvent *event) const {
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t member = 0; member < groups[i].events; member++)
            if (groups[i].member[member].event == event)
                return groups[i].total;
    return {};
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
/* The life of a measured process: start, regions, attributes, flush, end, fork. */
#include "annotations.h"
#include "behind.h"
#include "budget.h"
#include "clock.h"
#include "delays.h"
#include "other_launcher.h"
#include "settings.h"
#include "tree.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

uint32_t quipu_measuring;

namespace quipu {

Profile profile;
uint32_t clock_kind;
double ticks_per_ns;
bool active, decided;
const quipu_ranks *ranks;
uint32_t node_size = sizeof(Node), metric_count = QUIPU_METRIC_COUNT;

uint64_t simulated_ticks() { return ranks->now(); }

quipu_costs event_costs;
bool forked;
bool may_fork; /* whether the runtime can intercept fork */
int opened;    /* 1: the profile was created; -1: its creation failed */

const char *metric_table() {
    static char table[sizeof(quipu_profile_header::metrics)];
    const char usual[] =
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description)                                                \
    name "\t" unit "\t" kind "\t" over_locations "\t" description "\n"
#include "metrics.def"
        ;
    snprintf(table, sizeof table, "%s%s%s", usual, sampled_metric_lines(), further_metric_lines());
    return table;
}

void set_attribute(const char *key, const char *value, uint64_t owner) {
    const char *parts[] = {key, value};
    profile.add_text(QUIPU_TEXT_ATTRIBUTE, owner, parts, 2);
}

namespace {

void set_active(bool value) {
    active = value;
    set_measuring(value);
}

void set_number(const char *key, long long value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    set_attribute(key, text);
}

/* Returns the seconds that readers get from the text. Statically linked programs may have no libm for rounding. */
double set_nanoseconds(const char *key, double value) {
    constexpr long long unit = 10000; /* an addition takes less than 0.1 ns */
    const auto parts = static_cast<long long>(value * unit);
    char text[48];
    snprintf(text, sizeof text, "%lld.%04lld", parts / unit, parts % unit);
    set_attribute(key, text);
    return static_cast<double>(parts) / unit * 1e-9;
}

/* Writes the CPUs that the process may use as a list, like 0-3,7. */
void affinity_list(char *text, size_t size) {
    static unsigned long bits[4096 / (8 * sizeof(unsigned long))];
    auto *set = reinterpret_cast<cpu_set_t *>(bits);
    constexpr size_t bytes = sizeof bits;
    text[0] = '\0';
    if (sched_getaffinity(0, bytes, set) == 0) {
        size_t used = 0;
        for (int cpu = 0; cpu < 4096 && used < size; cpu++) {
            if (!CPU_ISSET_S(cpu, bytes, set))
                continue;
            int last = cpu;
            while (last + 1 < 4096 && CPU_ISSET_S(last + 1, bytes, set))
                last++;
            const char *comma = used ? "," : "";
            int wrote = last > cpu ? snprintf(text + used, size - used, "%s%d-%d", comma, cpu, last)
                                   : snprintf(text + used, size - used, "%s%d", comma, cpu);
            used += wrote > 0 ? static_cast<size_t>(wrote) : 0;
            cpu = last;
        }
    }
}

void resource_use() {
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0)
        return;
    set_number("max_rss_bytes", static_cast<long long>(use.ru_maxrss) * 1024);
    set_number("voluntary_switches", use.ru_nvcsw);
    set_number("involuntary_switches", use.ru_nivcsw);
}

/* Reads both clocks at one moment. The fastest of several readings was not interrupted. */
void read_clock_pair(uint64_t *tick, uint64_t *ns) {
    uint64_t shortest = ~uint64_t{0};
    for (int i = 0; i < 8; i++) {
        const uint64_t before = ticks(clock_kind), now = nanoseconds(CLOCK_MONOTONIC);
        const uint64_t took = ticks(clock_kind) - before;
        if (took < shortest) {
            shortest = took;
            *tick = before + took / 2;
            *ns = now;
        }
    }
}

void flush(uint32_t state) {
    if ((!ranks || state == QUIPU_ENDED) && may_call_system()) { /* thousands of ranks would write the same records */
        const Locked locked;
        resource_use();
        describe_budget();
        describe_sampling();
        describe_annotations();
        describe_delays();
    }
    read_clock_pair(&profile.header->flush_ticks, &profile.header->flush_ns);
    profile.header->state = state;
}

/* Runs before a fork, and takes the lock. The parent may change the shared mapping before the child copies it. Values
 * that the child needs are therefore stored here. */
QUIPU_BARE void before_fork() {
    lock();
    if (active && opened > 0) {
        profile.before_fork();
        note_this_thread();
    }
}

QUIPU_BARE void parent_after_fork() {
    profile.after_fork();
    unlock();
}

/* Runs in the child of a fork. The child has a separate profile, which it creates when it next enters or leaves a
 * region. */
QUIPU_BARE void child_after_fork() {
    if (active && opened > 0) {
        set_active(profile.detach());
        if (active)
            forget_sampling();
        keep_one_thread();
        forget_reduction();
        forget_iterations();
        forget_delays();
        forked = true;
        opened = 0;
        if (!active)
            say("quipu: no memory to measure a forked process [no-memory]\n");
    }
    profile.after_fork();
    unlock();
}

/* Returns whether a direct system call, and not the C library, forked this process. It then shares the profile of its
 * parent. */
bool is_unknown_child() {
    return opened > 0 && may_call_system() && profile.header->pid != static_cast<uint32_t>(getpid());
}

/* Returns whether a launcher that Quipu did not start created this process. */
bool is_of_other_launcher(OtherLauncher *other) {
    const char *family = setting("QUIPU_LAUNCHER"), *first = setting("QUIPU_PARENT");
    if (!family || strcmp(family, "none") != 0 || !first)
        return false;
    return find_other_launcher(strtol(first, nullptr, 10), other);
}

void identify() {
    char text[512];
    const char *rank = ranks ? nullptr : setting("QUIPU_RANK");
    const char *size = ranks ? nullptr : setting("QUIPU_RANKS");
    OtherLauncher other;
    if (is_of_other_launcher(&other)) {
        set_attribute("other_launcher", other.launcher);
        rank = other.rank;
        size = other.ranks;
    }
    if (rank)
        set_attribute("rank", rank);
    if (size)
        set_attribute("ranks", size);
    char host[128] = "unknown";
    gethostname(host, sizeof host - 1);
    set_attribute("host", host);
    ssize_t length = readlink("/proc/self/exe", text, sizeof text - 1);
    if (length > 0) {
        text[length] = '\0';
        set_attribute("program", text);
    }
    affinity_list(text, sizeof text);
    set_attribute("affinity", text);
    if (forked)
        set_number("forked_from", getppid());
}

/* Calibrates the clock, so that the ticks per nanosecond are exact enough for a process that is killed before its first
 * flush. Measures the cost of events at the same time. */
void first_calibration() {
    constexpr uint64_t span_ns = 1000000;
    quipu_profile_header *header = profile.header;
    read_clock_pair(&header->start_ticks, &header->start_ns);
    const Overhead overhead = measure_overhead();
    set_nanoseconds("pair_inside_ns", overhead.inside);
    event_costs.pair = set_nanoseconds("pair_ns", overhead.pair);
    event_costs.quiet = set_nanoseconds("quiet_ns", overhead.quiet);
    event_costs.counter = set_nanoseconds("counter_ns", overhead.counter);
    event_costs.clock = set_nanoseconds("clock_ns", overhead.clock);
    do {
        read_clock_pair(&header->flush_ticks, &header->flush_ns);
    } while (header->flush_ns - header->start_ns < span_ns);
    ticks_per_ns = static_cast<double>(header->flush_ticks - header->start_ticks) /
                   static_cast<double>(header->flush_ns - header->start_ns);
    begin_budget(overhead.pair);
}

/* Returns the limit of the profile in bytes. QUIPU_PROFILE_LIMIT is in MiB; 0: no limit. */
uint64_t profile_limit() {
    constexpr uint64_t usual = 256, most = uint64_t{1} << 40;
    const char *text = setting("QUIPU_PROFILE_LIMIT");
    char *end = nullptr;
    if (!text || !*text)
        return usual << 20;
    const unsigned long long mebibytes = strtoull(text, &end, 10);
    if (*end || *text < '0' || *text > '9' || mebibytes > most) {
        say("quipu: error: QUIPU_PROFILE_LIMIT=%s: it must be a number of MiB, 0 for no limit [bad-setting]\n", text);
        _exit(1);
    }
    return mebibytes << 20;
}

/* Returns the clock that QUIPU_CLOCK selects. An unknown clock ends the program, because another clock would give other
 * times. */
uint32_t clock_wanted() {
    const char *text = setting("QUIPU_CLOCK");
    if (text && *text && strcmp(text, "tsc") != 0 && strcmp(text, "monotonic") != 0 && strcmp(text, "none") != 0) {
        say("quipu: error: QUIPU_CLOCK=%s: it must be tsc, monotonic or none [bad-setting]\n", text);
        _exit(1);
    }
    return choose_clock(text);
}

bool make_profile() {
    if (!may_fork) { /* a child would count in the profile of its parent */
        say("quipu: no memory; this process is not measured [no-memory]\n");
        return false;
    }
    read_run_filter();
    if (!forked) { /* a child has the nodes of its parent */
        read_sampling_options();
        read_further_metrics(QUIPU_METRIC_COUNT + sampled_metrics());
        metric_count = QUIPU_METRIC_COUNT + sampled_metrics() + further_metrics();
        node_size = static_cast<uint32_t>(sizeof(Node) + sizeof(uint64_t) * (metric_count - QUIPU_METRIC_COUNT));
    }
    const uint32_t clock = clock_wanted();
    read_budget();
    if (!profile.create(setting("QUIPU_DIR"), profile_limit(), node_size, metric_count, metric_table()))
        return false;
    clock_kind = clock;
    profile.header->clock = clock_kind;
    if (ranks && clock_kind != QUIPU_CLOCK_NONE) {
        profile.header->clock = QUIPU_CLOCK_NANOSECONDS;
        clock_kind = simulated_clock;
    }
    profile.header->start_epoch_ns = nanoseconds(CLOCK_REALTIME);
    first_calibration();
    identify();
    describe_further_metrics();
    make_function_table();
    return true;
}

#ifndef QUIPU_STATIC
/* Loads the MPI library if it is missing, because a script between launcher and program replaced LD_PRELOAD. The
 * library then finds the calls of the program itself. */
void load_mpi_library() {
    const char *library = getenv("QUIPU_PRELOAD");
    if (!library || !*library || !dlsym(RTLD_DEFAULT, "PMPI_Init"))
        return;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (loaded)
        dlclose(loaded);
    else if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL))
        quipu_attribute("mpi_problem", "LD_PRELOAD was replaced before the program started: MPI is not counted");
}
#endif

__attribute__((constructor(200))) void start() {
    decided = true;
    const char *folder = secure_getenv("QUIPU_DIR"); /* null if the program has more privileges */
    if (!folder || !*folder)
        return;
    if (!keep_settings()) {
        say("quipu: no memory; this process is not measured [no-memory]\n");
        return;
    }
    set_active(true); /* the file is created at first use, so shells and wrappers leave no file */
    may_fork = pthread_atfork(before_fork, parent_after_fork, child_after_fork) == 0;
    if (samples_functions())
        begin_thread(); /* because it may never enter a region */
#ifndef QUIPU_STATIC
    load_mpi_library();
#endif
}

__attribute__((destructor(200))) void end() {
    if (!active || !profile.header || is_unknown_child())
        return;
    const uint64_t begun = may_call_system() ? processor_time() : 0;
    for_each_thread(settle);
    sample_now();
    count_before_flush(false);
    write_rests();
    flush(QUIPU_ENDED);
    const Locked locked;
    profile.seal(begun);
}

} // namespace

bool open_profile() {
    if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE))
        return active;
    const Locked locked;
    if (!opened) {
        const uint64_t begun = processor_time();
        const bool made = make_profile();
        if (made)
            profile.header->setup_ns = processor_time_since(begun);
        set_active(active && made);
        __atomic_store_n(&opened, made ? 1 : -1, __ATOMIC_RELEASE);
    }
    return active;
}

} // namespace quipu

extern "C" {

#ifndef QUIPU_STATIC
/* Intercepts _Fork; the fork() of the C library does not call this function. */
QUIPU_BARE __attribute__((visibility("default"))) pid_t _Fork() noexcept {
    using namespace quipu;
    const Fork real = fork_behind();
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (!active || !may_fork)
        return real();
    before_fork();
    const pid_t child = real();
    const int failure = errno;
    if (child == 0)
        child_after_fork();
    else
        parent_after_fork();
    errno = failure;
    return child;
}
#endif

void quipu_attribute(const char *key, const char *value) {
    using namespace quipu;
    if (!active || !open_profile())
        return;
    const Locked locked;
    set_attribute(key, value);
}

void quipu_location_attribute(const char *key, const char *value) {
    using namespace quipu;
    if (!active || !open_profile())
        return;
    if (quipu_thread *thread = measured_thread()) {
        const Locked locked;
        set_attribute(key, value, uint64_t{thread->location} + 1);
    }
}

void quipu_share(const struct quipu_ranks *shared) { quipu::ranks = shared; }

void quipu_flush(void) {
    using namespace quipu;
    if (!active || !profile.header)
        return;
    /* Other threads continue, and only they may change their nodes. */
    if (quipu_thread *thread = measured_thread()) {
        settle(thread);
        settle_time(thread);
    }
    sample_now();
    count_before_flush(false);
    flush(QUIPU_FLUSHED);
}
}

/* The life of a measured process: start, regions, attributes, flush, end, fork. */
#include "clock.h"
#include "tree.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace quipu {

Profile profile;
uint32_t clock_kind;
bool active, decided;
const quipu_ranks *ranks;

uint64_t simulated_ticks() { return ranks->now(); }

quipu_costs event_costs;
bool forked;
int opened; /* the profile was made (1) or could not be (-1) */

const char *metric_table() {
    return
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description)                                                \
    name "\t" unit "\t" kind "\t" over_locations "\t" description "\n"
#include "metrics.def"
        ;
}

void set_attribute(const char *key, const char *value, uint64_t owner) {
    const char *parts[] = {key, value};
    profile.add_text(QUIPU_TEXT_ATTRIBUTE, owner, parts, 2);
}

namespace {

void set_number(const char *key, long long value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    set_attribute(key, text);
}

/* Returns the seconds that readers take the text for. Programs that are linked statically may have no libm to round. */
double set_nanoseconds(const char *key, double value) {
    const auto hundredths = static_cast<long long>(value * 100);
    char text[48];
    snprintf(text, sizeof text, "%lld.%02lld", hundredths / 100, hundredths % 100);
    set_attribute(key, text);
    return static_cast<double>(hundredths) / 100 * 1e-9;
}

/* CPUs that the process may use, as a list like 0-3,7. */
void affinity_list(char *text, size_t size) {
    cpu_set_t *set = CPU_ALLOC(4096);
    size_t bytes = CPU_ALLOC_SIZE(4096);
    text[0] = '\0';
    if (set && sched_getaffinity(0, bytes, set) == 0) {
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
    CPU_FREE(set);
}

void resource_use() {
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0)
        return;
    set_number("max_rss_bytes", static_cast<long long>(use.ru_maxrss) * 1024);
    set_number("voluntary_switches", use.ru_nvcsw);
    set_number("involuntary_switches", use.ru_nivcsw);
}

/* Both clocks at one moment: of several readings the quickest, which nothing came between. */
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
    if (!ranks || state == QUIPU_ENDED) { /* thousands of ranks say the same */
        const Locked locked;
        resource_use();
    }
    read_clock_pair(&profile.header->flush_ticks, &profile.header->flush_ns);
    profile.header->state = state;
}

/* Shared by a process and its next child: the child has its own copy of what is mapped. */
int *detached;

QUIPU_BARE void before_fork() {
    lock();
    if (detached)
        return;
    void *page = mmap(nullptr, sizeof *detached, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    detached = page == MAP_FAILED ? nullptr : static_cast<int *>(page);
}

/* The parent must not change the call tree before the child has copied it; a child that cannot run is not awaited long.
 */
QUIPU_BARE void parent_after_fork() {
    constexpr uint64_t patience_ns = 1000000000;
    const uint64_t start = nanoseconds(CLOCK_MONOTONIC);
    while (active && detached && !__atomic_load_n(detached, __ATOMIC_ACQUIRE) &&
           nanoseconds(CLOCK_MONOTONIC) - start < patience_ns)
        sched_yield();
    if (detached)
        *detached = 0;
    unlock();
}

/* The child of fork counts in a profile of its own, which is made when it next enters or leaves a region. */
QUIPU_BARE void child_after_fork() {
    if (active && opened > 0) {
        profile.detach();
        keep_one_thread();
        forget_reduction();
        forked = true;
        opened = 0;
    }
    if (detached)
        __atomic_store_n(detached, 1, __ATOMIC_RELEASE);
    detached = nullptr; /* the parent's */
    unlock();
}

void identify() {
    char text[512];
    const char *rank = ranks ? nullptr : getenv("QUIPU_RANK");
    const char *size = ranks ? nullptr : getenv("QUIPU_RANKS");
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

/* Ticks per nanosecond are known well enough for a process that is killed before its first flush. What measuring costs
 * is found out while this takes its time. */
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
}

bool make_profile() {
    read_run_filter();
    if (!profile.create(getenv("QUIPU_DIR"), sizeof(Node), QUIPU_METRIC_COUNT, metric_table()))
        return false;
    clock_kind = choose_clock(getenv("QUIPU_CLOCK"));
    profile.header->clock = clock_kind;
    if (ranks && clock_kind != QUIPU_CLOCK_NONE) {
        profile.header->clock = QUIPU_CLOCK_NANOSECONDS;
        clock_kind = simulated_clock;
    }
    profile.header->start_epoch_ns = nanoseconds(CLOCK_REALTIME);
    first_calibration();
    identify();
    return true;
}

__attribute__((constructor(200))) void start() {
    const char *folder = getenv("QUIPU_DIR");
    decided = true;
    if (!folder || !*folder)
        return;
    active = true; /* the file is made at first use: shells and wrappers in between leave none */
    pthread_atfork(before_fork, parent_after_fork, child_after_fork);
}

__attribute__((destructor(200))) void end() {
    if (!active || !profile.header)
        return;
    for_each_thread(settle);
    write_rests();
    flush(QUIPU_ENDED);
    const Locked locked;
    profile.seal();
}

} // namespace

bool open_profile() {
    if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE))
        return active;
    const Locked locked;
    if (!opened) {
        const bool made = make_profile();
        active = active && made;
        __atomic_store_n(&opened, made ? 1 : -1, __ATOMIC_RELEASE);
    }
    return active;
}

} // namespace quipu

extern "C" {

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
    /* Other threads go on; only they may touch their nodes. */
    if (quipu_thread *thread = measured_thread())
        settle(thread);
    flush(QUIPU_FLUSHED);
}
}

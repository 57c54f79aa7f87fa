/* The life of a measured process: start, regions, attributes, flush, end, fork. */
#include "clock.h"
#include "filter.h"
#include "tree.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

namespace quipu {

Profile profile;
uint32_t clock_kind;
bool active, decided;
const quipu_ranks *ranks;

uint64_t simulated_ticks() { return ranks->now(); }

uint64_t regions;
quipu_costs event_costs;
bool forked;
bool may_fork; /* the runtime is asked */
int opened; /* the profile was made (1) or could not be (-1) */

/* FNV-1a */
uint64_t hash_more(const void *data, size_t bytes, uint64_t hash) {
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 1099511628211u;
    return hash;
}

uint64_t hash_of(const char *text, uint64_t hash = 14695981039346656037u) {
    return hash_more(text, strlen(text), hash);
}

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

Filter filter;

constexpr size_t page_of_regions = 1024, most_pages = 4096;
const RegionRecord **region_pages[most_pages];

struct KnownRegion : RegionRecord {
    uint64_t hash;
    KnownRegion *next;
    KnownRegion *older;
};

constexpr size_t buckets = 1024;
KnownRegion *known[buckets];
KnownRegion *newest;

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

/* A name as it is kept: names that do not fit into a chunk are cut, and get their hash for an end. */
struct KeptName {
    int length; /* of the part that is kept */
    char end[24];
};

KeptName kept_name(const char *name, size_t most) {
    KeptName kept = {0, ""};
    size_t length = strlen(name);
    if (length > most) {
        snprintf(kept.end, sizeof kept.end, "...#%016llx", static_cast<unsigned long long>(hash_of(name)));
        length = most;
        while (length > 0 && (name[length] & 0xc0) == 0x80) /* not within a character */
            length--;
    }
    kept.length = static_cast<int>(length);
    return kept;
}

/* Together they fit into a chunk. */
constexpr size_t longest_name = size_t{32} << 10, longest_display = size_t{16} << 10, longest_file = size_t{8} << 10;
static_assert(longest_name + longest_display + longest_file + 256 < chunk_room);

/* The record of a region that a profile keeps; null if there is no memory. Under the lock. */
char *record_of(const quipu_region *region, const char *display, const char *file) {
    const KeptName name = kept_name(region->name, longest_name), shown = kept_name(display, longest_display),
                   place = kept_name(file, longest_file);
    const size_t size = static_cast<size_t>(name.length + shown.length + place.length) + 128;
    auto *text = static_cast<char *>(keep(size));
    if (text)
        snprintf(text, size, "%.*s%s\x1f%.*s%s\x1f%.*s%s\x1f%u\x1f%u\x1f%d", name.length, region->name, name.end,
                 shown.length, display, shown.end, place.length, file, place.end, region->line, region->kind,
                 region->quiet ? 1 : 0);
    return text;
}

bool names(const char *record, const char *name) {
    const KeptName kept = kept_name(name, longest_name);
    const size_t length = static_cast<size_t>(kept.length), end = strlen(kept.end);
    return strncmp(record, name, length) == 0 && strncmp(record + length, kept.end, end) == 0 &&
           record[length + end] == '\x1f';
}

/* False if there is no room. */
bool remember_region(uint64_t id, const RegionRecord *record) {
    if (id / page_of_regions >= most_pages)
        return false;
    const RegionRecord **&page = region_pages[id / page_of_regions];
    if (!page)
        page = static_cast<const RegionRecord **>(keep(sizeof(RegionRecord *) * page_of_regions));
    if (page)
        page[id % page_of_regions] = record;
    return page != nullptr;
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
    if ((!ranks || state == QUIPU_ENDED) && may_call_system()) { /* thousands of ranks say the same */
        const Locked locked;
        resource_use();
    }
    read_clock_pair(&profile.header->flush_ticks, &profile.header->flush_ns);
    profile.header->state = state;
}

/* The lock is held during a fork. The parent goes on at once: what of its call tree it changes, the child does not use,
 * but for what is noted here. */
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

/* The child of fork counts in a profile of its own, which is made when it next enters or leaves a region. */
QUIPU_BARE void child_after_fork() {
    if (active && opened > 0) {
        active = profile.detach();
        keep_one_thread();
        forget_reduction();
        forked = true;
        opened = 0;
        if (!active)
            say("quipu: no memory to measure a forked process\n");
    }
    profile.after_fork();
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

void read_run_filter() {
    const char *path = getenv("QUIPU_FILTER");
    if (!path || !*path)
        return;
    FilterError error;
    if (read_filter(path, filter, error))
        return;
    /* As Score-P does: a filter that means something else than its author thinks would spoil the measurement. */
    if (error.line)
        fprintf(stderr, "quipu: error: %s:%u: %s (from QUIPU_FILTER)\n", path, error.line, error.message);
    else
        fprintf(stderr, "quipu: error: %s: %s (from QUIPU_FILTER)\n", path, error.message);
    _exit(1);
}

/* Bytes; QUIPU_PROFILE_LIMIT is in MiB, 0: no limit. */
uint64_t profile_limit() {
    constexpr uint64_t usual = 256, most = uint64_t{1} << 40;
    const char *text = getenv("QUIPU_PROFILE_LIMIT");
    char *end = nullptr;
    if (!text || !*text)
        return usual << 20;
    const unsigned long long mebibytes = strtoull(text, &end, 10);
    if (*end || *text < '0' || *text > '9' || mebibytes > most) {
        say("quipu: error: QUIPU_PROFILE_LIMIT=%s: it must be a number of MiB, 0 for no limit\n", text);
        _exit(1);
    }
    return mebibytes << 20;
}

bool make_profile() {
    if (!may_fork) { /* a child would count for its parent */
        say("quipu: no memory; this process is not measured\n");
        return false;
    }
    read_run_filter();
    if (!profile.create(getenv("QUIPU_DIR"), profile_limit(), sizeof(Node), QUIPU_METRIC_COUNT, metric_table()))
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
    decided = true;
    const char *folder = secure_getenv("QUIPU_DIR"); /* a program with more rights than its caller is not measured */
    if (!folder || !*folder)
        return;
    active = true; /* the file is made at first use: shells and wrappers in between leave none */
    may_fork = pthread_atfork(before_fork, parent_after_fork, child_after_fork) == 0;
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

void register_region(quipu_region *region) {
    const char *display = region->display ? region->display : region->name;
    const char *file = region->file ? region->file : "";
    if (region->kind != QUIPU_MPI && !filter.includes(region->file, region->name, display))
        region->quiet = 1;
    if (!region->hash)
        __atomic_store_n(&region->hash, hash_of(region->name), __ATOMIC_RELAXED);
    /* Static functions of one name may be many; copies of one inline function may have been optimized differently. */
    const uint32_t rows = region->weights ? region->counters + 1 : 0;
    uint64_t hash = hash_of(region->name);
    hash = hash_of(file, hash + region->kind);
    hash = hash_more(&region->line, sizeof region->line, hash);
    hash = hash_more(&region->quiet, sizeof region->quiet, hash);
    hash = hash_more(region->weights, sizeof(int64_t) * QUIPU_WEIGHTED * rows, hash);
    KnownRegion **bucket = &known[hash % buckets];
    for (KnownRegion *entry = *bucket; entry; entry = entry->next) {
        if (entry->hash == hash && names(entry->text, region->name)) {
            __atomic_store_n(&region->id, entry->id, __ATOMIC_RELEASE);
            return;
        }
    }
    auto *entry = static_cast<KnownRegion *>(keep(sizeof(KnownRegion)));
    const size_t weight_bytes = sizeof(int64_t) * QUIPU_WEIGHTED * rows;
    char *text = entry ? record_of(region, display, file) : nullptr; /* the descriptor goes away with its library */
    auto *weights = text ? static_cast<int64_t *>(keep(weight_bytes + 1)) : nullptr;
    const uint64_t id = regions + 1;
    if (!weights || !remember_region(id, entry)) {
        profile.note_lost();
        return; /* it is tried again */
    }
    regions = id;
    if (rows)
        memcpy(weights, region->weights, weight_bytes);
    const bool in_file = profile.add_weights(id, region->weights, rows, QUIPU_BLOCKS, QUIPU_WEIGHTED) &&
                         profile.add_text(QUIPU_TEXT_REGION, id, &text, 1);
    const char *library = region->weights ? new_library_of(region->weights) : nullptr;
    if (library)
        set_attribute(library, "");
    *entry = {{id, text, weights, rows, region->quiet != 0, in_file}, hash, *bucket, newest};
    *bucket = newest = entry;
    __atomic_store_n(&region->id, entry->id, __ATOMIC_RELEASE);
}

const RegionRecord *region_of(uint64_t id) {
    const RegionRecord **page = id <= regions ? region_pages[id / page_of_regions] : nullptr;
    return page ? page[id % page_of_regions] : nullptr;
}

void each_region(void (*visit)(const RegionRecord *)) {
    for (const KnownRegion *entry = newest; entry; entry = entry->older)
        visit(entry);
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

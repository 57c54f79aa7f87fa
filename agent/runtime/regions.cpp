/* What the process knows of its regions, and their place in the profile. */
#include "filter.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace quipu {

uint64_t regions;

uint64_t hash_more(const void *data, size_t bytes, uint64_t hash) {
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ static_cast<const unsigned char *>(data)[i]) * 1099511628211u;
    return hash;
}

namespace {

uint64_t hash_of(const char *text, uint64_t hash = 14695981039346656037u) {
    return hash_more(text, strlen(text), hash);
}

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

} // namespace

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

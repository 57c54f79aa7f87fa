// SPDX-License-Identifier: Apache-2.0
/* The regions of the process, and their place in the profile. */
#include "details.h"
#include "filter.h"
#include "leb128.h"
#include "settings.h"
#include "teams.h"
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
RegionRecord **region_pages[most_pages];

struct KnownRegion : RegionRecord {
    uint64_t hash;
    KnownRegion *next;
};

constexpr size_t buckets = 1024;
KnownRegion *known[buckets];

/* A stored name. A name that does not fit into a chunk is truncated, and ends with its hash. */
struct KeptName {
    int length; /* length of the stored part */
    char end[24];
};

KeptName kept_name(const char *name, size_t most) {
    KeptName kept = {0, ""};
    size_t length = strlen(name);
    if (length > most) {
        snprintf(kept.end, sizeof kept.end, "...#%016llx", static_cast<unsigned long long>(hash_of(name)));
        length = most;
        while (length > 0 && (name[length] & 0xc0) == 0x80) /* not inside of a UTF-8 character */
            length--;
    }
    kept.length = static_cast<int>(length);
    return kept;
}

/* Largest number of bytes of the stored texts. A record with the longest name, displayed name and file fits into a
 * chunk. */
constexpr size_t longest_name = size_t{32} << 10, longest_display = size_t{16} << 10, longest_file = size_t{8} << 10;
static_assert(longest_name + longest_display + longest_file + 256 < chunk_room);

const char *file_of(const quipu_region *region) { return region->file ? region->file : ""; }
const char *display_of(const quipu_region *region) { return region->display ? region->display : region->name; }
bool is_packed(const quipu_region *region) { return region->kind & QUIPU_PACKED; }
uint32_t kind_of(const quipu_region *region) { return region->kind & ~uint32_t{QUIPU_PACKED}; }

/* Reads rows of weights, one after the other. */
class Rows {
  public:
    Rows(const void *weights, bool packed) : next(static_cast<const uint8_t *>(weights)), packed(packed) {}

    /* Reads a row. A packed row may have one more column: the number of additions to counters that counting itself
     * executes. Returns this number; 0 without this column. */
    int64_t read(int64_t *row) {
        if (!packed) {
            memcpy(row, next, sizeof(int64_t) * QUIPU_WEIGHTED);
            next += sizeof(int64_t) * QUIPU_WEIGHTED;
            return 0;
        }
        uint64_t columns = number(false);
        for (int column = 0; column < QUIPU_WEIGHTED; column++, columns >>= 1)
            row[column] = columns & 1 ? static_cast<int64_t>(number(true)) : 0;
        return columns & 1 ? static_cast<int64_t>(number(true)) : 0;
    }
    /* Reads a row of a scope (an inlined function): the index of a row of the whole function, visits, then the weights.
     */
    void read_numbered(int64_t *row) {
        row[0] = static_cast<int64_t>(number(false));
        row[1] = static_cast<int64_t>(number(true));
        read(row + 2);
    }

  private:
    uint64_t number(bool is_signed) { return read_leb128(next, is_signed); }

    const uint8_t *next;
    bool packed;
};

/* Creates the record of a region for the profile; null if there is no memory. Call under the lock. */
char *record_of(const quipu_region *region) {
    const char *display = display_of(region), *file = file_of(region);
    const KeptName name = kept_name(region->name, longest_name), shown = kept_name(display, longest_display),
                   place = kept_name(file, longest_file);
    const size_t size = static_cast<size_t>(name.length + shown.length + place.length) + 128;
    auto *text = static_cast<char *>(keep(size));
    if (text)
        snprintf(text, size, "%.*s%s\x1f%.*s%s\x1f%.*s%s\x1f%u\x1f%u\x1f%u", name.length, region->name, name.end,
                 shown.length, display, shown.end, place.length, file, place.end, region->line, kind_of(region),
                 region->hook);
    return text;
}

bool names(const char *record, const char *name) {
    const KeptName kept = kept_name(name, longest_name);
    const size_t length = static_cast<size_t>(kept.length), end = strlen(kept.end);
    return strncmp(record, name, length) == 0 && strncmp(record + length, kept.end, end) == 0 &&
           record[length + end] == '\x1f';
}

/* Returns the region with this id; null if it is unknown. */
RegionRecord *of_id(uint64_t id) {
    RegionRecord **page =
        id <= __atomic_load_n(&regions, __ATOMIC_ACQUIRE) ? region_pages[id / page_of_regions] : nullptr;
    return page ? page[id % page_of_regions] : nullptr;
}

/* Stores the record of an id. Returns false if there is no memory. */
bool remember_region(uint64_t id, RegionRecord *record) {
    if (id / page_of_regions >= most_pages)
        return false;
    RegionRecord **&page = region_pages[id / page_of_regions];
    if (!page)
        page = static_cast<RegionRecord **>(keep(sizeof(RegionRecord *) * page_of_regions));
    if (page)
        page[id % page_of_regions] = record;
    return page != nullptr;
}

void apply_filter(quipu_region *region) {
    if (kind_of(region) != QUIPU_MPI && kind_of(region) != QUIPU_FILE &&
        !filter.includes(region->file, region->name, display_of(region)))
        region->hook = QUIPU_LEFT_OUT;
    if (!region->hash)
        __atomic_store_n(&region->hash, hash_of(region->name), __ATOMIC_RELAXED);
}

/* Returns a hash of all data of a region. The name does not identify a region: several static functions may have the
 * same name, and the compiler may have optimized copies of an inline function differently in several files. */
uint64_t hash_of_all(const quipu_region *region, uint32_t rows) {
    uint64_t hash = hash_of(region->name);
    hash = hash_of(file_of(region), hash + region->kind);
    hash = hash_more(&region->line, sizeof region->line, hash);
    hash = hash_more(&region->hook, sizeof region->hook, hash);
    int64_t row[QUIPU_SCOPE_ROW];
    Rows weights(region->weights, is_packed(region));
    for (uint32_t i = 0; i < rows; i++) {
        weights.read(row);
        hash = hash_more(row, sizeof(int64_t) * QUIPU_WEIGHTED, hash);
    }
    for (uint64_t i = 0; i < region->scope_count; i++) {
        const quipu_scope *scope = &region->scopes[i];
        hash = hash_more(&scope->parent, sizeof scope->parent, hash);
        Rows in_scope(scope->rows, true);
        for (uint32_t at = 0; at < scope->count; at++) {
            in_scope.read_numbered(row);
            hash = hash_more(row, sizeof row, hash);
        }
        if (i > 0) {
            hash = hash_of(scope->region.name, hash + scope->region.hook);
            hash = hash_of(file_of(&scope->region), hash + scope->region.line);
        }
    }
    return hash;
}

/* Creates the stored data of a region without its hash. scope: the scope of an inlined function, or the first scope of
 * a function, which is the function itself; null without scopes. Returns null if there is no memory. */
KnownRegion *known_region(const quipu_region *region, uint64_t id, uint32_t rows, const quipu_scope *scope) {
    const size_t weight_bytes = sizeof(int64_t) * QUIPU_WEIGHTED * rows;
    const size_t scope_bytes = scope ? sizeof(int64_t) * QUIPU_SCOPE_ROW * scope->count : 0;
    auto *entry = static_cast<KnownRegion *>(keep(sizeof(KnownRegion)));
    char *text = entry ? record_of(region) : nullptr; /* a copy, because the descriptor disappears with its library */
    const size_t added_bytes = sizeof(int64_t) * rows;
    auto *weights = text ? static_cast<int64_t *>(keep(weight_bytes + scope_bytes + added_bytes + 1)) : nullptr;
    if (!weights || !remember_region(id, entry))
        return nullptr;
    int64_t *additions = weights + size_t{QUIPU_WEIGHTED} * rows, *scope_rows = additions + rows;
    Rows given(region->weights, is_packed(region));
    for (uint32_t row = 0; row < rows; row++)
        additions[row] = given.read(weights + size_t{row} * QUIPU_WEIGHTED);
    Rows in_scope(scope ? scope->rows : nullptr, true);
    for (uint32_t row = 0; scope && row < scope->count; row++)
        in_scope.read_numbered(scope_rows + size_t{row} * QUIPU_SCOPE_ROW);
    entry->id = id;
    entry->text = text;
    entry->weights = weights;
    entry->additions = additions;
    entry->rows = rows;
    entry->hook = static_cast<quipu_hook>(region->hook);
    entry->is_body = is_body(region->name);
    entry->is_user = kind_of(region) == QUIPU_USER;
    entry->is_mpi = kind_of(region) == QUIPU_MPI;
    entry->is_openmp = kind_of(region) == QUIPU_OPENMP;
    entry->scope_rows = scope_rows;
    entry->scope_row_count = scope ? scope->count : 0;
    entry->parent = scope ? scope->parent : 0;
    entry->scopes = region->scope_count;
    return entry;
}

/* Writes the rows of a scope as weights of its region, each `shift` rows later. shift: 1 for an inlined function, whose
 * row 0 is for the visits of its own node; 0 for the function itself. */
bool write_rows(const RegionRecord *region, uint32_t shift) {
    for (uint32_t i = 0; i < region->scope_row_count; i++) {
        const int64_t *row = region->scope_rows + size_t{i} * QUIPU_SCOPE_ROW;
        const uint32_t number = static_cast<uint32_t>(row[0]) + shift;
        if (row[1] && !profile.add_weights(region->id, row + 1, number, 1, QUIPU_VISITS, 1))
            return false;
        if (shift && !profile.add_weights(region->id, row + 2, number, 1, QUIPU_BLOCKS, QUIPU_WEIGHTED))
            return false;
    }
    return true;
}

/* Writes a region into the file. Returns false if there is no space. */
bool write_region(const RegionRecord *region) {
    return profile.add_weights(region->id, region->weights, 0, region->rows, QUIPU_BLOCKS, QUIPU_WEIGHTED) &&
           profile.add_weights(region->id, region->additions, 0, region->rows, metric_count, 1) &&
           write_rows(region, region->index ? 1 : 0) &&
           profile.add_text(QUIPU_TEXT_REGION, region->id, &region->text, 1);
}

/* Creates the stored data of a region and of its scopes, which have the following ids; null if there is no memory. */
KnownRegion *known_whole(const quipu_region *region, uint64_t first, uint32_t rows) {
    KnownRegion *whole = known_region(region, first, rows, region->scope_count ? region->scopes : nullptr);
    KnownRegion *entry = whole;
    for (uint32_t i = 1; entry && i < region->scope_count; i++) {
        entry = known_region(&region->scopes[i].region, first + i, 0, &region->scopes[i]);
        if (entry)
            entry->index = i;
    }
    return entry ? whole : nullptr;
}

} // namespace

void read_run_filter() {
    const char *path = setting("QUIPU_FILTER");
    if (!path || !*path)
        return;
    FilterError error;
    if (read_filter(path, filter, error))
        return;
    /* An invalid filter ends the program, as in Score-P, because it would measure other functions than its author
     * expects. */
    if (error.line)
        fprintf(stderr, "quipu: error: %s:%u: %s (from QUIPU_FILTER) [bad-filter]\n", path, error.line, error.message);
    else
        fprintf(stderr, "quipu: error: %s: %s (from QUIPU_FILTER) [bad-filter]\n", path, error.message);
    _exit(1);
}

/* Registers a region, unless an equal region is known. Returns the id; 0 if there is no memory. address: an address in
 * the program or library with the region. */
static uint64_t registered(quipu_region *region, const void *address) {
    apply_filter(region);
    for (uint64_t i = 1; i < region->scope_count; i++)
        apply_filter(&region->scopes[i].region);
    const uint32_t rows = region->weights ? region->counters + 1 : 0;
    const uint64_t hash = hash_of_all(region, rows);
    KnownRegion **bucket = &known[hash % buckets];
    for (const KnownRegion *found = *bucket; found; found = found->next)
        if (found->hash == hash && names(found->text, region->name))
            return found->id;
    const uint64_t count = region->scope_count ? region->scope_count : 1;
    KnownRegion *whole = known_whole(region, regions + 1, rows);
    if (!whole) {
        profile.note_lost();
        return 0; /* the next call tries again */
    }
    __atomic_store_n(&regions, regions + count, __ATOMIC_RELEASE);
    bool in_file = true;
    for (uint64_t id = whole->id; in_file && id <= regions; id++)
        in_file = write_region(region_of(id));
    for (uint64_t id = whole->id; id <= regions; id++)
        of_id(id)->in_file = in_file;
    const char *library = region->weights ? new_library_of(address) : nullptr;
    if (library)
        set_attribute(library, "");
    whole->hash = hash;
    whole->next = *bucket;
    *bucket = whole;
    return whole->id;
}

/* Returns descriptor `number` of an array that the LLVM pass emitted. Its elements are shorter than quipu_region: they
 * have QUIPU_MADE_REGION bytes. */
static quipu_region *made_region(quipu_region *first, int64_t number) {
    static_assert(offsetof(quipu_region, name) == QUIPU_MADE_REGION);
    return reinterpret_cast<quipu_region *>(reinterpret_cast<char *>(first) + number * QUIPU_MADE_REGION);
}

void register_region(quipu_region *region) {
    if (!region->details) {
        const uint64_t id = registered(region, region->weights);
        for (uint64_t i = 1; id && i < region->scope_count; i++)
            __atomic_store_n(&region->scopes[i].region.id, id + i, __ATOMIC_RELEASE);
        __atomic_store_n(&region->id, id, __ATOMIC_RELEASE);
        return;
    }
    quipu_region whole;
    if (!read_details(region, &whole)) {
        profile.note_lost();
        return;
    }
    const uint64_t id = registered(&whole, region);
    for (uint64_t i = 1; id && i < whole.scope_count; i++)
        if (const quipu_region &scope = whole.scopes[i].region; scope.details) {
            quipu_region *made = made_region(region, scope.details);
            made->hook = scope.hook;
            __atomic_store_n(&made->id, id + i, __ATOMIC_RELEASE);
        }
    region->hook = whole.hook;
    __atomic_store_n(&region->id, id, __ATOMIC_RELEASE);
}

const RegionRecord *region_of(uint64_t id) { return of_id(id); }

} // namespace quipu

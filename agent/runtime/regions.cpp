/* The regions of a measured process: which there are, and what the profile says about them. */
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

static uint64_t hash_of(const char *text, uint64_t hash = 14695981039346656037u) {
    return hash_more(text, strlen(text), hash);
}

namespace {

Filter filter;

struct KnownRegion : RegionRecord {
    uint64_t hash;
    KnownRegion *next;
};

constexpr size_t buckets = 1024;
KnownRegion *known[buckets];
const RegionRecord **by_id; /* [room]; null: found no room */
uint64_t room;

const char *file_of(const quipu_region *region) { return region->file ? region->file : ""; }
const char *display_of(const quipu_region *region) { return region->display ? region->display : region->name; }
size_t row_bytes(const quipu_scope *scope) { return sizeof(int64_t) * QUIPU_SCOPE_ROW * scope->count; }

/* The record of a region that a profile keeps; null if there is no memory. */
char *record_of(const quipu_region *region) {
    const char *file = file_of(region), *display = display_of(region);
    size_t size = strlen(region->name) + strlen(display) + strlen(file) + 40;
    auto *text = static_cast<char *>(malloc(size));
    if (text)
        snprintf(text, size, "%s\x1f%s\x1f%s\x1f%u\x1f%u\x1f%u", region->name, display, file, region->line,
                 region->kind, region->hook);
    return text;
}

bool names(const char *record, const char *name) {
    size_t length = strlen(name);
    return strncmp(record, name, length) == 0 && record[length] == '\x1f';
}

void apply_filter(quipu_region *region) {
    if (region->kind != QUIPU_MPI && !filter.includes(region->file, region->name, display_of(region)))
        region->hook = QUIPU_LEFT_OUT;
    if (!region->hash)
        __atomic_store_n(&region->hash, hash_of(region->name), __ATOMIC_RELAXED);
}

/* Static functions of one name may be many; copies of one inline function may have been optimized differently. */
uint64_t hash_of_all(const quipu_region *region, uint32_t rows) {
    uint64_t hash = hash_of(region->name);
    hash = hash_of(file_of(region), hash + region->kind);
    hash = hash_more(&region->line, sizeof region->line, hash);
    hash = hash_more(&region->hook, sizeof region->hook, hash);
    hash = hash_more(region->weights, sizeof(int64_t) * QUIPU_WEIGHTED * rows, hash);
    for (uint64_t i = 0; i < region->scope_count; i++) {
        const quipu_scope *scope = &region->scopes[i];
        hash = hash_more(&scope->parent, sizeof scope->parent, hash);
        hash = hash_more(scope->rows, row_bytes(scope), hash);
        if (i > 0) {
            hash = hash_of(scope->region.name, hash + scope->region.hook);
            hash = hash_of(file_of(&scope->region), hash + scope->region.line);
        }
    }
    return hash;
}

/* Writes the rows of a scope, as weights of the region `id`, from row number `shift` on. */
bool add_rows(uint64_t id, const quipu_scope *scope, uint32_t shift) {
    for (uint32_t i = 0; i < scope->count; i++) {
        const int64_t *row = scope->rows + size_t{i} * QUIPU_SCOPE_ROW;
        const uint32_t number = static_cast<uint32_t>(row[0]) + shift;
        if (row[1] && !profile.add_weights(id, row + 1, number, 1, QUIPU_VISITS, 1))
            return false;
        if (shift && !profile.add_weights(id, row + 2, number, 1, QUIPU_BLOCKS, QUIPU_WEIGHTED))
            return false;
    }
    return true;
}

bool make_room(uint64_t count) {
    if (regions + count < room)
        return true;
    const uint64_t more = 2 * (regions + count) + 64;
    void *grown = realloc(static_cast<void *>(by_id), more * sizeof(RegionRecord *));
    if (!grown)
        return false;
    by_id = static_cast<const RegionRecord **>(grown);
    memset(static_cast<void *>(by_id + room), 0, (more - room) * sizeof(RegionRecord *));
    room = more;
    return true;
}

/* Writes what the profile keeps of one region, and returns it; null if there is no room. scope: the rows of a function
 * that is part of another, or of what it is to itself; null if there are none. */
KnownRegion *add_region(quipu_region *region, uint64_t id, uint32_t rows, const quipu_scope *scope) {
    const size_t weight_bytes = sizeof(int64_t) * QUIPU_WEIGHTED * rows, scope_bytes = scope ? row_bytes(scope) : 0;
    auto *entry = static_cast<KnownRegion *>(calloc(1, sizeof(KnownRegion)));
    char *text = record_of(region); /* the descriptor goes away with its library */
    auto *weights = static_cast<int64_t *>(malloc(weight_bytes + scope_bytes + 1));
    const bool inner = scope && scope->region.name;
    if (!entry || !text || !weights ||
        !profile.add_weights(id, region->weights, 0, rows, QUIPU_BLOCKS, QUIPU_WEIGHTED) ||
        (scope && !add_rows(id, scope, inner ? 1 : 0)) || !profile.add_text(QUIPU_TEXT_REGION, id, &text, 1)) {
        free(weights);
        free(entry);
        free(text);
        return nullptr;
    }
    if (rows)
        memcpy(weights, region->weights, weight_bytes);
    if (scope_bytes)
        memcpy(weights + size_t{QUIPU_WEIGHTED} * rows, scope->rows, scope_bytes);
    static_cast<RegionRecord &>(*entry) = {id,
                                           text,
                                           weights,
                                           rows,
                                           static_cast<quipu_hook>(region->hook),
                                           weights + size_t{QUIPU_WEIGHTED} * rows,
                                           scope ? scope->count : 0,
                                           scope ? scope->parent : 0,
                                           static_cast<uint32_t>(region->scope_count)};
    by_id[id] = entry;
    return entry;
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
    apply_filter(region);
    for (uint64_t i = 1; i < region->scope_count; i++)
        apply_filter(&region->scopes[i].region);
    const uint32_t rows = region->weights ? region->counters + 1 : 0;
    const uint64_t hash = hash_of_all(region, rows);
    KnownRegion **bucket = &known[hash % buckets];
    const KnownRegion *found = *bucket;
    while (found && !(found->hash == hash && names(found->text, region->name)))
        found = found->next;
    uint64_t id = found ? found->id : no_room;
    const uint64_t count = region->scope_count ? region->scope_count : 1;
    if (!found && make_room(count)) {
        id = regions + 1;
        regions += count;
        KnownRegion *entry = add_region(region, id, rows, region->scope_count ? region->scopes : nullptr);
        bool whole = entry != nullptr;
        for (uint64_t i = 1; whole && i < region->scope_count; i++)
            whole = add_region(&region->scopes[i].region, id + i, 0, &region->scopes[i]) != nullptr;
        if (const char *library = whole && region->weights ? new_library_of(region->weights) : nullptr)
            set_attribute(library, "");
        if (whole) {
            entry->hash = hash;
            entry->next = *bucket;
            *bucket = entry;
        } else {
            id = no_room;
        }
    }
    if (id == no_room)
        profile.note_lost();
    for (uint64_t i = 1; i < region->scope_count; i++)
        __atomic_store_n(&region->scopes[i].region.id, id == no_room ? id : id + i, __ATOMIC_RELEASE);
    __atomic_store_n(&region->id, id, __ATOMIC_RELEASE);
}

const RegionRecord *record_of_region(uint64_t id) { return id < room ? by_id[id] : nullptr; }

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
/* Two hash tables in memory from mmap: the stored blocks by address (open addressing, linear probing), and the call
 * paths that hold them. One lock protects both tables. A thread needs the lock only once in several thousand allocated
 * bytes. A table of blocks that became too small is not released, because another thread may be reading its filter. */
#include "holders.h"

#include <sys/mman.h>

namespace quipu::memory {

const AddressFilter *address_filter;
quipu_node before_regions;

namespace {

struct Entry {
    const void *block; /* address; null: the entry is free */
    Share share;
};

/* The table of blocks. It has mask + 1 entries, a power of two, of which `count` are used. */
struct Blocks {
    AddressFilter filter; /* one bit per entry */
    size_t mask, count;
    Entry *entries;
};

/* The bytes that a call path holds. exact: in blocks that represent only themselves. sampled: in blocks that represent
 * other blocks, too (Share). */
struct Holder {
    quipu_node *path;                 /* null: the entry is free */
    int64_t exact, sampled;           /* now */
    int64_t peak_exact, peak_sampled; /* at the latest peak of the heap */
};

/* The table of call paths. mask, count: as in Blocks. */
struct Holders {
    size_t mask, count;
    Holder *holders;
};

Blocks *blocks;
Holders known;

bool locked;
/* A thread gives up after so many attempts to get the lock, and its block is not stored. The owner of the lock may have
 * left the code by siglongjmp, or this thread may be in a signal handler that interrupted the owner. */
constexpr int most_attempts = 100000;

bool lock() {
    for (int attempt = 0; attempt < most_attempts; attempt++) {
        if (!__atomic_load_n(&locked, __ATOMIC_RELAXED) && !__atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE))
            return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return false;
}

void unlock() { __atomic_store_n(&locked, false, __ATOMIC_RELEASE); }

/* Returns zeroed memory; null if there is none. */
void *pages(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

/* Returns the index at which the search for a block begins. */
size_t home_of(const Blocks *table, const void *block) {
    return static_cast<size_t>(hash_of(block) >> table->filter.shift);
}

void set_bit(Blocks *table, size_t place) {
    uint64_t *word = &table->filter.bits[place / 64];
    __atomic_store_n(word, *word | uint64_t{1} << (place % 64), __ATOMIC_RELAXED);
}

void clear_bit(Blocks *table, size_t place) {
    uint64_t *word = &table->filter.bits[place / 64];
    __atomic_store_n(word, *word & ~(uint64_t{1} << (place % 64)), __ATOMIC_RELAXED);
}

void put(Blocks *table, const Entry &entry) {
    size_t at = home_of(table, entry.block);
    set_bit(table, at);
    while (table->entries[at].block)
        at = (at + 1) & table->mask;
    table->entries[at] = entry;
    table->count++;
}

Entry *find(const Blocks *table, const void *block) {
    for (size_t at = home_of(table, block);; at = (at + 1) & table->mask) {
        Entry *entry = &table->entries[at];
        if (!entry->block)
            return nullptr;
        if (entry->block == block)
            return entry;
    }
}

/* Removes an entry, and moves later entries so that searches still find them (Knuth, The Art of Computer Programming 3,
 * 6.4, algorithm R). */
void remove(Blocks *table, Entry *entry) {
    const size_t home = home_of(table, entry->block);
    size_t hole = static_cast<size_t>(entry - table->entries);
    for (size_t at = (hole + 1) & table->mask; table->entries[at].block; at = (at + 1) & table->mask) {
        const size_t wanted = home_of(table, table->entries[at].block);
        if (((at - wanted) & table->mask) >= ((at - hole) & table->mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole].block = nullptr;
    table->count--;
    for (size_t at = home; table->entries[at].block; at = (at + 1) & table->mask)
        if (home_of(table, table->entries[at].block) == home)
            return;
    clear_bit(table, home);
}

/* Makes room for one more block. Returns false if there is no memory. At most an eighth of the entries is used, so that
 * the filter rejects most blocks that are not stored. */
bool make_room() {
    constexpr unsigned least = 12;
    if (blocks && 8 * (blocks->count + 1) <= blocks->mask)
        return true;
    const unsigned bits = blocks ? 64 - blocks->filter.shift + 2 : least;
    const size_t size = size_t{1} << bits, filter_bytes = size / 8;
    auto *memory = static_cast<char *>(pages(sizeof(Blocks) + filter_bytes + size * sizeof(Entry)));
    if (!memory)
        return false;
    auto *larger = reinterpret_cast<Blocks *>(memory);
    larger->filter = {64 - bits, reinterpret_cast<uint64_t *>(memory + sizeof(Blocks))};
    larger->mask = size - 1;
    larger->entries = reinterpret_cast<Entry *>(memory + sizeof(Blocks) + filter_bytes);
    for (size_t at = 0; blocks && at <= blocks->mask; at++)
        if (blocks->entries[at].block)
            put(larger, blocks->entries[at]);
    blocks = larger;
    __atomic_store_n(&address_filter, &larger->filter, __ATOMIC_RELEASE);
    return true;
}

Holder *place_of(const Holders &table, const quipu_node *path) {
    for (size_t at = hash_of(path) >> 32 & table.mask;; at = (at + 1) & table.mask)
        if (!table.holders[at].path || table.holders[at].path == path)
            return &table.holders[at];
}

/* Returns the entry of a call path, which is added if it is missing; null if there is no memory. */
Holder *holder_of(quipu_node *path) {
    constexpr size_t least = 256;
    if (!known.holders || 2 * (known.count + 1) > known.mask) {
        const size_t size = known.holders ? 2 * (known.mask + 1) : least;
        Holders larger = {size - 1, known.count, static_cast<Holder *>(pages(size * sizeof(Holder)))};
        if (!larger.holders)
            return nullptr;
        for (size_t at = 0; known.holders && at <= known.mask; at++)
            if (known.holders[at].path)
                *place_of(larger, known.holders[at].path) = known.holders[at];
        if (known.holders)
            munmap(known.holders, (known.mask + 1) * sizeof(Holder));
        known = larger;
    }
    Holder *holder = place_of(known, path);
    if (!holder->path) {
        holder->path = path;
        known.count++;
    }
    return holder;
}

/* Adds (sign = 1) or subtracts (sign = -1) a block at its call path. */
void count(const Share &share, int64_t sign) {
    Holder *holder = holder_of(share.path);
    if (holder)
        (share.exact ? holder->exact : holder->sampled) += sign * static_cast<int64_t>(share.bytes);
}

/* Sets the metric of each call path to the bytes that it held at the latest peak. The bytes of the heap beyond the
 * exact bytes are divided among the call paths in proportion to their sampled bytes. total: bytes of the heap at the
 * peak. place: index of the metric in a node. Returns the part of `total` that no call path got. */
uint64_t set_metrics(uint64_t total, uint32_t place) {
    int64_t exact = 0, sampled = 0;
    for (size_t at = 0; known.holders && at <= known.mask; at++) {
        const Holder &holder = known.holders[at];
        exact += holder.peak_exact > 0 ? holder.peak_exact : 0;
        sampled += holder.peak_sampled > 0 ? holder.peak_sampled : 0;
    }
    const int64_t remains = static_cast<int64_t>(total) - exact;
    const double scale = sampled > 0 && remains > 0 ? static_cast<double>(remains) / static_cast<double>(sampled) : 0;
    uint64_t set = 0;
    for (size_t at = 0; known.holders && at <= known.mask; at++) {
        const Holder &holder = known.holders[at];
        if (!holder.path || holder.path == &before_regions)
            continue;
        const uint64_t own =
            (holder.peak_exact > 0 ? static_cast<uint64_t>(holder.peak_exact) : 0) +
            (holder.peak_sampled > 0 ? static_cast<uint64_t>(scale * static_cast<double>(holder.peak_sampled)) : 0);
        __atomic_store_n(&holder.path->metrics[place], own, __ATOMIC_RELAXED);
        set += own;
    }
    return total > set ? total - set : 0;
}

} // namespace

void remember(const void *block, const Share &share) {
    if (!lock())
        return;
    if (make_room()) {
        if (Entry *stale = find(blocks, block)) { /* the release of this block was not recorded */
            count(stale->share, -1);
            remove(blocks, stale);
        }
        put(blocks, {block, share});
        count(share, 1);
    }
    unlock();
}

bool forget(const void *block, Share *share) {
    if (!lock())
        return false;
    Entry *entry = find(blocks, block);
    const bool found = entry != nullptr;
    if (found) {
        *share = entry->share;
        count(entry->share, -1);
        remove(blocks, entry);
    }
    unlock();
    return found;
}

void note_peak(uint64_t total, uint32_t place) {
    if (!lock())
        return;
    for (size_t at = 0; known.holders && at <= known.mask; at++) {
        known.holders[at].peak_exact = known.holders[at].exact;
        known.holders[at].peak_sampled = known.holders[at].sampled;
    }
    if (place)
        set_metrics(total, place);
    unlock();
}

void settle_peak(uint64_t total, uint32_t place, quipu_node *rest) {
    if (!lock())
        return;
    /* This adds an entry for `rest`, so that set_metrics sets its metric before the remaining bytes are added. */
    const Holder *holder = rest ? holder_of(rest) : nullptr;
    const uint64_t left = set_metrics(total, place);
    if (holder)
        __atomic_fetch_add(&rest->metrics[place], left, __ATOMIC_RELAXED);
    unlock();
}

void before_fork() { (void)lock(); }
void after_fork() { unlock(); }

} // namespace quipu::memory

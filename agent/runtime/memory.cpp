// SPDX-License-Identifier: Apache-2.0
/* Memory of the runtime. It never comes from the malloc of the program. */
#include "tree.h"

#include <sys/mman.h>

namespace quipu {

void *reserve(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

static char *at, *end; /* the rest of the latest block */

bool keep_more(size_t bytes) {
    constexpr size_t block = size_t{256} << 10;
    const size_t size = bytes > block ? bytes : block;
    auto *fresh = may_call_system() ? static_cast<char *>(reserve(size)) : nullptr;
    if (!fresh)
        return false;
    at = fresh;
    end = fresh + size;
    return true;
}

void *keep(size_t bytes) {
    bytes = (bytes + 15) & ~size_t{15};
    if (static_cast<size_t>(end - at) < bytes && !keep_more(bytes))
        return nullptr;
    void *memory = at;
    at += bytes;
    return memory;
}

namespace {

/* Multiplicative hashing by 2^64 / golden ratio (Knuth, The Art of Computer Programming 3, 6.4). */
size_t hash_of_link(const Node *from, uint64_t region) {
    constexpr uint64_t golden = 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(((uint64_t{from->id} * golden) ^ region) * golden >> 20);
}

void put_link(Links::Places *places, Link *link) {
    size_t at = hash_of_link(link->from, link->region) & places->mask;
    while (places->place[at])
        at = (at + 1) & places->mask;
    __atomic_store_n(&places->place[at], link, __ATOMIC_RELEASE);
}

} // namespace

Link *Links::find(const Node *from, uint64_t region) const {
    const Places *known = __atomic_load_n(&places, __ATOMIC_ACQUIRE);
    if (!known)
        return nullptr;
    for (size_t at = hash_of_link(from, region) & known->mask;; at = (at + 1) & known->mask) {
        Link *link = __atomic_load_n(&known->place[at], __ATOMIC_ACQUIRE);
        if (!link || (link->from == from && link->region == region))
            return link;
    }
}

bool Links::add(Link *link) {
    constexpr size_t smallest = 128;
    if (!places || 2 * (count + 1) > places->mask) {
        const size_t size = places ? 2 * (places->mask + 1) : smallest;
        auto *larger = static_cast<Places *>(keep(sizeof(Places) + size * sizeof(Link *)));
        if (!larger)
            return false;
        larger->mask = size - 1;
        for (size_t at = 0; places && at <= places->mask; at++)
            if (places->place[at])
                put_link(larger, places->place[at]);
        __atomic_store_n(&places, larger, __ATOMIC_RELEASE);
    }
    put_link(places, link);
    count++;
    return true;
}

} // namespace quipu

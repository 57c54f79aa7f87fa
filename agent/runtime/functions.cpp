// SPDX-License-Identifier: Apache-2.0
#include "hot.h"
#include "tree.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

namespace quipu {
namespace {

/* The hash table of addresses has 16 chunks, which is 1 MiB or 20 to 40 thousand addresses. An address stands for 16
 * bytes of code. tries: largest number of places that are searched. */
constexpr uint32_t chunks = 16, tries = 64;
constexpr uint64_t same_place = 15; /* mask of addresses that count together; functions begin at multiples of 16 */

quipu_profile_chunk *table[chunks];
uint32_t per_chunk, record_bytes;
uint64_t homeless; /* samples without space */

uint64_t interrupted_address(const void *context) {
    const auto *user = static_cast<const ucontext_t *>(context);
#if defined(__x86_64__)
    return static_cast<uint64_t>(user->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return user->uc_mcontext.pc;
#else
    return user ? 0 : 0;
#endif
}

quipu_profile_address *record_at(uint64_t place) {
    auto *first = reinterpret_cast<char *>(table[place % chunks] + 1);
    return reinterpret_cast<quipu_profile_address *>(first + place / chunks % per_chunk * record_bytes);
}

int describe_object(struct dl_phdr_info *object, size_t, void *) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const auto &part = object->dlpi_phdr[i];
        if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
            continue;
        char path[PATH_MAX], key[PATH_MAX + 16], place[80];
        const char *name = object->dlpi_name;
        if (!name || !*name) { /* the program */
            const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
            path[length > 0 ? length : 0] = '\0';
            name = path;
        }
        snprintf(key, sizeof key, "code:%s", name);
        const unsigned long long load = object->dlpi_addr, begin = load + part.p_vaddr, end = begin + part.p_memsz;
        snprintf(place, sizeof place, "%llx %llx %llx", load, begin, end);
        set_attribute(key, place);
    }
    return 0;
}

} // namespace

bool samples_functions() {
    static int known = -1; /* read at the start of the process, because the program may change its environment */
    if (known < 0) {
        const char *wanted = getenv("QUIPU_SAMPLE_FUNCTIONS");
        known = wanted && strcmp(wanted, "1") == 0;
    }
    return known && !ranks;
}

void make_function_table() {
    per_chunk = 0;
    if (!sampled_metrics() || !samples_functions())
        return;
    record_bytes = static_cast<uint32_t>(sizeof(quipu_profile_address) + sizeof(uint64_t) * sampled_metrics());
    for (quipu_profile_chunk *&chunk : table) {
        chunk = nullptr;
        if (!profile.room_for(chunk, QUIPU_CHUNK_ADDRESSES, 0, record_bytes))
            return;
        Profile::publish(chunk, chunk_room / record_bytes * record_bytes);
    }
    per_chunk = chunk_room / record_bytes;
    describe_functions();
}

QUIPU_BARE void count_function(const void *context, bool outside, const uint64_t *values) {
    if (!per_chunk)
        return;
    const uint64_t key = (interrupted_address(context) & ~same_place) | outside;
    uint64_t place = (key >> 4) * 0x9e3779b97f4a7c15u >> 20; /* same hash as in memory.cpp */
    for (uint32_t i = 0; i < tries; i++, place++) {
        quipu_profile_address *record = record_at(place);
        uint64_t found = __atomic_load_n(&record->address, __ATOMIC_RELAXED);
        if (found == 0 &&
            __atomic_compare_exchange_n(&record->address, &found, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            record->count = sampled_metrics();
            found = key;
        }
        if (found != key)
            continue;
        auto *total = reinterpret_cast<uint64_t *>(record + 1);
        for (uint32_t metric = 0; metric < sampled_metrics(); metric++)
            __atomic_fetch_add(total + metric, values[metric], __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&homeless, 1, __ATOMIC_RELAXED);
}

void describe_functions() {
    if (!per_chunk)
        return;
    dl_iterate_phdr(describe_object, nullptr);
    char text[24];
    snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(homeless));
    set_attribute("addresses_lost", text);
}

} // namespace quipu

/* SPDX-License-Identifier: Apache-2.0 */
/* ompt.h: the part of the tool interface of OpenMP that Quipu uses (OpenMP 5.2 specification, chapter 19: OMPT).
 * Quipu is built without an OpenMP library, and works with every library that offers this interface. */
#ifndef QUIPU_OMPT_H
#define QUIPU_OMPT_H

#include "quipu_runtime.h"

#include <stdint.h>

namespace quipu::ompt {

union Data {
    uint64_t value;
    void *pointer;
};

/* Atomic, because the library reuses the data of regions, tasks and constructs for others later, in any thread. */
inline void *get(const Data *data) { return __atomic_load_n(&data->pointer, __ATOMIC_ACQUIRE); }
inline void set(Data *data, void *pointer) { __atomic_store_n(&data->pointer, pointer, __ATOMIC_RELEASE); }

enum Endpoint { scope_begin = 1, scope_end = 2, scope_both = 3 };

using Callback = void (*)();
using Lookup = Callback (*)(const char *name);
using SetCallback = int (*)(int event, Callback callback);

/* FNV-1a at compile time, so that no thread writes the hash while others read it. */
constexpr uint64_t hash_of_name(const char *name) {
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ static_cast<unsigned char>(*name)) * 1099511628211u;
    return hash | 1;
}

constexpr quipu_region openmp_region(const char *name) {
    return {0, hash_of_name(name), 0, 0, 0, 0, 0, 0, QUIPU_OPENMP, name, nullptr, nullptr, nullptr, nullptr};
}

/* Registers the callbacks of target constructs and device operations (target.cpp). */
void watch_targets(SetCallback set);

} // namespace quipu::ompt

#endif

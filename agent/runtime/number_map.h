/* SPDX-License-Identifier: Apache-2.0 */
/* A map from numbers to pointers, for simulated ranks, which look up many numbers at each call of MPI. */
#ifndef QUIPU_NUMBER_MAP_H
#define QUIPU_NUMBER_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace quipu {

/* Pointers, indexed by number. Entries are never removed. */
class Map {
  public:
    void *&at(uint64_t key) {
        if (2 * used >= room)
            grow();
        Entry &entry = place(key);
        used += entry.known ? 0 : 1;
        entry.known = true;
        entry.key = key;
        return entry.value;
    }
    void *find(uint64_t key) const { return room ? place(key).value : nullptr; }

  private:
    struct Entry {
        uint64_t key;
        void *value;
        bool known;
    };
    Entry &place(uint64_t key) const {
        for (uint64_t hash = key * 0x9e3779b97f4a7c15u;; hash++) {
            Entry &entry = entries[(hash ^ hash >> 32) & (room - 1)];
            if (!entry.known || entry.key == key)
                return entry;
        }
    }
    void grow();
    Entry *entries = nullptr;
    size_t room = 0, used = 0;
};

[[noreturn]] inline void no_memory() {
    fputs("quipu: error: no memory for the effort of simulated ranks [no-memory]\n", stderr);
    _exit(1);
}

template <typename T> T *make(size_t bytes = sizeof(T)) {
    void *memory = calloc(1, bytes);
    return memory ? static_cast<T *>(memory) : (no_memory(), nullptr);
}

inline void Map::grow() {
    const Map old = *this;
    room = room ? 2 * room : 64;
    entries = make<Entry>(room * sizeof(Entry));
    for (size_t i = 0; i < old.room; i++)
        if (old.entries[i].known)
            place(old.entries[i].key) = old.entries[i];
    free(old.entries);
}

} // namespace quipu

#endif

/* The mapped profile file of this process: chunks of nodes, text records, header. */
#ifndef QUIPU_PROFILE_H
#define QUIPU_PROFILE_H

#include "profile_format.h"

#include <stddef.h>
#include <stdint.h>

/* For code that runs where sanitizers must not be called: in threads that they do not know yet, and during a fork. */
#if defined(__clang__)
#define QUIPU_BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define QUIPU_BARE
#endif

namespace quipu {

/* Everything here is called rarely and under the lock of the runtime, except the readers of `header`. */
class Profile {
  public:
    /* Creates profile-<host>-<pid>.quipu in `folder`. Returns false, with a message on stderr, if that fails. */
    bool create(const char *folder, uint32_t node_size, uint32_t metric_count, const char *metric_table);
    /* Zeroed room for a record at the end of this chunk, or of a fresh one, which becomes `chunk`; null when the disk
     * is full (noted in the header). Readers see the record at publish(). */
    void *room_for(quipu_profile_chunk *&chunk, uint32_t type, uint32_t location, size_t bytes);
    static void publish(quipu_profile_chunk *chunk, size_t bytes) {
        __atomic_store_n(&chunk->used, chunk->used + static_cast<uint32_t>(bytes), __ATOMIC_RELEASE);
    }
    /* Appends a text record made of `count` parts joined by \x1f. Returns false when there is no room. */
    bool add_text(uint32_t type, uint64_t id, const char *const *parts, size_t count);
    /* The weights of a region from row `start` on, `rows` of `columns`, the first of them for `metric`. Returns false
     * when there is no room. */
    bool add_weights(uint64_t region, const int64_t *weights, uint32_t start, uint32_t rows, uint32_t metric,
                     uint32_t columns);
    /* Calls `visit` with every chunk. */
    void for_each_chunk(void (*visit)(quipu_profile_chunk *)) const;
    /* In the child of a fork: what is mapped becomes a private copy at the same addresses, with all values 0. The next
     * create() puts it into a file of its own. */
    void detach();
    /* At the end of the process: the file is final and gets its checksums. Threads that still count, and whatever runs
     * after this, do so in private copies of what was mapped. */
    void seal();
    /* Notes that events were lost because the file could not grow. */
    void note_lost();

    quipu_profile_header *header = nullptr; /* null: nothing is measured */

  private:
    struct Mapping {
        void *address;
        uint64_t offset;
        size_t size;
    };

    bool remember(void *address, size_t bytes);
    void adopt();
    quipu_profile_chunk *add_chunk(uint32_t type, uint32_t location);
    void note_error(const char *what, int code);

    int fd = -1;
    uint64_t size = 0;
    bool sealed = false;
    quipu_profile_chunk *text = nullptr;
    quipu_profile_chunk *weights = nullptr;
    Mapping *mappings = nullptr; /* the header, then the chunks */
    size_t count = 0;
    size_t room = 0;
};

constexpr uint32_t chunk_size = 65536;
constexpr size_t chunk_room = chunk_size - sizeof(quipu_profile_chunk); /* for records */

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped profile file of this process: chunks of nodes, text records, header. */
#ifndef QUIPU_PROFILE_H
#define QUIPU_PROFILE_H

#include "profile_format.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* For code that runs where sanitizers must not be called: in threads that they do not know yet, and during a fork. */
#if defined(__clang__)
#define QUIPU_BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define QUIPU_BARE
#endif

namespace quipu {

/* A line for a person on stderr, as printf; without memory, and with little of the stack. Under the lock. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* Moves a descriptor out of the way of the program. Returns where it is. */
int keep_high(int low);

/* The profile on the disk. The program does not know of our descriptor: it may close it, and open a file of its own
 * with its number. So the descriptor is looked at before each use, and the file is opened again by its name if it is
 * not there any more. */
class ProfileFile {
  public:
    /* Makes profile-<host>-<pid>.quipu in `folder`. Returns 0 or what failed (errno). */
    int create(const char *folder);
    /* A descriptor of this file; -1 if there is none any more. */
    QUIPU_BARE int descriptor();
    /* Reserves space at the end of the file: a full disk is an error here, not a SIGBUS at some later store, and so is
     * the limit on file sizes, without its signal. Returns 0 or what failed. */
    int grow(uint64_t from, size_t bytes);
    /* In the child of a fork, which has a file of its own. */
    QUIPU_BARE void forget();
    void leave_empty();
    void remove();
    const char *name() const { return path; }

  private:
    bool is_ours(int candidate) const;

    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
    char path[PATH_MAX] = {};
};

/* Everything here is called rarely and under the lock of the runtime, except the readers of `header`. */
class Profile {
  public:
    /* Creates the file in `folder`. limit: bytes beyond which no call paths are added, 0 if there is none. Returns
     * false, with a message on stderr, if that fails. */
    bool create(const char *folder, uint64_t limit, uint32_t node_size, uint32_t metric_count,
                const char *metric_table);
    /* Zeroed room for a record at the end of this chunk, or of a fresh one, which becomes `chunk`; null when the disk
     * is full or the limit is reached (noted in the header). Readers see the record at publish(). */
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
    /* Sees to it that room_for() can add this many chunks; false if it cannot (noted in the header). */
    bool make_room(size_t chunks);
    /* Calls `visit` with every chunk. */
    void for_each_chunk(void (*visit)(quipu_profile_chunk *)) const;
    /* Before a fork: notes how far the chunks are filled, because the parent goes on meanwhile. */
    QUIPU_BARE void before_fork();
    QUIPU_BARE void after_fork();
    /* In the child of a fork: what is mapped becomes a private copy at the same addresses, with all values 0. The next
     * create() puts it into a file of its own. False if there is no memory: then the child must not be measured. */
    QUIPU_BARE bool detach();
    /* At the end of the process: the file is final and gets its checksums. Threads that still count, and whatever runs
     * after this, do so in private copies of what was mapped. */
    void seal();
    /* The file does not change its size after this: no system calls. */
    void freeze();
    /* Notes that events were lost, or that a call path found no room and counts with its caller. */
    void note_lost();
    void note_folded();

    quipu_profile_header *header = nullptr; /* null: nothing is measured */

  private:
    /* A part of the file that is mapped at once: some chunks. */
    struct Extent {
        char *address;
        uint64_t offset;
        size_t bytes;
    };
    static constexpr size_t most_extents = 1024;

    bool add_extent(size_t least);
    void adopt();
    bool is_beyond_limit(size_t chunks) const;
    quipu_profile_chunk *add_chunk(uint32_t type, uint32_t location);
    void note_error(const char *what, int code);
    void note_limit();
    uint32_t chunk_count() const;

    ProfileFile file;
    uint64_t size = 0;
    uint64_t limit = 0;
    bool sealed = false;
    bool frozen = false;
    bool full = false; /* the disk, or the limit on file sizes; it stays so */
    quipu_profile_chunk *text = nullptr;
    quipu_profile_chunk *weights = nullptr;
    Extent extents[most_extents] = {};
    size_t count = 0;
    size_t begun = 0;           /* bytes of the last extent that chunks were made of */
    uint32_t *filled = nullptr; /* by number of the chunk, while the process forks */
    size_t filled_bytes = 0;
};

constexpr uint32_t chunk_size = 65536;
constexpr size_t chunk_room = chunk_size - sizeof(quipu_profile_chunk); /* for records */

/* How many chunks room_for() adds for so many records of one size, of which the first go into `chunk`. */
inline size_t chunks_for(const quipu_profile_chunk *chunk, size_t bytes, size_t records) {
    const size_t each = chunk_room / bytes, here = chunk ? (chunk_room - chunk->used) / bytes : 0;
    return records > here ? (records - here + each - 1) / each : 0;
}

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The mapped profile file of this process: chunks of nodes, text records, header. */
#ifndef QUIPU_PROFILE_H
#define QUIPU_PROFILE_H

#include "profile_format.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Marks code that must not call the runtime of a sanitizer: it runs in threads that the sanitizer does not know yet, or
 * during a fork. */
#if defined(__clang__)
#define QUIPU_BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define QUIPU_BARE
#endif

namespace quipu {

/* Prints a line on stderr, like printf, without allocation and with little stack. Call under the lock. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* Moves a descriptor out of the range that programs use. Returns the new number; the old one if this fails. */
int keep_high(int low);

/* The profile on the disk. The program may close our descriptor and open another file with its number. The descriptor
 * is therefore checked before each use, and the file is opened again by its name if necessary. */
class ProfileFile {
  public:
    /* Creates profile-<host>-<pid>.quipu in `folder`. Returns 0 or errno. */
    int create(const char *folder);
    /* Returns a descriptor of this file; -1 if there is none. */
    QUIPU_BARE int descriptor();
    /* Reserves space at the end of the file, so that a full disk is an error here and not a SIGBUS at a later store. If
     * the file would exceed the limit on file sizes, returns an error, too, and sends no SIGXFSZ. Returns 0 or errno.
     */
    int grow(uint64_t from, size_t bytes);
    /* Runs in the child of a fork, which has a separate file. */
    QUIPU_BARE void forget();
    void leave_empty(); /* truncates the file to 0 bytes */
    void remove();
    const char *name() const { return path; }

  private:
    bool is_ours(int candidate) const;

    int fd = -1;
    dev_t device = 0;
    ino_t inode = 0;
    char path[PATH_MAX] = {};
};

/* The functions of this class are called rarely and under the lock of the runtime, except the readers of `header`. */
class Profile {
  public:
    /* Creates the file in `folder`. limit: bytes beyond which no call paths are added, 0 if there is none. Returns
     * false, with a message on stderr, if that fails. */
    bool create(const char *folder, uint64_t limit, uint32_t node_size, uint32_t metric_count,
                const char *metric_table);
    /* Returns zeroed memory for a record at the end of this chunk, or of a new chunk, which becomes `chunk`. Returns
     * null if the disk is full or the limit is reached (noted in the header). Readers see the record at publish(). */
    void *room_for(quipu_profile_chunk *&chunk, uint32_t type, uint32_t location, size_t bytes);
    static void publish(quipu_profile_chunk *chunk, size_t bytes) {
        __atomic_store_n(&chunk->used, chunk->used + static_cast<uint32_t>(bytes), __ATOMIC_RELEASE);
    }
    /* Appends a text record made of `count` parts joined by \x1f. Returns false when there is no room. */
    bool add_text(uint32_t type, uint64_t id, const char *const *parts, size_t count);
    /* Appends a record with weights of a region: `rows` × `columns` values, for the rows from `start` and the metrics
     * from `metric` on. Returns false if there is no space. */
    bool add_weights(uint64_t region, const int64_t *weights, uint32_t start, uint32_t rows, uint32_t metric,
                     uint32_t columns);
    /* Reserves space for this many chunks of room_for(). Returns false if this fails (noted in the header). */
    bool make_room(size_t chunks);
    /* Calls `visit` with every chunk. */
    void for_each_chunk(void (*visit)(quipu_profile_chunk *)) const;
    /* Runs before a fork. Stores the filled size of the chunks, because the parent continues. */
    QUIPU_BARE void before_fork();
    /* Runs after a fork, in parent and child. Frees the memory of before_fork(). */
    QUIPU_BARE void after_fork();
    /* Runs in the child of a fork. Replaces the mapping by a private copy at the same addresses, with all values 0. The
     * next create() writes it into a separate file. Returns false if there is no memory; then the child must not be
     * measured. */
    QUIPU_BARE bool detach();
    /* Runs at the end of the process. The file is final and gets its checksums. Threads that still count write into
     * private copies. begun: processor_time() where the end of the process begins. */
    void seal(uint64_t begun);
    /* Stops changes of the file size, and therefore system calls. */
    void freeze();
    /* Notes that events were lost, or that a call path without space counts with its caller. */
    void note_lost();
    void note_folded();

    quipu_profile_header *header = nullptr; /* null: nothing is measured */

  private:
    /* A part of the file with some chunks that is mapped together. */
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
    bool full = false; /* the disk is full, or the limit on file sizes is reached; never reset */
    quipu_profile_chunk *text = nullptr;
    quipu_profile_chunk *weights = nullptr;
    Extent extents[most_extents] = {};
    size_t count = 0;
    size_t begun = 0;           /* used bytes of the last extent */
    uint32_t *filled = nullptr; /* filled bytes by chunk, during a fork */
    size_t filled_bytes = 0;
};

constexpr uint32_t chunk_size = 65536;
constexpr size_t chunk_room = chunk_size - sizeof(quipu_profile_chunk); /* for records */

/* Returns the number of chunks that room_for() adds for `records` records of `bytes` bytes each. The first records fill
 * the rest of `chunk`. */
inline size_t chunks_for(const quipu_profile_chunk *chunk, size_t bytes, size_t records) {
    const size_t each = chunk_room / bytes, here = chunk ? (chunk_room - chunk->used) / bytes : 0;
    return records > here ? (records - here + each - 1) / each : 0;
}

} // namespace quipu

#endif

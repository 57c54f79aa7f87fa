// SPDX-License-Identifier: Apache-2.0
#include "profile.h"
#include "clock.h"
#include "interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace quipu {

#define QUIPU_STRUCT(name, bytes) static_assert(sizeof(quipu_##name) == (bytes));
#define QUIPU_FIELD(type, name)
#define QUIPU_ARRAY(type, name, count)
#define QUIPU_ENUM(name)
#define QUIPU_VALUE(name, number)
#define QUIPU_END
#include "profile.def"

/* Maps a part of the file, at `address` if it is not null. Returns null if this fails. how: shared or private. */
QUIPU_BARE static void *map(int fd, uint64_t offset, size_t bytes, int how, void *address = nullptr) {
    void *mapped =
        mmap(address, bytes, PROT_READ | PROT_WRITE, address ? how | MAP_FIXED : how, fd, static_cast<off_t>(offset));
    return mapped == MAP_FAILED ? nullptr : mapped;
}

bool Profile::create(const char *folder, uint64_t most, uint32_t node_size, uint32_t metric_count,
                     const char *metric_table) {
    int failure = file.create(folder);
    void *mapped = nullptr;
    if (failure == 0 && (failure = file.grow(0, sizeof(quipu_profile_header))) == 0) {
        mapped = map(file.descriptor(), 0, sizeof(quipu_profile_header), MAP_SHARED);
        failure = errno;
    }
    if (!mapped) {
        say("quipu: cannot write %s: %s; this process is not measured [profile-not-written]\n", file.name(),
            strerror(failure));
        file.leave_empty();
        return false;
    }
    size = sizeof(quipu_profile_header);
    limit = most;
    full = sealed = false;
    header = static_cast<quipu_profile_header *>(mapped);
    header->version = QUIPU_PROFILE_VERSION;
    header->header_size = sizeof(quipu_profile_header);
    header->chunk_size = chunk_size;
    header->node_size = node_size;
    header->metric_count = metric_count;
    header->state = QUIPU_RUNNING;
    header->pid = static_cast<uint32_t>(getpid());
    snprintf(header->metrics, sizeof header->metrics, "%s", metric_table);
    memcpy(header->magic, QUIPU_PROFILE_MAGIC, sizeof header->magic);
    adopt();
    return true;
}

/* Sets all values of the nodes or counters of a chunk to 0. */
QUIPU_BARE static void forget_values(quipu_profile_chunk *chunk, uint32_t node_size) {
    char *at = reinterpret_cast<char *>(chunk + 1);
    char *const end = at + chunk->used;
    if (chunk->type == QUIPU_CHUNK_NODES)
        for (; at < end; at += node_size)
            memset(at + sizeof(quipu_profile_node), 0, node_size - sizeof(quipu_profile_node));
    if (chunk->type == QUIPU_CHUNK_ADDRESSES)
        memset(at, 0, chunk->used);
    if (chunk->type != QUIPU_CHUNK_COUNTERS)
        return;
    while (at < end) {
        const auto *record = reinterpret_cast<quipu_profile_counters *>(at);
        const size_t bytes = sizeof(uint64_t) * record->count;
        memset(at + sizeof *record, 0, bytes);
        at += sizeof *record + bytes;
    }
}

uint32_t Profile::chunk_count() const {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += i + 1 < count ? extents[i].bytes : begun;
    return static_cast<uint32_t>(bytes / chunk_size);
}

void Profile::before_fork() {
    filled_bytes = sizeof(uint32_t) * (chunk_count() + 1);
    void *memory = mmap(nullptr, filled_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    filled = memory == MAP_FAILED ? nullptr : static_cast<uint32_t *>(memory);
    uint32_t *next = filled;
    for (size_t i = 0; filled && i < count; i++)
        for (size_t at = 0; at < (i + 1 < count ? extents[i].bytes : begun); at += chunk_size)
            *next++ = reinterpret_cast<quipu_profile_chunk *>(extents[i].address + at)->used;
}

void Profile::after_fork() {
    if (filled)
        munmap(filled, filled_bytes);
    filled = nullptr;
}

/* Replaces an extent by a private copy of its first `chunks`, up to their filled size. All values in the copy are 0,
 * because they belong to the parent. filled: filled bytes of each chunk; null: no copy. Returns false if there is no
 * copy; the memory then contains zeros, into which running code counts. */
QUIPU_BARE static bool copy_in_place(char *address, size_t bytes, const uint32_t *filled, size_t chunks,
                                     uint32_t node_size) {
    constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, may = PROT_READ | PROT_WRITE;
    void *memory = filled ? mmap(nullptr, bytes, may, how | MAP_POPULATE, -1, 0) : MAP_FAILED;
    if (memory != MAP_FAILED) {
        for (size_t i = 0; i < chunks; i++) {
            auto *chunk = reinterpret_cast<quipu_profile_chunk *>(static_cast<char *>(memory) + i * chunk_size);
            memcpy(chunk, address + i * chunk_size, sizeof *chunk + filled[i]);
            chunk->used = filled[i];
            forget_values(chunk, node_size);
        }
        if (mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED)
            return true;
        munmap(memory, bytes);
    }
    [[maybe_unused]] const void *empty = mmap(address, bytes, may, how | MAP_FIXED, -1, 0);
    return false;
}

QUIPU_BARE bool Profile::detach() {
    if (!header)
        return false;
    bool whole = filled != nullptr;
    const uint32_t *next = filled;
    for (size_t i = 0; i < count; i++) {
        const size_t chunks = (i + 1 < count ? extents[i].bytes : begun) / chunk_size;
        whole =
            copy_in_place(extents[i].address, extents[i].bytes, whole ? next : nullptr, chunks, header->node_size) &&
            whole;
        next += whole ? chunks : 0;
    }
    munmap(header, sizeof(quipu_profile_header));
    header = nullptr;
    file.forget();
    size = 0;
    return whole;
}

void Profile::adopt() {
    for (size_t i = 0; i < count; i++) {
        Extent &extent = extents[i];
        int failure = file.grow(size, extent.bytes);
        for (size_t done = 0; failure == 0 && done < extent.bytes;) {
            const ssize_t wrote =
                pwrite(file.descriptor(), extent.address + done, extent.bytes - done, static_cast<off_t>(size + done));
            if (wrote <= 0)
                failure = wrote < 0 ? errno : EIO;
            else
                done += static_cast<size_t>(wrote);
        }
        if (failure == 0 && !map(file.descriptor(), size, extent.bytes, MAP_SHARED, extent.address))
            failure = errno;
        if (failure != 0) {
            note_error("the profile of a forked process is not complete", failure);
            count = i; /* the rest stays mapped for running code */
            begun = i ? extents[i - 1].bytes : 0;
            full = true;
            return;
        }
        extent.offset = size;
        size += extent.bytes;
    }
}

bool Profile::add_extent(size_t least) {
    constexpr size_t smallest = size_t{4} * chunk_size, largest = size_t{1024} * chunk_size;
    int failure = ENOSPC;
    size_t bytes = (size / 4 + chunk_size - 1) / chunk_size * chunk_size;
    bytes = bytes < smallest ? smallest : bytes > largest ? largest : bytes;
    bytes = bytes < least ? least : bytes;
    for (; !full && count < most_extents && bytes >= least; bytes = bytes / 2 / chunk_size * chunk_size) {
        failure = file.grow(size, bytes);
        if (failure != 0)
            continue;
        if (void *mapped = map(file.descriptor(), size, bytes, MAP_SHARED)) {
            extents[count++] = {static_cast<char *>(mapped), size, bytes};
            begun = 0;
            size += bytes;
            return true;
        }
        failure = errno;
    }
    full = true;
    note_error("the profile could not grow", failure);
    return false;
}

void Profile::freeze() {
    if (header && !sealed && !frozen)
        add_extent(chunk_size);
    frozen = true;
}

bool Profile::is_beyond_limit(size_t chunks) const {
    const uint64_t used = sizeof(quipu_profile_header) + uint64_t{chunk_count()} * chunk_size;
    return limit && used + chunks * chunk_size > limit;
}

bool Profile::make_room(size_t chunks) {
    if (!header || sealed)
        return false;
    if (chunks && is_beyond_limit(chunks)) {
        note_limit();
        return false;
    }
    const size_t left = count ? (extents[count - 1].bytes - begun) / chunk_size : 0;
    return chunks <= left || (!frozen && add_extent(chunks * chunk_size));
}

quipu_profile_chunk *Profile::add_chunk(uint32_t type, uint32_t location) {
    if (!header || sealed)
        return nullptr;
    /* The limit does not hold for names and attributes, because they explain the numbers. */
    if ((type == QUIPU_CHUNK_NODES || type == QUIPU_CHUNK_COUNTERS) && is_beyond_limit(1)) {
        note_limit();
        return nullptr;
    }
    if ((count == 0 || begun == extents[count - 1].bytes) && (frozen || !add_extent(chunk_size)))
        return nullptr;
    auto *chunk = reinterpret_cast<quipu_profile_chunk *>(extents[count - 1].address + begun);
    begun += chunk_size;
    chunk->location = location;
    chunk->used = 0;
    chunk->address = reinterpret_cast<uint64_t>(chunk);
    chunk->type = type;
    return chunk;
}

void *Profile::room_for(quipu_profile_chunk *&chunk, uint32_t type, uint32_t location, size_t bytes) {
    if (!chunk || chunk->used + bytes > chunk_room) {
        quipu_profile_chunk *fresh = add_chunk(type, location);
        if (!fresh)
            return nullptr;
        chunk = fresh;
    }
    return reinterpret_cast<char *>(chunk + 1) + chunk->used;
}

bool Profile::add_weights(uint64_t region, const int64_t *values, uint32_t start, uint32_t rows, uint32_t metric,
                          uint32_t columns) {
    constexpr uint32_t slice = 256; /* rows of a record, which must fit into a chunk */
    for (uint32_t first = 0; first < rows; first += slice) {
        const uint32_t part = rows - first < slice ? rows - first : slice;
        const size_t values_size = sizeof(int64_t) * part * columns;
        const size_t bytes = sizeof(quipu_profile_weights) + values_size;
        auto *record = static_cast<quipu_profile_weights *>(room_for(weights, QUIPU_CHUNK_WEIGHTS, 0, bytes));
        if (!record)
            return false;
        *record = {region, start + first, part, metric, columns};
        memcpy(record + 1, values + size_t{first} * columns, values_size);
        publish(weights, bytes);
    }
    return true;
}

bool Profile::add_text(uint32_t type, uint64_t id, const char *const *parts, size_t count) {
    size_t length = count - 1;
    for (size_t i = 0; i < count; i++)
        length += strlen(parts[i]);
    size_t padded = sizeof(quipu_profile_text) + ((length + 7) & ~size_t{7});
    if (padded > chunk_room)
        return false;
    auto *record = static_cast<quipu_profile_text *>(room_for(text, QUIPU_CHUNK_TEXT, 0, padded));
    if (!record)
        return false;
    record->type = type;
    record->id = id;
    record->length = static_cast<uint32_t>(length);
    char *to = reinterpret_cast<char *>(record + 1);
    for (size_t i = 0; i < count; i++) {
        if (i)
            *to++ = '\x1f';
        size_t part = strlen(parts[i]);
        memcpy(to, parts[i], part);
        to += part;
    }
    publish(text, padded);
    return true;
}

void Profile::for_each_chunk(void (*visit)(quipu_profile_chunk *)) const {
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < (i + 1 < count ? extents[i].bytes : begun); at += chunk_size)
            visit(reinterpret_cast<quipu_profile_chunk *>(extents[i].address + at));
}

void Profile::note_lost() {
    if (header)
        __atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
}

void Profile::note_folded() {
    if (header)
        __atomic_fetch_add(&header->folded, 1, __ATOMIC_RELAXED);
}

void Profile::note_error(const char *what, int code) {
    if (header->error[0])
        return;
    snprintf(header->error, sizeof header->error, "%s: %s", what, strerror(code));
    say("quipu: %s: %s; later call paths are counted with their callers [profile-stopped]\n", what, strerror(code));
}

void Profile::note_limit() {
    if (header->error[0])
        return;
    const auto mebibytes = static_cast<unsigned long long>(limit >> 20);
    snprintf(header->error, sizeof header->error, "the profile has reached its limit of %llu MiB", mebibytes);
    say("quipu: the profile has reached its limit of %llu MiB (QUIPU_PROFILE_LIMIT); later call paths are counted with "
        "their callers [profile-limit]\n",
        mebibytes);
}

namespace {

/* CRC-32 as in IEEE 802.3 (reflected polynomial 0xedb88320), equal to zlib's crc32(). */
class Checksum {
  public:
    Checksum() {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t remainder = byte;
            for (int bit = 0; bit < 8; bit++)
                remainder = remainder >> 1 ^ (remainder & 1 ? 0xedb88320u : 0);
            table[0][byte] = remainder;
        }
        for (int zeros = 1; zeros < slices; zeros++)
            for (uint32_t byte = 0; byte < 256; byte++)
                table[zeros][byte] = table[zeros - 1][byte] >> 8 ^ table[0][table[zeros - 1][byte] & 255];
    }
    /* Returns the checksum. It is never 0, because 0 means no checksum. */
    uint32_t of(const void *data, size_t bytes) const {
        uint32_t crc = ~0u;
        const auto *next = static_cast<const unsigned char *>(data);
        for (; bytes >= slices; bytes -= slices, next += slices) {
            crc ^= next[0] | uint32_t{next[1]} << 8 | uint32_t{next[2]} << 16 | uint32_t{next[3]} << 24;
            crc = table[3][crc & 255] ^ table[2][crc >> 8 & 255] ^ table[1][crc >> 16 & 255] ^ table[0][crc >> 24];
        }
        for (; bytes > 0; bytes--)
            crc = crc >> 8 ^ table[0][(crc ^ *next++) & 255];
        return ~crc ? ~crc : 1;
    }

  private:
    static constexpr int slices = 4; /* bytes per step: Kounavis and Berry, ISCC 2005 */
    uint32_t table[slices][256];     /* [zeros][byte]: remainder of a byte and as many zero bytes after it */
};

} // namespace

void Profile::seal(uint64_t begun) {
    if (sealed || frozen)
        return;
    sealed = true;
    const int fd = file.descriptor();
    if (fd < 0 || !map(fd, 0, sizeof(quipu_profile_header), MAP_PRIVATE, header))
        return;
    /* Threads that still count must not change a chunk with a checksum. If this cannot be prevented, there are no
     * checksums. */
    for (size_t i = 0; i < count; i++)
        if (!map(fd, extents[i].offset, extents[i].bytes, MAP_PRIVATE, extents[i].address))
            return;
    const Checksum checksum;
    const uint32_t chunks = chunk_count();
    for (uint32_t i = 0; i < chunks; i++) {
        const uint64_t offset = sizeof(quipu_profile_header) + uint64_t{i} * chunk_size;
        auto *chunk = static_cast<quipu_profile_chunk *>(map(fd, offset, chunk_size, MAP_SHARED));
        if (!chunk)
            return; /* other checksums are invalid without the checksum of the header */
        chunk->crc = 0;
        chunk->crc = checksum.of(chunk, sizeof(quipu_profile_chunk) + chunk->used);
        munmap(chunk, chunk_size);
    }
    auto *whole = static_cast<quipu_profile_header *>(map(fd, 0, sizeof(quipu_profile_header), MAP_SHARED));
    if (!whole)
        return;
    whole->chunks = chunks;
    whole->setup_ns += processor_time_since(begun);
    whole->crc = checksum.of(whole, sizeof(quipu_profile_header));
    munmap(whole, sizeof(quipu_profile_header));
    /* Removes reserved and unused space. The private copies of used chunks are not affected. */
    [[maybe_unused]] const int cut =
        ftruncate(fd, static_cast<off_t>(sizeof(quipu_profile_header) + uint64_t{chunks} * chunk_size));
}

} // namespace quipu

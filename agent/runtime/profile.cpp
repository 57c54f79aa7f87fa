#include "profile.h"
#include "interface.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Part of the file, at `address` if that is not null; null if that fails. how: shared or private. */
QUIPU_BARE static void *map(int fd, uint64_t offset, size_t bytes, int how, void *address = nullptr) {
    void *mapped =
        mmap(address, bytes, PROT_READ | PROT_WRITE, address ? how | MAP_FIXED : how, fd, static_cast<off_t>(offset));
    return mapped == MAP_FAILED ? nullptr : mapped;
}

bool Profile::create(const char *folder, uint32_t node_size, uint32_t metric_count, const char *metric_table) {
    char host[128] = "unknown";
    gethostname(host, sizeof host - 1);
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/profile-%s-%ld.quipu", folder, host, static_cast<long>(getpid()));
    int failure = ENAMETOOLONG;
    if (length > 0 && static_cast<size_t>(length) < sizeof path) {
        /* A program that calls exec keeps its pid: the profile of each stage has a name of its own. */
        for (int stage = 1; (fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0; stage++) {
            failure = errno;
            if (failure != EEXIST || stage > 1000)
                break;
            snprintf(path + length - strlen(".quipu"), sizeof path - static_cast<size_t>(length), "-%d.quipu", stage);
        }
    }
    void *mapped = nullptr;
    if (fd >= 0) {
        /* posix_fallocate reserves the space: a full disk is an error here, not a SIGBUS at some later store. */
        failure = posix_fallocate(fd, 0, sizeof(quipu_profile_header));
        if (failure == 0) {
            mapped = map(fd, 0, sizeof(quipu_profile_header), MAP_SHARED);
            failure = errno;
        }
    }
    if (!mapped) {
        fprintf(stderr, "quipu: cannot write %s: %s; this process is not measured\n", path, strerror(failure));
        if (fd >= 0) {
            unlink(path);
            close(fd);
        }
        fd = -1;
        return false;
    }
    size = sizeof(quipu_profile_header);
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
    if (count == 0)
        return remember(header, sizeof(quipu_profile_header));
    mappings[0].address = header; /* after a fork */
    adopt();
    return true;
}

bool Profile::remember(void *address, size_t bytes) {
    if (count == room) {
        size_t more = room ? 2 * room : 64;
        auto *larger = static_cast<Mapping *>(realloc(mappings, more * sizeof(Mapping)));
        if (!larger)
            return false;
        mappings = larger;
        room = more;
    }
    mappings[count++] = {address, size - bytes, bytes};
    return true;
}

/* All values of the nodes or counters of a chunk become 0. */
QUIPU_BARE static void forget_values(quipu_profile_chunk *chunk, uint32_t node_size) {
    char *at = reinterpret_cast<char *>(chunk + 1);
    char *const end = at + chunk->used;
    if (chunk->type == QUIPU_CHUNK_NODES)
        for (; at < end; at += node_size)
            memset(at + sizeof(quipu_profile_node), 0, node_size - sizeof(quipu_profile_node));
    if (chunk->type != QUIPU_CHUNK_COUNTERS)
        return;
    while (at < end) {
        const auto *record = reinterpret_cast<quipu_profile_counters *>(at);
        const size_t bytes = sizeof(uint64_t) * record->count;
        memset(at + sizeof *record, 0, bytes);
        at += sizeof *record + bytes;
    }
}

QUIPU_BARE void Profile::detach() {
    if (!header)
        return;
    const uint32_t node_size = header->node_size;
    for (size_t i = 0; i < count; i++) {
        if (!map(fd, mappings[i].offset, mappings[i].size, MAP_PRIVATE, mappings[i].address))
            continue; /* it stays shared with the parent */
        /* A page of a private mapping follows the file until it is written to. */
        constexpr size_t smallest_page = 4096;
        for (size_t at = 0; at < mappings[i].size; at += smallest_page) {
            volatile char *page = static_cast<char *>(mappings[i].address) + at;
            *page = *page;
        }
        if (i > 0)
            forget_values(static_cast<quipu_profile_chunk *>(mappings[i].address), node_size);
    }
    close(fd);
    fd = -1;
    size = 0;
    header = nullptr;
}

void Profile::adopt() {
    for (size_t i = 1; i < count; i++) {
        Mapping &mapping = mappings[i];
        int failure = posix_fallocate(fd, static_cast<off_t>(size), static_cast<off_t>(mapping.size));
        if (failure == 0 &&
            pwrite(fd, mapping.address, mapping.size, static_cast<off_t>(size)) != static_cast<ssize_t>(mapping.size))
            failure = errno ? errno : EIO;
        if (failure == 0 && !map(fd, size, mapping.size, MAP_SHARED, mapping.address))
            failure = errno;
        if (failure != 0)
            return note_error("the profile of a forked process is not complete", failure);
        mapping.offset = size;
        size += mapping.size;
    }
}

quipu_profile_chunk *Profile::add_chunk(uint32_t type, uint32_t location) {
    if (!header || sealed)
        return nullptr;
    int failure = posix_fallocate(fd, static_cast<off_t>(size), chunk_size);
    if (failure == 0) {
        auto *chunk = static_cast<quipu_profile_chunk *>(map(fd, size, chunk_size, MAP_SHARED));
        size += chunk ? chunk_size : 0;
        if (chunk && remember(chunk, chunk_size)) {
            chunk->location = location;
            chunk->used = 0;
            chunk->address = reinterpret_cast<uint64_t>(chunk);
            chunk->type = type;
            return chunk;
        }
        failure = errno;
    }
    note_error("the profile could not grow", failure);
    return nullptr;
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
    constexpr uint32_t slice = 256; /* rows of a record: it must fit into a chunk */
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
    for (size_t i = 1; i < count; i++)
        visit(static_cast<quipu_profile_chunk *>(mappings[i].address));
}

void Profile::note_lost() { __atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED); }

void Profile::note_error(const char *what, int code) {
    if (header->error[0])
        return;
    snprintf(header->error, sizeof header->error, "%s: %s", what, strerror(code));
    fprintf(stderr, "quipu: %s: %s; later call paths are counted with their callers\n", what, strerror(code));
}

namespace {

/* CRC-32 as in IEEE 802.3 (reflected polynomial 0xedb88320): what zlib's crc32() gives. */
class Checksum {
  public:
    Checksum() {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t remainder = byte;
            for (int bit = 0; bit < 8; bit++)
                remainder = remainder >> 1 ^ (remainder & 1 ? 0xedb88320u : 0);
            table[byte] = remainder;
        }
    }
    /* Never 0, which means that there is none. */
    uint32_t of(const void *data, size_t bytes) const {
        uint32_t crc = ~0u;
        for (size_t i = 0; i < bytes; i++)
            crc = crc >> 8 ^ table[(crc ^ static_cast<const unsigned char *>(data)[i]) & 255];
        return ~crc ? ~crc : 1;
    }

  private:
    uint32_t table[256];
};

} // namespace

void Profile::seal() {
    sealed = true;
    /* Threads that go on counting must not spoil the checksums: where that cannot be, there are none. */
    for (size_t i = 0; i < count; i++)
        if (!map(fd, mappings[i].offset, mappings[i].size, MAP_PRIVATE, mappings[i].address))
            return;
    const Checksum checksum;
    uint32_t chunks = 0;
    for (uint64_t offset = sizeof(quipu_profile_header); offset < size; offset += chunk_size, chunks++) {
        auto *chunk = static_cast<quipu_profile_chunk *>(map(fd, offset, chunk_size, MAP_SHARED));
        if (!chunk)
            return; /* without the checksum of the header the others do not count */
        chunk->crc = 0;
        chunk->crc = checksum.of(chunk, sizeof(quipu_profile_chunk) + chunk->used);
        munmap(chunk, chunk_size);
    }
    if (auto *whole = static_cast<quipu_profile_header *>(map(fd, 0, sizeof(quipu_profile_header), MAP_SHARED))) {
        whole->chunks = chunks;
        whole->crc = checksum.of(whole, sizeof(quipu_profile_header));
        munmap(whole, sizeof(quipu_profile_header));
    }
}

} // namespace quipu

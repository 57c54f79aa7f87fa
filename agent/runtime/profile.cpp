#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

namespace quipu {

static_assert(sizeof(quipu_profile_header) == 4096);
static_assert(sizeof(quipu_profile_chunk) == 64);

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
    void *mapped = MAP_FAILED;
    if (fd >= 0) {
        /* posix_fallocate reserves the space: a full disk is an error here, not a SIGBUS at some later store. */
        failure = posix_fallocate(fd, 0, sizeof(quipu_profile_header));
        if (failure == 0) {
            mapped = mmap(nullptr, sizeof(quipu_profile_header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            failure = errno;
        }
    }
    if (mapped == MAP_FAILED) {
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
    return true;
}

bool Profile::grow(void **mapped) {
    int failure = posix_fallocate(fd, static_cast<off_t>(size), chunk_size);
    if (failure == 0) {
        *mapped = mmap(nullptr, chunk_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(size));
        if (*mapped != MAP_FAILED) {
            size += chunk_size;
            return true;
        }
        failure = errno;
    }
    note_error("the profile could not grow", failure);
    return false;
}

quipu_profile_chunk *Profile::add_chunk(uint32_t type, uint32_t location) {
    void *mapped;
    if (!header || !grow(&mapped))
        return nullptr;
    auto *chunk = static_cast<quipu_profile_chunk *>(mapped);
    chunk->location = location;
    chunk->used = 0;
    chunk->type = type;
    return chunk;
}

bool Profile::add_text(uint32_t type, uint64_t id, const char *const *parts, size_t count) {
    constexpr size_t room = chunk_size - sizeof(quipu_profile_chunk);
    size_t length = count - 1;
    for (size_t i = 0; i < count; i++)
        length += strlen(parts[i]);
    size_t padded = sizeof(quipu_profile_text) + ((length + 7) & ~size_t{7});
    if (padded > room)
        return false;
    if (!text || text->used + padded > room) {
        quipu_profile_chunk *fresh = add_chunk(QUIPU_CHUNK_TEXT, 0);
        if (!fresh)
            return false;
        text = fresh;
    }
    char *at = reinterpret_cast<char *>(text + 1) + text->used;
    auto *record = reinterpret_cast<quipu_profile_text *>(at);
    record->type = type;
    record->id = id;
    record->length = static_cast<uint32_t>(length);
    char *to = at + sizeof(quipu_profile_text);
    for (size_t i = 0; i < count; i++) {
        if (i)
            *to++ = '\x1f';
        size_t part = strlen(parts[i]);
        memcpy(to, parts[i], part);
        to += part;
    }
    /* Readers see the record only once it is whole. */
    __atomic_store_n(&text->used, text->used + static_cast<uint32_t>(padded), __ATOMIC_RELEASE);
    return true;
}

void Profile::note_lost() { __atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED); }

void Profile::note_error(const char *what, int code) {
    if (header->error[0])
        return;
    snprintf(header->error, sizeof header->error, "%s: %s", what, strerror(code));
    fprintf(stderr, "quipu: %s: %s; later call paths are counted with their callers\n", what, strerror(code));
}

} // namespace quipu

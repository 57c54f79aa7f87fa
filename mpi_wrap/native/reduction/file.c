/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the reduced file: sections with checksums. The file gets its final name when it is complete on disk. */
#include "work.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

uint32_t quipu_crc32(uint32_t crc, const void *bytes, size_t size) { /* the CRC-32 of zlib, four bits at a time */
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                       0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const unsigned char *at = bytes;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc = table[(crc ^ at[i]) & 15] ^ crc >> 4;
        crc = table[(crc ^ at[i] >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}

void quipu_file_open(struct quipu_reduced_file *file, const char *folder, const char *id) {
    snprintf(file->temporary, sizeof file->temporary, "%s/.reduced-%s", folder, id);
    snprintf(file->path, sizeof file->path, "%s/reduced-%s.quipu", folder, id);
    file->file = fopen(file->temporary, "wbex");
}

/* Returns whether a write of `size` bytes is within the limit on file sizes. A write beyond the limit would cause the
 * signal SIGXFSZ, which ends the program. */
static bool is_within_limit(const struct quipu_reduced_file *file, size_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           file->size + size <= limit.rlim_cur;
}

void quipu_file_bytes(struct quipu_reduced_file *file, const void *bytes, size_t size) {
    if (file->file == NULL || size == 0 || file->refused)
        return;
    file->refused = !is_within_limit(file, size) || fwrite(bytes, 1, size, file->file) != size;
    file->size += size;
}

void quipu_file_head(struct quipu_reduced_file *file, const char *tag, uint32_t crc, uint64_t length) {
    quipu_file_bytes(file, tag, 4);
    quipu_file_bytes(file, &crc, sizeof crc);
    quipu_file_bytes(file, &length, sizeof length);
}

void quipu_file_pad(struct quipu_reduced_file *file, uint64_t length) {
    static const char zeros[8];
    quipu_file_bytes(file, zeros, (size_t)(-length & 7));
}

void quipu_file_section(struct quipu_reduced_file *file, const char *tag, const struct quipu_part *parts,
                        size_t count) {
    uint32_t crc = 0;
    uint64_t length = 0;
    for (size_t i = 0; i < count; i++) {
        crc = quipu_crc32(crc, parts[i].bytes, parts[i].size);
        length += parts[i].size;
    }
    quipu_file_head(file, tag, crc, length);
    for (size_t i = 0; i < count; i++)
        quipu_file_bytes(file, parts[i].bytes, parts[i].size);
    quipu_file_pad(file, length);
}

static void sync_folder(const char *path) {
    char folder[4200];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        return;
    *slash = '\0';
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

bool quipu_file_close(struct quipu_reduced_file *file, bool complete) {
    if (file->file != NULL) {
        quipu_file_section(file, "DONE", NULL, 0);
        complete = !file->refused && fflush(file->file) == 0 && fsync(fileno(file->file)) == 0 && complete;
        complete = fclose(file->file) == 0 && complete;
        complete = complete && rename(file->temporary, file->path) == 0;
        if (complete)
            sync_folder(file->path);
        else
            unlink(file->temporary);
    } else {
        complete = false;
        unlink(file->temporary);
    }
    file->file = NULL;
    return complete;
}

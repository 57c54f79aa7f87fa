/* The file that rank 0 writes: sections with checksums (docs/design/reduction.md). */
#ifndef QUIPU_REDUCED_FILE_H
#define QUIPU_REDUCED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct quipu_reduced_file {
    FILE *file; /* NULL: nothing can be written */
    char temporary[4200], path[4200];
};

uint32_t quipu_crc32(uint32_t crc, const void *bytes, size_t size);
void quipu_file_open(struct quipu_reduced_file *file, const char *folder, const char *id);
/* One section whose content consists of several parts. */
struct quipu_part {
    const void *bytes;
    size_t size;
};
void quipu_file_section(struct quipu_reduced_file *file, const char *tag, const struct quipu_part *parts, size_t count);
/* The same in pieces: the head, then the content, then quipu_file_pad. */
void quipu_file_head(struct quipu_reduced_file *file, const char *tag, uint32_t crc, uint64_t length);
void quipu_file_bytes(struct quipu_reduced_file *file, const void *bytes, size_t size);
void quipu_file_pad(struct quipu_reduced_file *file, uint64_t length);
/* Gives the file its name if all is on the disk; else removes it and returns false. */
bool quipu_file_close(struct quipu_reduced_file *file, bool complete);

#endif

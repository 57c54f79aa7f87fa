/* SPDX-License-Identifier: Apache-2.0 */
/* State of one rank in the reduction: its messages, its values, and the file that rank 0 writes. */
#ifndef QUIPU_WORK_H
#define QUIPU_WORK_H

#include "tree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* QUIPU_PIECE: no message is longer (bytes). All messages except those of quipu_collect_rows use one binomial tree. */
enum { QUIPU_TAG = 1, QUIPU_PIECE = 1 << 20 };

/* A rank that takes part in the reduction. */
struct quipu_member {
    MPI_Comm comm;
    int rank, size;
    bool good; /* nothing has failed on this rank */
};

/* Send and receive `size` bytes in messages of at most QUIPU_PIECE bytes. */
void quipu_send_pieces(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
void quipu_receive_pieces(const struct quipu_member *member, char *bytes, uint64_t size, int from);
/* Send and receive a number of bytes, and then these bytes. The receiver returns allocated memory. If there is none, it
 * still receives all bytes, and returns NULL. */
void quipu_send_bytes(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
char *quipu_receive_bytes(const struct quipu_member *member, uint64_t *size, int from);
/* Returns the number of ranks in the subtree of this rank, including this rank. */
int quipu_below(const struct quipu_member *member);
void quipu_broadcast(const struct quipu_member *member, void *bytes, uint64_t size);
/* Replaces each number by its minimum over all ranks, on all ranks. count: at most 8. */
void quipu_least(const struct quipu_member *member, uint64_t *numbers, size_t count);
/* Gathers `size` bytes of each rank on rank 0. all: buffer for all ranks in the subtree of this rank, beginning with
 * the bytes of this rank. */
void quipu_gather(const struct quipu_member *member, char *all, size_t size);
/* Sets `good` to whether it is true on all ranks, and returns it. Every step that can fail on one rank alone ends with
 * this call. */
bool quipu_agreed(struct quipu_member *member);

/* The file: sections with checksums (docs/design/reduction.md). */
struct quipu_reduced_file {
    FILE *file;                       /* NULL: the file could not be opened */
    uint64_t size;                    /* bytes so far */
    bool refused;                     /* a write has failed */
    char temporary[4200], path[4200]; /* path while it is written, and final path */
};

/* Continues the CRC-32 of earlier bytes (0: there are none) with `size` more bytes. */
uint32_t quipu_crc32(uint32_t crc, const void *bytes, size_t size);
void quipu_file_open(struct quipu_reduced_file *file, const char *folder, const char *id);
/* A part of the content of a section. */
struct quipu_part {
    const void *bytes;
    size_t size;
};
/* Writes a section, whose content consists of `count` parts. tag: four characters. */
void quipu_file_section(struct quipu_reduced_file *file, const char *tag, const struct quipu_part *parts, size_t count);
/* Write a section step by step: the head, then the content, then quipu_file_pad. length: bytes of the content. */
void quipu_file_head(struct quipu_reduced_file *file, const char *tag, uint32_t crc, uint64_t length);
void quipu_file_bytes(struct quipu_reduced_file *file, const void *bytes, size_t size);
void quipu_file_pad(struct quipu_reduced_file *file, uint64_t length);
/* Completes the file and renames it to its final path. If a write has failed, or `complete` is false, removes the file
 * and returns false. */
bool quipu_file_close(struct quipu_reduced_file *file, bool complete);

/* The data of one rank. */
struct quipu_work {
    struct quipu_member me;
    const struct quipu_snapshot *mine;
    uint64_t *values; /* [nodes][metrics]: of the snapshot, with wall times in place of times of threads */
    bool waits;       /* MPI calls record the metric wait_time */
    struct quipu_tree tree;
    uint32_t *path;                 /* number of the call path of each node of the snapshot */
    uint32_t *sorted;               /* nodes of the snapshot, sorted by the number of the call path */
    uint8_t *is_time, *is_max;      /* [metrics]: the unit is seconds; values are combined by their maximum */
    struct quipu_reduced_file file; /* used by rank 0 only */
};

/* Returns the measurement overhead of a node of the snapshot in seconds (docs/design/overhead.md). */
double quipu_overhead_of_node(const struct quipu_work *work, uint32_t node);
/* Writes the numbers of measurement events of each rank into the file (section COST). */
void quipu_collect_costs(struct quipu_work *work);
/* Writes the values of each rank into the file (sections COLS), one rank after the other: rank 0 holds at most
 * QUIPU_PIECE bytes of another rank at a time. */
void quipu_collect_rows(struct quipu_work *work);

#endif

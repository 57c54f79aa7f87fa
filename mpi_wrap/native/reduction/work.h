/* SPDX-License-Identifier: Apache-2.0 */
/* State of one rank in the reduction: its messages, the file of rank 0, and rows of single ranks. */
#ifndef QUIPU_WORK_H
#define QUIPU_WORK_H

#include "tree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* No message is longer than a piece. All messages except rows use one binomial tree. */
enum { QUIPU_TAG = 1, QUIPU_PIECE = 1 << 20 };

/* A rank that takes part in the reduction. */
struct quipu_member {
    MPI_Comm comm;
    int rank, size;
    bool good; /* nothing has failed here */
};

void quipu_send_pieces(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
void quipu_receive_pieces(const struct quipu_member *member, char *bytes, uint64_t size, int from);
/* Send and receive a message preceded by its length. Receiving allocates memory; if there is none, it returns NULL
 * after the whole message has arrived. */
void quipu_send_bytes(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
char *quipu_receive_bytes(const struct quipu_member *member, uint64_t *size, int from);
/* Returns the number of ranks in the subtree of this rank, including this rank. */
int quipu_below(const struct quipu_member *member);
void quipu_broadcast(const struct quipu_member *member, void *bytes, uint64_t size);
/* Computes the minimum of each number over all ranks, on all ranks; at most 8 numbers. */
void quipu_least(const struct quipu_member *member, uint64_t *numbers, size_t count);
/* Gathers `size` bytes of each rank. all: buffer for the ranks of the subtree; the bytes of this rank are at its begin.
 */
void quipu_gather(const struct quipu_member *member, char *all, size_t size);
/* Returns whether no rank has failed. Every step that can fail on one rank alone ends with this call. */
bool quipu_agreed(struct quipu_member *member);

/* The file: sections with checksums (docs/design/reduction.md). */
struct quipu_reduced_file {
    FILE *file; /* NULL: nothing can be written */
    uint64_t size;
    bool refused; /* a part of it could not be written */
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
/* Write a section in pieces: the head, then the content, then quipu_file_pad. */
void quipu_file_head(struct quipu_reduced_file *file, const char *tag, uint32_t crc, uint64_t length);
void quipu_file_bytes(struct quipu_reduced_file *file, const void *bytes, size_t size);
void quipu_file_pad(struct quipu_reduced_file *file, uint64_t length);
/* Renames the file to its final name if all data is on disk; otherwise removes it and returns false. */
bool quipu_file_close(struct quipu_reduced_file *file, bool complete);

/* The data of one rank. */
struct quipu_work {
    struct quipu_member me;
    const struct quipu_snapshot *mine;
    uint64_t *values; /* [nodes][metrics]: of the snapshot, with wall times in place of times of threads */
    bool waits;       /* calls of MPI separate waiting */
    struct quipu_tree tree;
    uint32_t *path;   /* of each node of the snapshot */
    uint32_t *sorted; /* nodes of the snapshot, by call path */
    uint8_t *is_time, *is_max;
    struct quipu_reduced_file file; /* of rank 0 */
};

/* Returns the overhead of a node of the snapshot in seconds (docs/design/overhead.md). */
double quipu_overhead_of_node(const struct quipu_work *work, uint32_t node);
/* Writes the numbers of measurement events of all ranks into the file. */
void quipu_collect_costs(struct quipu_work *work);
/* Writes the rows of all ranks into the file, one rank after the other: rank 0 holds one piece at a time. */
void quipu_collect_rows(struct quipu_work *work);

#endif

/* Messages of the reduction: none is longer than a piece, all but rows go along one binomial tree. */
#ifndef QUIPU_MESSAGES_H
#define QUIPU_MESSAGES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUIPU_TAG = 1, QUIPU_PIECE = 1 << 20 };

/* One rank among those that reduce. */
struct quipu_member {
    MPI_Comm comm;
    int rank, size;
    bool good; /* nothing has failed here */
};

void quipu_send_pieces(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
void quipu_receive_pieces(const struct quipu_member *member, char *bytes, uint64_t size, int from);
/* A message with its length before it; received into new memory: NULL if there is none, after all of it has come. */
void quipu_send_bytes(const struct quipu_member *member, const char *bytes, uint64_t size, int to);
char *quipu_receive_bytes(const struct quipu_member *member, uint64_t *size, int from);
/* How many ranks are below this one in the binomial tree, itself included. */
int quipu_below(const struct quipu_member *member);
void quipu_broadcast(const struct quipu_member *member, void *bytes, uint64_t size);
/* The least of each number over all ranks, on all ranks; at most 8 numbers. */
void quipu_least(const struct quipu_member *member, uint64_t *numbers, size_t count);
/* Gathers `size` bytes of each rank. all: room for those of this rank and all below it, its own at the beginning. */
void quipu_gather(const struct quipu_member *member, char *all, size_t size);
/* Whether all ranks are still well. Every step that can fail on one rank alone ends with it. */
bool quipu_agreed(struct quipu_member *member);

#endif

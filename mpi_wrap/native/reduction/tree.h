/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees of one or several ranks: call paths, their regions, and messages that contain them. */
#ifndef QUIPU_TREE_H
#define QUIPU_TREE_H

#include "paths.h"
#include "quipu_reduction.h"

#include <stddef.h>

/* A call tree. Region 0 is the code outside of all regions. */
struct quipu_tree {
    struct quipu_paths paths;
    uint8_t *open; /* of each call path; 1: it was active at the snapshot of a rank */
    char **texts;  /* records of regions as in profiles; two records with the same first field (name) are one region */
    uint32_t opens, regions, region_room; /* elements of `open`; elements of `texts`, and elements that have memory */
    uint32_t *slots;                      /* hash table with 2 * region_room entries: 1 + number of a region; 0: free */
};

/* Functions that return bool return false if there is no memory. The tree is then incomplete. */
bool quipu_tree_begin(struct quipu_tree *tree);
void quipu_tree_end(struct quipu_tree *tree);
/* Adds the call tree of a snapshot. Sets path[i] to the number of the call path of node i. */
bool quipu_tree_add_snapshot(struct quipu_tree *tree, const struct quipu_snapshot *snapshot, uint32_t *path);
/* Returns a message with the tree, which the caller frees, and sets *size to its bytes; NULL if there is no memory. */
char *quipu_tree_pack(const struct quipu_tree *tree, uint64_t *size);
/* Adds the tree in a message. Also returns false if the message is damaged. */
bool quipu_tree_add_packed(struct quipu_tree *tree, const char *message, uint64_t size);
/* Continues the hash of earlier bytes with `size` more bytes (FNV-1a). hash: QUIPU_HASH for the first bytes. */
uint64_t quipu_hash(const void *bytes, size_t size, uint64_t hash);
#define QUIPU_HASH 14695981039346656037u

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Call trees of one or several ranks: call paths, their regions, and messages. */
#ifndef QUIPU_TREE_H
#define QUIPU_TREE_H

#include "paths.h"
#include "quipu_reduction.h"

#include <stddef.h>

/* A call tree. Region 0 is the code outside of all regions. */
struct quipu_tree {
    struct quipu_paths paths;
    uint8_t *open; /* of each call path */
    char **texts;  /* of regions: records as in profiles; identity is the name at their beginning */
    uint32_t opens, regions, region_room;
    uint32_t *slots; /* hash table of 2 * region_room: region + 1, 0 is free */
};

/* All functions except quipu_tree_end return false if there is no memory; the tree is then incomplete. */
bool quipu_tree_begin(struct quipu_tree *tree);
void quipu_tree_end(struct quipu_tree *tree);
/* Adds a snapshot; path[i] is the call path of its node i. */
bool quipu_tree_add_snapshot(struct quipu_tree *tree, const struct quipu_snapshot *snapshot, uint32_t *path);
/* Returns the tree as a message; NULL if there is no memory. */
char *quipu_tree_pack(const struct quipu_tree *tree, uint64_t *size);
/* Adds the tree of a message; also returns false if the message is damaged. */
bool quipu_tree_add_packed(struct quipu_tree *tree, const char *message, uint64_t size);
uint64_t quipu_hash(const void *bytes, size_t size, uint64_t hash);
#define QUIPU_HASH 14695981039346656037u /* initial value */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Call paths: pairs of a parent and a region, in the order in which they are added, so parents come before
 * children. Independent of MPI and the runtime, because the merge in Python also calls this code
 * (agent/merge/native.py). */
#ifndef QUIPU_PATHS_H
#define QUIPU_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#define QUIPU_ROOT UINT32_MAX /* the parent of a root */

struct quipu_paths {
    uint32_t count, room;
    uint32_t *parent, *region;
    uint32_t *slots; /* hash table of 2 * room: number + 1, 0 is free */
    bool failed;     /* no memory: the paths are incomplete */
};

void quipu_paths_end(struct quipu_paths *paths);
/* Adds the nodes of a forest. path[i]: the call path of node i. False: a parent does not come before its child, or
 * there is no memory. */
bool quipu_paths_add(struct quipu_paths *paths, uint32_t nodes, const uint32_t *parent, const uint32_t *region,
                     uint32_t *path);

enum { QUIPU_NO_MEMORY = -1, QUIPU_NO_FOREST = -2 };
/* Lists all call paths of a forest level by level. Siblings have the order of their first nodes. All arrays have room
 * for all nodes. Returns the number of call paths, or one of the error numbers above. */
int64_t quipu_unify(uint32_t nodes, const uint32_t *parent, const uint32_t *region, uint32_t *path,
                    uint32_t *tree_parent, uint32_t *tree_region);

#endif

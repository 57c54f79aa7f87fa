/* SPDX-License-Identifier: Apache-2.0 */
/* Call paths: pairs of a parent and a region, numbered in the order in which they are added. Parents therefore come
 * before children. This code is independent of MPI and the runtime, because the merge in Python also calls it
 * (agent/merge/native.py). */
#ifndef QUIPU_PATHS_H
#define QUIPU_PATHS_H

#include <stdbool.h>
#include <stdint.h>

#define QUIPU_ROOT UINT32_MAX /* stands for the parent of a call path that has none */

struct quipu_paths {
    uint32_t count, room;      /* number of call paths, and number for which there is memory */
    uint32_t *parent, *region; /* of each call path; parent: number of a call path, or QUIPU_ROOT */
    uint32_t *slots;           /* hash table with 2 * room entries: 1 + number of a call path; 0: free */
    bool failed;               /* there was no memory, so call paths are missing */
};

/* Frees the memory. */
void quipu_paths_end(struct quipu_paths *paths);
/* Adds the call paths of the nodes of a forest. Node i has the parent parent[i] (a node, or QUIPU_ROOT) and the region
 * region[i]. Sets path[i] to the number of its call path; several nodes may have the same one. Returns false if a
 * parent does not come before its child, or if there is no memory. */
bool quipu_paths_add(struct quipu_paths *paths, uint32_t nodes, const uint32_t *parent, const uint32_t *region,
                     uint32_t *path);

enum { QUIPU_NO_MEMORY = -1, QUIPU_NO_FOREST = -2 };
/* Lists all call paths of a forest level by level. Siblings have the order of their first nodes.
 *
 * nodes, parent, region: as in quipu_paths_add. Output, with room for `nodes` elements each: path[i] is the number of
 * node i in the list; tree_parent and tree_region are the parent and region of each call path in the list. Returns the
 * number of call paths, or an error: there is no memory, or a parent does not come before its child. */
int64_t quipu_unify(uint32_t nodes, const uint32_t *parent, const uint32_t *region, uint32_t *path,
                    uint32_t *tree_parent, uint32_t *tree_region);

#endif

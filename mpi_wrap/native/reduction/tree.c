/* SPDX-License-Identifier: Apache-2.0 */
/* Merges call trees of ranks, and writes and reads messages with call trees. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

/* Record of region 0. */
static const char outside[] = "(outside any region)\x1f(outside any region)\x1f\x1f"
                              "0\x1f"
                              "3\x1f"
                              "0";

/* Beginning of a message with a call tree. The parents, the regions and the open flags of its nodes follow, and then
 * the records of the regions, each with its NUL. */
struct packed {
    uint32_t nodes, regions;
    uint64_t text_size;
};

uint64_t quipu_hash(const void *bytes, size_t size, uint64_t hash) { /* FNV-1a */
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static size_t name_length(const char *text) { return strcspn(text, "\x1f"); }

/* Returns whether the third field of a region record (the source file) is not empty. */
static bool has_file(const char *text) {
    const char *field = strchr(text, '\x1f');
    field = field == NULL ? NULL : strchr(field + 1, '\x1f');
    return field != NULL && field[1] != '\x1f' && field[1] != '\0';
}

/* Returns the slot of a region, or the free slot for it. */
static uint32_t *slot_of(const struct quipu_tree *tree, const char *text) {
    const size_t length = name_length(text);
    const uint64_t mask = 2 * (uint64_t)tree->region_room - 1;
    for (uint64_t at = quipu_hash(text, length, QUIPU_HASH);; at++) {
        uint32_t *slot = &tree->slots[at & mask];
        const char *known = *slot == 0 ? NULL : tree->texts[*slot - 1];
        if (known == NULL || (strncmp(known, text, length) == 0 && name_length(known) == length))
            return slot;
    }
}

/* Reserves memory for one more region. The hash table stays at most half full. */
static bool has_room(struct quipu_tree *tree) {
    if (tree->regions < tree->region_room)
        return true;
    const uint32_t room = tree->region_room == 0 ? 64 : 2 * tree->region_room;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    char **texts = slots == NULL ? NULL : realloc(tree->texts, room * sizeof *texts);
    if (texts == NULL) {
        free(slots);
        return false;
    }
    free(tree->slots);
    tree->slots = slots;
    tree->texts = texts;
    tree->region_room = room;
    for (uint32_t region = 0; region < tree->regions; region++)
        *slot_of(tree, texts[region]) = region + 1;
    return true;
}

/* Finds the number of a region, and adds the region if it is new. Of several records of the same region, the tree keeps
 * the first one that names a source file. Returns false if there is no memory. */
static bool number_region(struct quipu_tree *tree, const char *text, uint32_t *number) {
    if (!has_room(tree))
        return false;
    uint32_t *slot = slot_of(tree, text);
    const bool is_new = *slot == 0;
    *number = is_new ? tree->regions : *slot - 1;
    if (!is_new && (has_file(tree->texts[*number]) || !has_file(text)))
        return true;
    char *copy = strdup(text);
    if (copy == NULL)
        return false;
    if (is_new)
        *slot = ++tree->regions;
    else
        free(tree->texts[*number]);
    tree->texts[*number] = copy;
    return true;
}

bool quipu_tree_begin(struct quipu_tree *tree) {
    uint32_t number;
    *tree = (struct quipu_tree){0};
    return number_region(tree, outside, &number);
}

void quipu_tree_end(struct quipu_tree *tree) {
    for (uint32_t region = 0; region < tree->regions; region++)
        free(tree->texts[region]);
    free(tree->texts);
    free(tree->slots);
    free(tree->open);
    quipu_paths_end(&tree->paths);
    *tree = (struct quipu_tree){0};
}

/* Adds nodes whose regions are already in the tree. */
static bool add(struct quipu_tree *tree, uint32_t nodes, const uint32_t *parent, const uint32_t *region,
                const uint8_t *open, uint32_t *path) {
    if (!quipu_paths_add(&tree->paths, nodes, parent, region, path))
        return false;
    uint8_t *larger = realloc(tree->open, (size_t)tree->paths.count + 1);
    if (larger == NULL)
        return false;
    memset(larger + tree->opens, 0, tree->paths.count - tree->opens);
    tree->open = larger;
    tree->opens = tree->paths.count;
    for (uint32_t i = 0; i < nodes; i++)
        tree->open[path[i]] |= open[i];
    return true;
}

bool quipu_tree_add_snapshot(struct quipu_tree *tree, const struct quipu_snapshot *snapshot, uint32_t *path) {
    const uint32_t nodes = snapshot->nodes;
    uint32_t *number = malloc(((size_t)snapshot->regions + 2 * (size_t)nodes + 1) * sizeof *number);
    uint32_t *parent = number + snapshot->regions, *region = parent + nodes;
    bool good = number != NULL;
    for (uint32_t i = 0; good && i < snapshot->regions; i++)
        number[i] = UINT32_MAX; /* it gets its number at its first call path, as in the merge after the run */
    for (uint32_t i = 0; good && i < nodes; i++) {
        const uint32_t of_rank = snapshot->region[i], above = snapshot->parent[i];
        parent[i] = QUIPU_ROOT;
        region[i] = 0;
        if (of_rank == UINT32_MAX)
            continue;
        /* Nodes directly below the node of a location (thread) are roots. */
        if (above != UINT32_MAX && snapshot->region[above] != UINT32_MAX)
            parent[i] = above;
        if (number[of_rank] == UINT32_MAX)
            good = number_region(tree, snapshot->texts[of_rank], &number[of_rank]);
        region[i] = number[of_rank];
    }
    good = good && add(tree, nodes, parent, region, snapshot->open, path);
    free(number);
    return good;
}

static char *put(char *to, const void *from, size_t size) {
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

char *quipu_tree_pack(const struct quipu_tree *tree, uint64_t *size) {
    const uint32_t nodes = tree->paths.count;
    struct packed head = {nodes, tree->regions, 0};
    for (uint32_t i = 0; i < tree->regions; i++)
        head.text_size += strlen(tree->texts[i]) + 1;
    *size = sizeof head + 9 * (uint64_t)nodes + head.text_size;
    char *message = malloc(*size);
    if (message == NULL)
        return NULL;
    char *to = put(message, &head, sizeof head);
    to = put(to, tree->paths.parent, 4 * (size_t)nodes);
    to = put(to, tree->paths.region, 4 * (size_t)nodes);
    to = put(to, tree->open, nodes);
    for (uint32_t i = 0; i < tree->regions; i++)
        to = put(to, tree->texts[i], strlen(tree->texts[i]) + 1);
    return message;
}

bool quipu_tree_add_packed(struct quipu_tree *tree, const char *message, uint64_t size) {
    struct packed head;
    if (size < sizeof head)
        return false;
    memcpy(&head, message, sizeof head);
    if (size != sizeof head + 9 * (uint64_t)head.nodes + head.text_size ||
        (head.text_size > 0 && message[size - 1] != '\0'))
        return false;
    const size_t nodes = head.nodes;
    uint32_t *parent = malloc((3 * nodes + head.regions + 1) * sizeof *parent);
    if (parent == NULL)
        return false;
    uint32_t *region = parent + nodes, *path = region + nodes, *number = path + nodes;
    memcpy(parent, message + sizeof head, 8 * nodes);
    const char *open = message + sizeof head + 8 * nodes, *text = open + nodes;
    bool good = true;
    for (uint32_t i = 0; good && i < head.regions; i++) {
        good = text < message + size && number_region(tree, text, &number[i]);
        text += good ? strlen(text) + 1 : 0;
    }
    for (uint32_t i = 0; good && i < head.nodes; i++) {
        good = region[i] < head.regions;
        if (good)
            region[i] = number[region[i]];
    }
    good = good && add(tree, head.nodes, parent, region, (const uint8_t *)open, path);
    free(parent);
    return good;
}

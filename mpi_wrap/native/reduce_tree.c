/* Call trees of ranks: unification and messages. */
#include "reduce.h"

#include <stdlib.h>
#include <string.h>

static const char outside[] = "(outside any region)\x1f(outside any region)\x1f\x1f"
                              "0\x1f"
                              "3\x1f"
                              "0";

/* What a packed tree begins with; then parents, regions, open, texts with their NULs. */
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

/* Whether the third field, the file, is there. */
static bool has_file(const char *text) {
    const char *field = strchr(text, '\x1f');
    field = field == NULL ? NULL : strchr(field + 1, '\x1f');
    return field != NULL && field[1] != '\x1f' && field[1] != '\0';
}

static uint64_t hash_of_node(uint32_t parent, uint32_t region) {
    uint64_t hash = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_of_text(const char *text) { return quipu_hash(text, name_length(text), 14695981039346656037u); }

static void *grown(struct quipu_tree *tree, void *array, size_t count, size_t size) {
    void *larger = realloc(array, count * size);
    tree->failed = tree->failed || larger == NULL;
    return larger == NULL ? array : larger;
}

/* Room for one more node or region; the hash tables stay at most half full. */
static bool room_for_node(struct quipu_tree *tree) {
    if (tree->nodes == tree->node_room) {
        const uint32_t room = tree->node_room == 0 ? 256 : 2 * tree->node_room;
        tree->parent = grown(tree, tree->parent, room, sizeof *tree->parent);
        tree->region = grown(tree, tree->region, room, sizeof *tree->region);
        tree->open = grown(tree, tree->open, room, sizeof *tree->open);
        uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
        if (slots == NULL || tree->failed) {
            free(slots);
            tree->failed = true;
            return false;
        }
        tree->node_room = room;
        free(tree->node_slots);
        tree->node_slots = slots;
        tree->node_slot_count = 2 * room;
        for (uint32_t node = 0; node < tree->nodes; node++) {
            uint64_t at = hash_of_node(tree->parent[node], tree->region[node]);
            while (slots[at & (tree->node_slot_count - 1)] != 0)
                at++;
            slots[at & (tree->node_slot_count - 1)] = node + 1;
        }
    }
    return true;
}

static bool room_for_region(struct quipu_tree *tree) {
    if (tree->regions == tree->region_room) {
        const uint32_t room = tree->region_room == 0 ? 64 : 2 * tree->region_room;
        tree->texts = grown(tree, tree->texts, room, sizeof *tree->texts);
        uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
        if (slots == NULL || tree->failed) {
            free(slots);
            tree->failed = true;
            return false;
        }
        tree->region_room = room;
        free(tree->region_slots);
        tree->region_slots = slots;
        tree->region_slot_count = 2 * room;
        for (uint32_t region = 0; region < tree->regions; region++) {
            uint64_t at = hash_of_text(tree->texts[region]);
            while (slots[at & (tree->region_slot_count - 1)] != 0)
                at++;
            slots[at & (tree->region_slot_count - 1)] = region + 1;
        }
    }
    return true;
}

void quipu_tree_begin(struct quipu_tree *tree) {
    *tree = (struct quipu_tree){0};
    quipu_tree_region(tree, outside);
}

void quipu_tree_end(struct quipu_tree *tree) {
    for (uint32_t region = 0; region < tree->regions; region++)
        free(tree->texts[region]);
    free(tree->texts);
    free(tree->parent);
    free(tree->region);
    free(tree->open);
    free(tree->node_slots);
    free(tree->region_slots);
    *tree = (struct quipu_tree){0};
}

uint32_t quipu_tree_region(struct quipu_tree *tree, const char *text) {
    if (!room_for_region(tree))
        return 0;
    const size_t length = name_length(text);
    uint64_t at = hash_of_text(text);
    for (;; at++) {
        const uint32_t slot = tree->region_slots[at & (tree->region_slot_count - 1)];
        if (slot == 0)
            break;
        char **known = &tree->texts[slot - 1];
        if (strncmp(*known, text, length) != 0 || name_length(*known) != length)
            continue;
        if (!has_file(*known) && has_file(text)) {
            char *copy = strdup(text);
            tree->failed = tree->failed || copy == NULL;
            if (copy != NULL) {
                free(*known);
                *known = copy;
            }
        }
        return slot - 1;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        tree->failed = true;
        return 0;
    }
    tree->texts[tree->regions++] = copy;
    tree->region_slots[at & (tree->region_slot_count - 1)] = tree->regions;
    return tree->regions - 1;
}

uint32_t quipu_tree_node(struct quipu_tree *tree, uint32_t parent, uint32_t region) {
    if (!room_for_node(tree))
        return 0;
    uint64_t at = hash_of_node(parent, region);
    for (;; at++) {
        const uint32_t slot = tree->node_slots[at & (tree->node_slot_count - 1)];
        if (slot == 0)
            break;
        if (tree->parent[slot - 1] == parent && tree->region[slot - 1] == region)
            return slot - 1;
    }
    const uint32_t node = tree->nodes++;
    tree->parent[node] = parent;
    tree->region[node] = region;
    tree->open[node] = 0;
    tree->node_slots[at & (tree->node_slot_count - 1)] = node + 1;
    return node;
}

void quipu_tree_add_snapshot(struct quipu_tree *tree, const struct quipu_snapshot *snapshot, uint32_t *path) {
    uint32_t *region = calloc((size_t)snapshot->regions + 1, sizeof *region);
    if (region == NULL) {
        tree->failed = true;
        return;
    }
    for (uint32_t i = 0; i < snapshot->regions; i++)
        region[i] = UINT32_MAX; /* numbered where call paths first name it, as post mortem */
    for (uint32_t i = 0; i < snapshot->nodes && !tree->failed; i++) {
        const uint32_t number = snapshot->region[i], above = snapshot->parent[i];
        if (number == UINT32_MAX) {
            path[i] = quipu_tree_node(tree, UINT32_MAX, 0);
        } else {
            if (region[number] == UINT32_MAX)
                region[number] = quipu_tree_region(tree, snapshot->texts[number]);
            /* What a location calls is a root. */
            const bool root = above == UINT32_MAX || snapshot->region[above] == UINT32_MAX;
            path[i] = quipu_tree_node(tree, root ? UINT32_MAX : path[above], region[number]);
        }
        if (!tree->failed)
            tree->open[path[i]] |= snapshot->open[i];
    }
    free(region);
}

char *quipu_tree_pack(const struct quipu_tree *tree, uint64_t *size) {
    struct packed head = {tree->nodes, tree->regions, 0};
    for (uint32_t i = 0; i < tree->regions; i++)
        head.text_size += strlen(tree->texts[i]) + 1;
    *size = sizeof head + 9 * (uint64_t)tree->nodes + head.text_size;
    char *message = malloc(*size), *to = message;
    if (message == NULL || tree->failed) {
        free(message);
        return NULL;
    }
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (tree->nodes > 0) {
        memcpy(to, tree->parent, 4 * (size_t)tree->nodes);
        to += 4 * (size_t)tree->nodes;
        memcpy(to, tree->region, 4 * (size_t)tree->nodes);
        to += 4 * (size_t)tree->nodes;
        memcpy(to, tree->open, tree->nodes);
        to += tree->nodes;
    }
    for (uint32_t i = 0; i < tree->regions; i++) {
        const size_t length = strlen(tree->texts[i]) + 1;
        memcpy(to, tree->texts[i], length);
        to += length;
    }
    return message;
}

static uint32_t number_at(const char *array, uint32_t index) {
    uint32_t number;
    memcpy(&number, array + 4 * (size_t)index, sizeof number);
    return number;
}

bool quipu_tree_add_packed(struct quipu_tree *tree, const char *message, uint64_t size, uint32_t *path) {
    struct packed head;
    if (size < sizeof head)
        return false;
    memcpy(&head, message, sizeof head);
    if (size != sizeof head + 9 * (uint64_t)head.nodes + head.text_size ||
        (head.text_size > 0 && message[size - 1] != '\0'))
        return false;
    const char *parent = message + sizeof head, *region = parent + 4 * (size_t)head.nodes;
    const char *open = region + 4 * (size_t)head.nodes, *text = open + head.nodes, *end = message + size;
    uint32_t *regions = calloc((size_t)head.regions + 1, sizeof *regions);
    uint32_t *own = path != NULL ? path : calloc((size_t)head.nodes + 1, sizeof *own);
    bool good = regions != NULL && own != NULL;
    for (uint32_t i = 0; good && i < head.regions; i++) {
        good = text < end;
        if (good)
            regions[i] = quipu_tree_region(tree, text);
        text += good ? strlen(text) + 1 : 0;
    }
    for (uint32_t i = 0; good && i < head.nodes && !tree->failed; i++) {
        const uint32_t above = number_at(parent, i), number = number_at(region, i);
        good = number < head.regions && (above == UINT32_MAX || above < i);
        if (good) {
            own[i] = quipu_tree_node(tree, above == UINT32_MAX ? UINT32_MAX : own[above], regions[number]);
            if (!tree->failed)
                tree->open[own[i]] |= (uint8_t)open[i];
        }
    }
    free(regions);
    if (path == NULL)
        free(own);
    return good && !tree->failed;
}

/* Call paths of functions that are part of others: they count with those. */
#include "tree.h"

#include <stdlib.h>

namespace quipu {
namespace {

/* What visits of this link count for, which need not be what is active then; null: nothing, for want of room. */
Node *target_of(const Thread *thread, const Link *link) {
    if (!link || link->visits == &thread->no_visits)
        return nullptr;
    return reinterpret_cast<Node *>(reinterpret_cast<char *>(link->visits - QUIPU_VISITS) - offsetof(Node, metrics));
}

} // namespace

void add_scopes(Thread *thread, Node *owner) {
    const RegionRecord *whole = record_of_region(owner->region);
    const uint32_t scopes = whole ? whole->scopes : 0;
    auto **made = scopes ? static_cast<Node **>(calloc(scopes, sizeof(Node *))) : nullptr;
    if (made)
        made[0] = owner;
    else if (scopes)
        profile.note_lost();
    for (uint32_t i = 1; made && i < scopes; i++) {
        const RegionRecord *region = record_of_region(owner->region + i);
        Node *up = made[region->parent];
        auto *link = up ? static_cast<Link *>(keep(sizeof(Link))) : nullptr;
        Node *node = link ? new_node(thread, up, region->id) : nullptr;
        if (!node) {
            profile.note_lost();
            continue;
        }
        node->owner = owner->id;
        node->counters = owner->counters;
        *link = {up,
                 region->id,
                 region->hook == QUIPU_HOOKED ? node : up,
                 thread->nowhere,
                 &node->metrics[QUIPU_VISITS],
                 up->links};
        up->links = link;
        made[i] = node;
    }
    free(static_cast<void *>(made));
}

Node *find_scope(const quipu_thread *thread, const quipu_region *function, uint64_t scope) {
    if (function->id == 0 || function->id == no_room)
        return nullptr;
    Node *here = thread->here;
    const Link *link = nullptr;
    while (here && here->region != function->id && !(link = link_to(here, function->id)))
        here = here->up;
    Node *node = link ? target_of(own(thread), link) : here;
    uint32_t path[64], depth = 0;
    for (uint64_t at = scope; at && depth < sizeof path / sizeof *path; at = function->scopes[at].parent)
        path[depth++] = static_cast<uint32_t>(at);
    while (node && depth > 0)
        node = target_of(own(thread), link_to(node, function->id + path[--depth]));
    return node;
}

} // namespace quipu

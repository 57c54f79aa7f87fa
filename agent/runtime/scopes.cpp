// SPDX-License-Identifier: Apache-2.0
/* Call paths of inlined functions. Their nodes are created together with the node of the function that contains them,
 * and use its visits and counters. */
#include "tree.h"

namespace quipu {
namespace {

/* Returns the node that visits of this link count for, which may differ from the node that the link activates; null if
 * the link counts no visits. */
Node *target_of(const Thread *thread, const Link *link) {
    if (!link || link->visits == &thread->no_visits)
        return nullptr;
    return reinterpret_cast<Node *>(reinterpret_cast<char *>(link->visits - QUIPU_VISITS) - offsetof(Node, metrics));
}

/* Returns the innermost node of the function `id` among `here` and its callers; null if there is none. A function
 * without hooks is not among them: its node is found by the link from one of them. */
Node *node_of_function(const Thread *thread, Node *here, uint64_t id) {
    for (Node *node = here; node; node = node->up) {
        if (node->region == id)
            return node;
        if (const Link *link = thread->links.find(node, id))
            return target_of(thread, link);
    }
    return nullptr;
}

} // namespace

Node *new_function_node(Thread *thread, Node *up, const RegionRecord *region, uint32_t count) {
    if (!region->scopes)
        return new_node(thread, up, region->id, count);
    /* Either all nodes are created or none, because effort without a node would be lost. */
    const size_t chunks = chunks_for(thread->nodes, node_size, region->scopes) +
                          chunks_for(thread->counters, sizeof(quipu_profile_counters) + sizeof(uint64_t) * count, 1);
    auto **scopes = profile.make_room(chunks) ? static_cast<Node **>(keep(sizeof(Node *) * region->scopes)) : nullptr;
    Node *owner = scopes ? new_node(thread, up, region->id, count) : nullptr;
    if (!owner)
        return nullptr;
    owner->scopes = scopes;
    scopes[0] = owner;
    for (uint32_t i = 1; i < region->scopes; i++) {
        const RegionRecord *inner = region_of(region->id + i);
        scopes[i] = new_node(thread, scopes[inner->parent], inner->id, 0);
        scopes[i]->owner = owner->id;
    }
    return owner;
}

Node *scope_below(const Thread *thread, Node *from, const RegionRecord *scope) {
    const Node *function = node_of_function(thread, from, scope->id - scope->index);
    return function && function->scopes ? function->scopes[scope->index] : nullptr;
}

Node *find_scope(const quipu_thread *thread, const quipu_region *function, uint64_t scope) {
    Node *node = function->id ? node_of_function(own(thread), thread->here, function->id) : nullptr;
    if (!node || scope == 0)
        return node;
    return node->scopes ? node->scopes[scope] : nullptr;
}

} // namespace quipu

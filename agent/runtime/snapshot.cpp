// SPDX-License-Identifier: Apache-2.0
/* The data that the reduction over MPI reads from this process, and the counts of the process after the reduction. */
#include "clock.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace quipu {
namespace {

uint32_t width; /* number of values of a node: metrics, then events */
constexpr bool is_max[] = {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description) (over_locations)[0] == 'm',
#include "metrics.def"
};
/* With more differences than this, reading the whole profile is as fast. */
constexpr uint32_t most_rests = 10000;

/* The nodes of the file and their locations, indexed by id - 1. Nodes, and the records of regions, keep their addresses
 * until the end of the process. */
struct NodeList {
    Node **node;
    uint32_t *location;
    uint32_t count;
    uint32_t room; /* number of nodes; after collect(): number of nodes that no filter excludes */
};

NodeList list;
const RegionRecord **records;
uint64_t *effort;   /* [nodes of the list][width]: complete effort of every node */
uint32_t *index_of; /* index in the snapshot, for every node of the list; a filtered region is part of its caller */
bool reduced;
quipu_snapshot snapshot;
const char **texts;
uint64_t began;

/* Removes const, because quipu_snapshot has pointers to const. */
template <typename T> T *owned(const T *array) { return const_cast<T *>(array); }

void forget() {
    free(owned(snapshot.parent));
    free(owned(snapshot.region));
    free(owned(snapshot.location));
    free(owned(snapshot.open));
    free(owned(snapshot.values));
    free(owned(snapshot.events));
    free(static_cast<void *>(texts));
    snapshot = {};
    texts = nullptr;
}

void drop_list() {
    free(static_cast<void *>(list.node));
    free(list.location);
    free(static_cast<void *>(records));
    free(effort);
    free(index_of);
    list = {};
    records = nullptr;
    effort = nullptr;
    index_of = nullptr;
}

/* Sets `values` to the counts of a node: its metrics, plus its counters and visits (or the counters and visits of its
 * owner) times the weights of its region (profile.def). */
void add_effort(const Node *node, uint64_t *values) {
    for (uint32_t metric = 0; metric < metric_count; metric++)
        values[metric] = __atomic_load_n(&node->metrics[metric], __ATOMIC_RELAXED);
    const RegionRecord *region = node->region ? records[node->region] : nullptr;
    const Node *counting = node->owner ? list.node[node->owner - 1] : node;
    const uint64_t visits = __atomic_load_n(&counting->metrics[QUIPU_VISITS], __ATOMIC_RELAXED);
    const auto times_of = [&](uint64_t row) {
        return row == 0 ? visits : __atomic_load_n(&counting->counters[row - 1], __ATOMIC_RELAXED);
    };
    const auto add = [&](uint64_t times, const int64_t *weights) {
        for (uint32_t column = 0; column < QUIPU_WEIGHTED; column++)
            values[QUIPU_BLOCKS + column] += times * static_cast<uint64_t>(weights[column]);
    };
    uint64_t additions = 0;
    for (uint32_t row = 0; region && !node->owner && row < region->rows; row++) {
        const uint64_t times = times_of(row);
        add(times, region->weights + size_t{row} * QUIPU_WEIGHTED);
        additions += times * static_cast<uint64_t>(region->additions[row]);
    }
    values[metric_count + QUIPU_COUNTERS_ADDED] = additions >> 63 ? 0 : additions;
    for (uint32_t i = 0; region && (node->owner || region->scopes) && i < region->scope_row_count; i++) {
        const int64_t *row = region->scope_rows + size_t{i} * QUIPU_SCOPE_ROW;
        const uint64_t times = times_of(static_cast<uint64_t>(row[0]));
        values[QUIPU_VISITS] += times * static_cast<uint64_t>(row[1]);
        add(times, row + 2);
    }
    const uint64_t entered = __atomic_load_n(&node->metrics[QUIPU_VISITS], __ATOMIC_RELAXED);
    const bool hooked = region && region->hook == QUIPU_HOOKED;
    const bool timed = get(node->charged) == node;
    values[metric_count + QUIPU_PAIRS] = hooked && timed ? entered : 0;
    /* If nothing counts visits, they follow from the counters. */
    values[metric_count + QUIPU_QUIET_VISITS] = hooked        ? (timed ? 0 : entered * QUIPU_UNTIMED_PAIR)
                                                : node->owner ? 0
                                                : entered     ? entered
                                                              : values[QUIPU_VISITS];
}

bool is_largest(uint32_t metric) { return metric < QUIPU_METRIC_COUNT ? is_max[metric] : is_further_max(metric); }

bool is_left_out(const Node *node) { return node->region && records[node->region]->hook == QUIPU_LEFT_OUT; }

/* Fills the list in the order of ids, which is the order of creation, with complete effort. Returns false if there is
 * no memory or a node is missing; then the merge needs the profile file. Call under the lock. */
bool collect() {
    drop_list();
    width = metric_count + QUIPU_EVENTS;
    static uint32_t nodes;
    nodes = 0;
    profile.for_each_chunk([](quipu_profile_chunk *chunk) {
        if (chunk->type == QUIPU_CHUNK_NODES)
            nodes += chunk->used / node_size;
    });
    list.node = static_cast<Node **>(calloc(nodes + 1, sizeof(Node *)));
    list.location = static_cast<uint32_t *>(calloc(nodes + 1, sizeof(uint32_t)));
    list.room = nodes;
    records = static_cast<const RegionRecord **>(calloc(regions + 1, sizeof(RegionRecord *)));
    effort = static_cast<uint64_t *>(calloc((size_t{nodes} + 1) * width, sizeof(uint64_t)));
    index_of = static_cast<uint32_t *>(calloc(nodes + 1, sizeof(uint32_t)));
    if (!list.node || !list.location || !records || !effort || !index_of)
        return false;
    profile.for_each_chunk([](quipu_profile_chunk *chunk) {
        for (uint32_t i = 0; chunk->type == QUIPU_CHUNK_NODES && i < chunk->used / node_size; i++) {
            auto *node = reinterpret_cast<Node *>(reinterpret_cast<char *>(chunk + 1) + size_t{i} * node_size);
            if (node->id && node->id <= list.room) {
                list.node[node->id - 1] = node;
                list.location[node->id - 1] = chunk->location;
                list.count++;
            }
        }
    });
    for (uint64_t id = 1; id <= regions; id++)
        records[id] = region_of(id);
    if (list.count != list.room)
        return false;
    for (uint32_t i = 0; i < list.count; i++)
        if (!list.node[i] || list.node[i]->region > regions || (list.node[i]->region && !records[list.node[i]->region]))
            return false;
    for (uint32_t i = 0; i < list.count; i++)
        add_effort(list.node[i], effort + size_t{i} * width);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list.count; i++)
        index_of[i] = is_left_out(list.node[i]) ? UINT32_MAX : kept++;
    for (uint32_t i = list.count; i-- > 0;) { /* parents have lower indexes */
        const uint64_t *from = effort + size_t{i} * width;
        if (index_of[i] != UINT32_MAX || !list.node[i]->up)
            continue;
        uint64_t *to = effort + size_t{list.node[i]->up->id - 1} * width;
        for (uint32_t metric = 0; metric < width; metric++) {
            if (is_largest(metric))
                to[metric] = from[metric] > to[metric] ? from[metric] : to[metric];
            else if (metric != QUIPU_VISITS)
                to[metric] += from[metric];
        }
    }
    for (uint32_t i = 0; i < list.count; i++)
        for (uint32_t column = 0; column < QUIPU_WEIGHTED; column++) {
            uint64_t *value = effort + size_t{i} * width + QUIPU_BLOCKS + column;
            *value = *value >> 63 ? 0 : *value;
        }
    list.room = kept;
    return true;
}

bool allocate(uint32_t nodes) {
    auto *parent = static_cast<uint32_t *>(calloc(size_t{nodes} + 1, sizeof(uint32_t)));
    auto *region = static_cast<uint32_t *>(calloc(size_t{nodes} + 1, sizeof(uint32_t)));
    auto *location = static_cast<uint32_t *>(calloc(size_t{nodes} + 1, sizeof(uint32_t)));
    auto *open = static_cast<uint8_t *>(calloc(size_t{nodes} + 1, 1));
    auto *values = static_cast<uint64_t *>(calloc((size_t{nodes} + 1) * metric_count, sizeof(uint64_t)));
    auto *events = static_cast<uint64_t *>(calloc((size_t{nodes} + 1) * QUIPU_EVENTS, sizeof(uint64_t)));
    texts = static_cast<const char **>(calloc(regions + 1, sizeof(char *)));
    snapshot = {nodes,         static_cast<uint32_t>(regions) + 1,
                metric_count,  0,
                event_costs,   parent,
                region,        location,
                open,          values,
                events,        texts,
                metric_table()};
    if (parent && region && location && open && values && events && texts)
        return true;
    forget();
    return false;
}

/* Marks a call path and all of its callers as open, because callers may be active without a frame. */
void mark_open(Node *here) {
    for (const Node *node = here ? counted(here) : nullptr; node && node->id <= list.count; node = node->up)
        if (index_of[node->id - 1] != UINT32_MAX)
            owned(snapshot.open)[index_of[node->id - 1]] = 1;
}

bool copy_all() {
    if (!collect() || !allocate(list.room))
        return false;
    auto *parent = owned(snapshot.parent);
    auto *region = owned(snapshot.region);
    for (uint32_t i = 0; i < list.count; i++) {
        const uint32_t at = index_of[i];
        if (at == UINT32_MAX)
            continue;
        const Node *node = list.node[i], *up = node->up;
        while (up && index_of[up->id - 1] == UINT32_MAX)
            up = up->up;
        parent[at] = up ? index_of[up->id - 1] : UINT32_MAX;
        region[at] = node->region ? static_cast<uint32_t>(node->region) : UINT32_MAX;
        owned(snapshot.location)[at] = list.location[i];
        memcpy(owned(snapshot.values) + size_t{at} * metric_count, effort + size_t{i} * width,
               metric_count * sizeof(uint64_t));
        memcpy(owned(snapshot.events) + size_t{at} * QUIPU_EVENTS, effort + size_t{i} * width + metric_count,
               QUIPU_EVENTS * sizeof(uint64_t));
        owned(snapshot.open)[at] = node->region == 0;
    }
    for (uint64_t id = 1; id <= regions; id++)
        texts[id] = records[id] ? records[id]->text : "";
    /* Other threads continue. Regions that they enter now are not marked, and the comparison at the end finds them. */
    for_each_thread([](quipu_thread *thread) {
        for (const Frame *frame = own(thread)->frames; thread->in_use && frame <= get(thread->top); frame++) {
            mark_open(get(frame->node));
            mark_open(get(frame->back));
        }
        if (thread->in_use)
            mark_open(get(thread->here));
    });
    const quipu_profile_header *header = profile.header;
    if (header->clock == QUIPU_CLOCK_NANOSECONDS)
        snapshot.seconds_per_tick = 1e-9;
    else if (header->clock == QUIPU_CLOCK_TSC && header->flush_ticks > header->start_ticks)
        snapshot.seconds_per_tick = static_cast<double>(header->flush_ns - header->start_ns) /
                                    static_cast<double>(header->flush_ticks - header->start_ticks) * 1e-9;
    return true;
}

/* Computes the increase of node i of the list since the snapshot. Returns false if it is 0. Nodes are created in order,
 * so the indexes of the snapshot are still valid. */
bool rest_of(uint32_t i, uint64_t *rest) {
    memcpy(rest, effort + size_t{i} * width, width * sizeof(uint64_t));
    if (index_of[i] >= snapshot.nodes)
        return true;
    const uint64_t *values = snapshot.values + size_t{index_of[i]} * metric_count;
    const uint64_t *events = snapshot.events + size_t{index_of[i]} * QUIPU_EVENTS;
    bool any = false;
    for (uint32_t metric = 0; metric < width; metric++) {
        const uint64_t before = metric < metric_count ? values[metric] : events[metric - metric_count];
        if (is_largest(metric))
            rest[metric] = rest[metric] == before ? 0 : rest[metric];
        else
            rest[metric] -= before;
        any = any || rest[metric] != 0;
    }
    return any;
}

bool add_rest(const Node *node, uint32_t location, const uint64_t *rest) {
    constexpr size_t number = 21;
    size_t depth = 0;
    for (const Node *up = node; up; up = up->up)
        depth++;
    size_t size = (depth + width) * number + 2;
    auto *text = static_cast<char *>(malloc(size));
    auto *path = static_cast<uint64_t *>(malloc((depth + 1) * sizeof(uint64_t)));
    bool added = false;
    if (text && path) {
        size_t level = depth;
        for (const Node *up = node; up; up = up->up)
            path[--level] = up->region;
        char *to = text;
        for (size_t i = 0; i < depth; i++) /* the root of a location is not a region */
            if (path[i] && records[path[i]]->hook != QUIPU_LEFT_OUT)
                to += snprintf(to, number + 1, "%llu ", static_cast<unsigned long long>(path[i]));
        *to++ = '\x1f';
        for (uint32_t metric = 0; metric < width; metric++)
            to += snprintf(to, number + 1, "%llu ", static_cast<unsigned long long>(rest[metric]));
        to[-1] = '\0';
        const char *parts[] = {text};
        added = profile.add_text(QUIPU_TEXT_REST, location, parts, 1);
    }
    free(text);
    free(path);
    return added;
}

} // namespace

void write_rests() {
    if (!reduced)
        return;
    const Locked locked;
    uint32_t rests = 0;
    bool complete = collect();
    for (uint32_t i = 0; complete && i < list.count; i++) {
        uint64_t rest[most_metrics + QUIPU_EVENTS];
        if (index_of[i] != UINT32_MAX && rest_of(i, rest))
            complete = add_rest(list.node[i], list.location[i], rest) && ++rests <= most_rests;
    }
    char text[16];
    snprintf(text, sizeof text, "%u", rests);
    if (complete) /* without this attribute the merge reads the whole profile */
        set_attribute("rests", text);
    drop_list();
}

void forget_reduction() {
    reduced = false;
    forget();
}

} // namespace quipu

extern "C" {

const struct quipu_snapshot *quipu_take_snapshot(void) {
    using namespace quipu;
    if (!active || !profile.header || reduced || !measured_thread())
        return nullptr;
    quipu_flush();
    count_before_flush(true);
    began = ticks(clock_kind);
    const Locked locked;
    const bool taken = copy_all();
    drop_list();
    return taken ? &snapshot : nullptr;
}

void quipu_end_snapshot(const char *reduction) {
    using namespace quipu;
    quipu_thread *thread = measured_thread();
    if (!snapshot.values || !thread)
        return;
    const Locked locked;
    char text[32];
    const double seconds = static_cast<double>(ticks(clock_kind) - began) * snapshot.seconds_per_tick;
    const auto microseconds = static_cast<unsigned long long>(seconds * 1e6); /* %f depends on the locale */
    snprintf(text, sizeof text, "%llu.%06llu", microseconds / 1000000, microseconds % 1000000);
    set_attribute("reduction_seconds", text);
    if (reduction) {
        set_attribute("reduction", reduction);
        reduced = true;
    } else {
        forget();
    }
    put(thread->last, ticks(clock_kind));
}
}

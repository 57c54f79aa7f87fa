/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the requests that are counted later.
 *
 * Sends and nonblocking collective operations are counted when they are posted, because their arguments contain the
 * bytes. The table contains receives, whose bytes are in the status, and persistent requests, which count at each
 * start. It is a hash table in 64 parts with separate locks.
 *
 * MPI may reuse a handle as soon as its request is complete, before the completing thread removes the entry here. There
 * may therefore be several entries of one handle, the newest first. Each has the number of its insertion. A completion
 * uses the newest entry that was inserted before the wait or test call began. */
#include "requests.h"

#include "bytes.h"
#include "partners.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 64, FIRST_BUCKETS = 16, SPINS = 100 };

struct entry {
    struct entry *next;
    uint64_t key;  /* the handle */
    uint64_t time; /* number of this insertion, from 1 */
    struct quipu_mpi_request request;
};

struct part {
    atomic_flag lock;
    uint32_t buckets; /* a power of two, 0 before the first entry */
    uint32_t entries;
    struct entry **bucket;
    struct entry *unused;
} __attribute__((aligned(64)));

static struct part parts[PARTS];
static _Atomic uint64_t inserted; /* number of all insertions so far */
static _Atomic uint64_t removed;

static uint64_t key_of(MPI_Request handle) {
    uint64_t key = 0;
    memcpy(&key, &handle, sizeof(MPI_Request));
    return key;
}

/* Fibonacci hashing: handles are aligned addresses or small numbers with flag bits at the top. */
static uint64_t hash_of(uint64_t key) { return (key ^ (key >> 32)) * UINT64_C(0x9E3779B97F4A7C15); }

static struct part *lock_part(uint64_t hash) {
    struct part *part = &parts[hash >> 58];
    for (int spins = 0; atomic_flag_test_and_set_explicit(&part->lock, memory_order_acquire); spins++)
        if (spins >= SPINS)
            sched_yield();
    return part;
}

static void unlock_part(struct part **part) { atomic_flag_clear_explicit(&(*part)->lock, memory_order_release); }

/* Defines `part`: the part of the table for this hash, locked until the end of the block. */
// NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a variable
#define LOCKED_PART(part, hash) __attribute__((cleanup(unlock_part))) struct part *part = lock_part(hash)

static struct entry **chain(struct part *part, uint64_t hash) {
    return &part->bucket[(hash >> 26) & (part->buckets - 1)];
}

/* Makes room for one more entry in the table of a part. Returns false if there is no memory for the first table. */
static bool grow(struct part *part) {
    if (part->entries < 2 * part->buckets)
        return true;
    const uint32_t before = part->buckets;
    struct entry **old = part->bucket;
    struct entry **bucket = calloc(before == 0 ? FIRST_BUCKETS : 2 * before, sizeof(struct entry *));
    if (bucket == NULL)
        return before != 0;
    part->bucket = bucket;
    part->buckets = before == 0 ? FIRST_BUCKETS : 2 * before;
    for (uint32_t i = 0; i < before; i++) {
        /* Entries are added at the ends of the two new chains, so that the newest entry stays first. */
        struct entry **low = &bucket[i], **high = &bucket[i + before];
        for (struct entry *entry = old[i]; entry != NULL; entry = entry->next) {
            struct entry ***end = chain(part, hash_of(entry->key)) == &bucket[i] ? &low : &high;
            **end = entry;
            *end = &entry->next;
        }
        *low = *high = NULL;
    }
    free(old);
    return true;
}

/* Returns the pointer that leads to the newest entry of this handle that is not later than `time`; NULL if there is no
 * such entry. */
static struct entry **find(struct part *part, uint64_t hash, uint64_t key, uint64_t time) {
    if (part->buckets == 0)
        return NULL;
    for (struct entry **link = chain(part, hash); *link != NULL; link = &(*link)->next)
        if ((*link)->key == key && (*link)->time <= time)
            return link;
    return NULL;
}

static void remove_entry(struct part *part, struct entry **link) {
    struct entry *entry = *link;
    *link = entry->next;
    entry->next = part->unused;
    part->unused = entry;
    part->entries--;
    atomic_fetch_add_explicit(&removed, 1, memory_order_relaxed);
}

void quipu_mpi_posted(MPI_Request handle, struct quipu_mpi_request request) {
    const uint64_t key = key_of(handle), hash = hash_of(key);
    if (handle == MPI_REQUEST_NULL)
        return;
    LOCKED_PART(part, hash);
    struct entry *entry = part->unused;
    if (grow(part) && (entry != NULL || (entry = malloc(sizeof *entry)) != NULL)) {
        if (entry == part->unused)
            part->unused = entry->next;
        struct entry **head = chain(part, hash);
        entry->key = key;
        entry->request = request;
        entry->next = *head;
        *head = entry;
        part->entries++;
        entry->time = atomic_fetch_add_explicit(&inserted, 1, memory_order_relaxed) + 1;
    }
}

void quipu_mpi_started(MPI_Request handle, struct quipu_node *node) {
    const uint64_t key = key_of(handle), hash = hash_of(key);
    struct quipu_mpi_request request = {0};
    {
        LOCKED_PART(part, hash);
        struct entry **link = find(part, hash, key, UINT64_MAX);
        if (link != NULL && (*link)->request.persistent) {
            (*link)->request.node = node;
            (*link)->request.active = true;
            request = (*link)->request;
        }
    }
    if (!request.persistent)
        return;
    quipu_mpi_count(node, request.processes, request.sent, request.received, request.message_sent,
                    request.message_received && !request.from_status);
    if (request.has_partner && node != NULL)
        quipu_mpi_sent_to(request.partner, request.sent);
}

uint64_t quipu_mpi_request_time(void) { return atomic_load_explicit(&inserted, memory_order_relaxed); }

bool quipu_mpi_any_request(void) {
    return atomic_load_explicit(&removed, memory_order_relaxed) != quipu_mpi_request_time();
}

bool quipu_mpi_is_receive(MPI_Request handle) {
    const uint64_t key = key_of(handle), hash = hash_of(key);
    LOCKED_PART(part, hash);
    struct entry **link = find(part, hash, key, UINT64_MAX);
    return link != NULL && (*link)->request.from_status && (!(*link)->request.persistent || (*link)->request.active);
}

uint64_t quipu_mpi_settle(MPI_Request handle, uint64_t time, const MPI_Status *status) {
    const uint64_t key = key_of(handle), hash = hash_of(key);
    struct quipu_mpi_request request = {0};
    {
        LOCKED_PART(part, hash);
        struct entry **link = find(part, hash, key, time);
        if (link == NULL)
            return 0;
        request = (*link)->request;
        if (!request.persistent)
            remove_entry(part, link);
        else
            (*link)->request.active = false;
    }
    if (request.persistent && !(request.from_status && request.active))
        return 0;
    if (!request.from_status) {
        quipu_mpi_count(request.node, 0, 0, request.received, false, request.message_received);
        return request.received;
    }
    /* Only messages can be cancelled. For a file operation, Open MPI leaves this flag of the status undefined. */
    int cancelled = 0;
    if (request.message_received && PMPI_Test_cancelled(status, &cancelled) == MPI_SUCCESS && cancelled)
        return 0;
    const uint64_t bytes = quipu_mpi_status_bytes(status);
    quipu_mpi_count(request.node, 0, 0, bytes, false, request.message_received);
    return bytes;
}

void quipu_mpi_forget(MPI_Request handle, uint64_t time, bool persistent_too) {
    const uint64_t key = key_of(handle), hash = hash_of(key);
    LOCKED_PART(part, hash);
    struct entry **link = find(part, hash, key, time);
    if (link != NULL && (persistent_too || !(*link)->request.persistent))
        remove_entry(part, link);
    else if (link != NULL)
        (*link)->request.active = false;
}

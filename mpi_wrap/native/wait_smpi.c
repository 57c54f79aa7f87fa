/* SPDX-License-Identifier: Apache-2.0 */
/* Computes waiting under SMPI. The arrival of both sides of a message, and of the last rank at a collective operation,
 * is known to the nanosecond of simulated time, without probes.
 *
 * Messages match as in MPI: per communicator and receiver, in order, with wildcards. All ranks are in this process and
 * run one at a time. */
#include "wait.h"

#ifdef SMPI_H

#include <simgrid/engine.h>
#include <stdlib.h>
#include <string.h>

/* simgrid::smpi::Comm::id() const of libsimgrid, which no C header declares: the same number on all ranks of a
 * communicator. */
extern int id_of(MPI_Comm comm) __asm__("_ZNK7simgrid4smpi4Comm2idEv") __attribute__((weak));
/* simgrid::smpi::Win::comm() const: the communicator of a window. */
extern MPI_Comm comm_of(MPI_Win win) __asm__("_ZNK7simgrid4smpi3Win4commEv") __attribute__((weak));

bool quipu_mpi_tell_waits = false;
bool quipu_mpi_wait_mode_is_on = false;

struct queue;

/* A message with at least one side. */
struct quipu_mpi_message {
    struct quipu_mpi_message *next; /* in the queue */
    struct queue *queue;            /* its queue while the other side is missing */
    uint64_t matched;               /* when both sides had arrived; 0: not yet */
    int source, tag, owners;
    bool receive; /* whether the first side is a receive */
    struct quipu_mpi_rank *first;
};

/* Sends or receives without their other side. */
struct queue {
    struct quipu_mpi_message *first, **end;
};

/* Messages to a rank in a communicator. */
struct inbox {
    uint64_t key;
    struct queue sends, receives;
};

/* Ranks that have arrived at the same collective operation. */
struct gathering {
    struct gathering *next;
    uint64_t last, root;
    int came, left;
    bool synchronized;                   /* all ranks continue at the same moment */
    struct quipu_mpi_blocks reached;     /* largest blocks of the ranks that others wait for */
    struct quipu_mpi_arrival arrivals[]; /* of each rank */
};

struct collectives {
    uint64_t key;
    int size;
    uint64_t begin, *calls; /* number of the first gathering; next call of each rank */
    struct gathering *first;
};

struct pending_request {
    uint64_t key; /* the handle */
    struct quipu_mpi_message *message;
    MPI_Comm comm;
    int peer, tag;
    bool persistent, receive;
};

/* Hash tables of pointers to structures that begin with their key. */
struct table {
    uint64_t **slots;
    size_t room, used;
};

static struct table inboxes, all_collectives, requests;

static uint64_t clock_now(void) { return (uint64_t)(simgrid_get_clock() * 1e9) + 1; /* 0 is never */ }

static uint64_t **slot_of(struct table *table, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    for (hash ^= hash >> 32;; hash++) {
        uint64_t **slot = &table->slots[hash & (table->room - 1)];
        if (*slot == NULL || **slot == key)
            return slot;
    }
}

/* Returns the structure with this key. A new one is zeroed and added. NULL: there is no memory. */
static void *entry_of(struct table *table, uint64_t key, size_t size) {
    if (2 * table->used >= table->room) {
        const struct table old = *table;
        const size_t room = old.room == 0 ? 256 : 2 * old.room;
        uint64_t **slots = (uint64_t **)calloc(room, sizeof *slots);
        if (slots == NULL)
            return NULL;
        table->slots = slots;
        table->room = room;
        for (size_t i = 0; i < old.room; i++)
            if (old.slots[i] != NULL)
                *slot_of(table, *old.slots[i]) = old.slots[i];
        free((void *)old.slots);
    }
    uint64_t **slot = slot_of(table, key);
    if (*slot == NULL && (*slot = calloc(1, size)) != NULL) {
        **slot = key;
        table->used++;
    }
    return *slot;
}

/* Returns a key for a communicator and a rank in it. */
static uint64_t key_of(MPI_Comm comm, int rank) { return (uint64_t)id_of(comm) << 32 | (uint32_t)rank; }

static bool is_told(MPI_Comm comm) { return quipu_mpi_tell_waits && comm != MPI_COMM_NULL && comm != MPI_COMM_SELF; }

void quipu_mpi_choose_waits(bool world) {
    (void)world; /* sessions are not simulated */
    const char *mode = quipu_setting("QUIPU_MPI_WAIT"), *clock = quipu_setting("QUIPU_CLOCK");
    const bool off = mode != NULL && strcmp(mode, "off") == 0;
    const bool known = &id_of != NULL;
    quipu_mpi_wait_mode_is_on = !off && known;
    quipu_attribute("mpi_wait", quipu_mpi_wait_mode_is_on ? "simulated" : "off");
    quipu_mpi_tell_waits = quipu_mpi_wait_mode_is_on && (clock == NULL || strcmp(clock, "none") != 0);
    struct quipu_mpi_rank *running = quipu_mpi_tell_waits ? quipu_mpi_running() : NULL;
    if (running != NULL)
        quipu_mpi_synchronized(running);
}

static void release(struct quipu_mpi_message *message) {
    if (message != NULL && --message->owners == 0)
        free(message);
}

/* Takes a message out of its queue, in which `link` leads to it. */
static void unlink_message(struct quipu_mpi_message **link) {
    struct quipu_mpi_message *message = *link;
    *link = message->next;
    if (message->queue->end == &message->next)
        message->queue->end = link;
    message->queue = NULL;
}

/* Notes that the running rank arrives at an operation in which the other rank waits. */
static void come_to(struct quipu_mpi_rank *other, uint64_t now) {
    if (other == NULL || other->active_wrapper == NULL)
        return;
    if (other->awaited == NULL && (other->awaited = calloc(1, sizeof *other->awaited)) == NULL)
        return;
    quipu_mpi_forget_arrival(other->awaited);
    quipu_mpi_note_arrival(other->awaited);
    other->awaited->at = now;
}

/* Returns a side of a message: of a waiting message that matches, or of a new one. */
static struct quipu_mpi_message *side(struct inbox *inbox, bool receive, int source, int tag) {
    struct queue *others = receive ? &inbox->sends : &inbox->receives,
                 *own = receive ? &inbox->receives : &inbox->sends;
    for (struct quipu_mpi_message **link = &others->first; *link != NULL; link = &(*link)->next) {
        struct quipu_mpi_message *other = *link;
        const int sent_by = receive ? other->source : source, wanted = receive ? source : other->source;
        const int sent_as = receive ? other->tag : tag, wanted_as = receive ? tag : other->tag;
        if ((wanted != MPI_ANY_SOURCE && wanted != sent_by) || (wanted_as != MPI_ANY_TAG && wanted_as != sent_as))
            continue;
        unlink_message(link); /* this side now owns the reference of the queue */
        other->matched = clock_now();
        come_to(other->first, other->matched);
        return other;
    }
    struct quipu_mpi_message *message = calloc(1, sizeof *message);
    if (message == NULL)
        return NULL;
    *message = (struct quipu_mpi_message){.queue = own,
                                          .source = source,
                                          .tag = tag,
                                          .owners = 2 /* this side and the queue */,
                                          .receive = receive,
                                          .first = quipu_mpi_running()};
    if (own->first == NULL)
        own->end = &own->first;
    *own->end = message;
    own->end = &message->next;
    return message;
}

struct quipu_mpi_message *quipu_mpi_message(bool receive, int peer, int tag, MPI_Comm comm) {
    int rank = 0;
    if (!is_told(comm) || peer == MPI_PROC_NULL || PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS)
        return NULL;
    struct inbox *inbox = entry_of(&inboxes, key_of(comm, receive ? rank : peer), sizeof *inbox);
    return inbox == NULL ? NULL : side(inbox, receive, receive ? peer : rank, tag);
}

/* Ends a side. A receive that ends without a message was cancelled; a send may still be under way. */
static void end_side(struct quipu_mpi_message *message) {
    if (message != NULL && message->queue != NULL && message->receive) {
        struct quipu_mpi_message **link = &message->queue->first;
        while (*link != message)
            link = &(*link)->next;
        unlink_message(link);
        message->owners--; /* reference of the queue */
    }
    release(message);
}

static void add_wait(struct quipu_node *node, uint64_t begin, uint64_t until) {
    const uint64_t end = quipu_ticks();
    until = until < end ? until : end;
    if (node != NULL && until > begin)
        quipu_mpi_add(node, QUIPU_WAIT_TIME, until - begin);
}

/* Adds the waiting of the running rank for messages: from `begin` to `until`, when both sides of the last message had
 * arrived. */
static void add_wait_for_message(struct quipu_node *node, uint64_t begin, uint64_t until) {
    add_wait(node, begin, until);
    struct quipu_mpi_rank *running = quipu_mpi_running();
    if (running == NULL || until <= begin)
        return;
    if (running->awaited == NULL || running->awaited->at != until) {
        quipu_mpi_waited_unaccounted(until - begin);
        return;
    }
    struct quipu_mpi_arrival own = {.at = begin};
    quipu_mpi_note_arrival(&own);
    quipu_mpi_account_message(running->awaited, &own);
    quipu_mpi_forget_arrival(&own);
    quipu_mpi_forget_arrival(running->awaited);
}

void quipu_mpi_waited_for(struct quipu_node *node, uint64_t begin, struct quipu_mpi_message *message,
                          struct quipu_mpi_message *other) {
    if (!quipu_mpi_tell_waits)
        return;
    const uint64_t a = message == NULL ? 0 : message->matched, b = other == NULL ? 0 : other->matched;
    add_wait_for_message(node, begin, a > b ? a : b);
    end_side(message);
    end_side(other);
}

void quipu_mpi_waited_all(struct quipu_node *node, uint64_t begin) {
    if (!quipu_mpi_tell_waits)
        return;
    add_wait(node, begin, UINT64_MAX);
    quipu_mpi_waited_unaccounted(quipu_ticks() - begin);
}

static struct pending_request *pending(MPI_Request handle, bool make) {
    const uint64_t key = (uint64_t)(uintptr_t)handle;
    if (handle == MPI_REQUEST_NULL)
        return NULL;
    if (make)
        return entry_of(&requests, key, sizeof(struct pending_request));
    return requests.room == 0 ? NULL : (void *)*slot_of(&requests, key);
}

void quipu_mpi_message_posted(MPI_Request handle, struct quipu_mpi_message *message) {
    struct pending_request *request = message == NULL ? NULL : pending(handle, true);
    if (request == NULL)
        return;
    end_side(request->message); /* of a freed request whose handle is reused */
    *request = (struct pending_request){.key = request->key, .message = message};
}

void quipu_mpi_message_planned(MPI_Request handle, bool receive, int peer, int tag, MPI_Comm comm) {
    struct pending_request *request = is_told(comm) && peer != MPI_PROC_NULL ? pending(handle, true) : NULL;
    if (request == NULL)
        return;
    end_side(request->message);
    *request = (struct pending_request){
        .key = request->key, .comm = comm, .peer = peer, .tag = tag, .persistent = true, .receive = receive};
}

void quipu_mpi_messages_started(int count, const MPI_Request *handles) {
    for (int i = 0; quipu_mpi_tell_waits && i < count; i++) {
        struct pending_request *request = pending(handles[i], false);
        if (request != NULL && request->persistent && request->message == NULL)
            request->message = quipu_mpi_message(request->receive, request->peer, request->tag, request->comm);
    }
}

void quipu_mpi_before_completion(struct quipu_mpi_pending *all, int count, const MPI_Request *handles) {
    all->count = 0;
    if (!quipu_mpi_tell_waits || count < 1 || requests.used == 0)
        return;
    all->handles = (size_t)count <= sizeof all->few / sizeof *all->few
                       ? all->few
                       : (MPI_Request *)malloc((size_t)count * sizeof *handles);
    if (all->handles == NULL)
        return;
    memcpy((void *)all->handles, (const void *)handles, (size_t)count * sizeof *handles);
    all->count = count;
}

void quipu_mpi_after_completion(struct quipu_mpi_pending *all, const MPI_Request *handles, struct quipu_node *node,
                                uint64_t begin) {
    uint64_t latest = 0;
    for (int i = 0; i < all->count; i++) {
        struct pending_request *request = pending(all->handles[i], false);
        if (request == NULL || request->message == NULL)
            continue;
        const uint64_t matched = request->message->matched;
        if (handles[i] != MPI_REQUEST_NULL && (!request->persistent || matched == 0))
            continue; /* still active */
        latest = matched > latest ? matched : latest;
        end_side(request->message);
        request->message = NULL;
    }
    if (all->count > 0 && all->handles != all->few)
        free((void *)all->handles);
    if (begin != 0)
        add_wait_for_message(node, begin, latest);
}

/* Operations of communicators and of windows are numbered separately: the operations of all windows of a communicator
 * have the same order on all ranks. */
enum scope { OF_COMM, OF_WINDOWS };

static struct collectives *collectives_of(MPI_Comm comm, enum scope scope) {
    const uint64_t key = (uint64_t)scope << 32 | (uint32_t)id_of(comm);
    struct collectives *found = entry_of(&all_collectives, key, sizeof *found);
    if (found == NULL || found->calls != NULL)
        return found;
    if (PMPI_Comm_size(comm, &found->size) == MPI_SUCCESS)
        found->calls = calloc((size_t)found->size, sizeof *found->calls);
    return found->calls == NULL ? NULL : found;
}

/* Returns the operation of `comm` that this rank is in or will enter next; NULL if waiting is not separated. */
static struct gathering *gathering_of(MPI_Comm comm, enum scope scope, struct collectives **of, int *rank) {
    int inter = 0;
    if (!is_told(comm) || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
        PMPI_Comm_rank(comm, rank) != MPI_SUCCESS)
        return NULL;
    struct collectives *collectives = *of = collectives_of(comm, scope);
    if (collectives == NULL)
        return NULL;
    struct gathering **link = &collectives->first;
    for (uint64_t skip = collectives->calls[*rank] - collectives->begin;; skip--) {
        const size_t arrivals = (size_t)collectives->size * sizeof(*link)->arrivals[0];
        if (*link == NULL && (*link = calloc(1, sizeof **link + arrivals)) == NULL)
            return NULL;
        if (skip == 0)
            return *link;
        link = &(*link)->next;
    }
}

static bool has_all_ranks(const struct collectives *collectives) {
    int all = 0;
    return PMPI_Comm_size(MPI_COMM_WORLD, &all) == MPI_SUCCESS && all == collectives->size;
}

static void arrive(MPI_Comm comm, enum scope scope, enum quipu_mpi_awaited awaited, int root) {
    int rank = 0;
    struct collectives *collectives = NULL;
    struct gathering *gathering = gathering_of(comm, scope, &collectives, &rank);
    if (gathering == NULL)
        return;
    gathering->last = clock_now();
    if (rank == root)
        gathering->root = gathering->last;
    quipu_mpi_note_arrival(&gathering->arrivals[rank]);
    gathering->arrivals[rank].at = gathering->last;
    const bool waited_for = awaited != QUIPU_MPI_AWAITS_ROOT || rank == root;
    quipu_mpi_reach(waited_for ? &gathering->reached : NULL);
    if (++gathering->came == collectives->size)
        gathering->synchronized =
            quipu_mpi_account(gathering->arrivals, collectives->size, has_all_ranks(collectives), awaited, root);
}

static void depart(struct quipu_node *node, MPI_Comm comm, enum scope scope, enum quipu_mpi_awaited awaited, int root,
                   uint64_t begin) {
    int rank = 0;
    struct collectives *collectives = NULL;
    struct gathering *gathering = gathering_of(comm, scope, &collectives, &rank);
    if (gathering == NULL)
        return;
    if (awaited == QUIPU_MPI_AWAITS_ALL || (awaited == QUIPU_MPI_ROOT_AWAITS && rank == root))
        add_wait(node, begin, gathering->last);
    else if (awaited == QUIPU_MPI_AWAITS_ROOT && rank != root)
        add_wait(node, begin, gathering->root);
    if (awaited == QUIPU_MPI_AWAITS_ALL || (awaited == QUIPU_MPI_ROOT_AWAITS) == (rank == root))
        quipu_mpi_go_on_from(&gathering->reached);
    struct quipu_mpi_rank *running = quipu_mpi_running();
    if (gathering->synchronized && running != NULL)
        quipu_mpi_synchronized(running);
    collectives->calls[rank]++;
    gathering->left++;
    while (collectives->first != NULL && collectives->first->left == collectives->size) {
        struct gathering *over = collectives->first;
        collectives->first = over->next;
        collectives->begin++;
        free(over->reached.of);
        free(over);
    }
}

void quipu_mpi_arrive(MPI_Comm comm, enum quipu_mpi_awaited awaited, int root) { arrive(comm, OF_COMM, awaited, root); }

void quipu_mpi_depart(struct quipu_node *node, MPI_Comm comm, enum quipu_mpi_awaited awaited, int root,
                      uint64_t begin) {
    depart(node, comm, OF_COMM, awaited, root, begin);
}

void quipu_mpi_arrive_at_window(MPI_Win win) {
    if (&comm_of != NULL && win != MPI_WIN_NULL)
        arrive(comm_of(win), OF_WINDOWS, QUIPU_MPI_AWAITS_ALL, -1);
}

void quipu_mpi_depart_from_window(struct quipu_node *node, MPI_Win win, uint64_t begin) {
    if (&comm_of != NULL && win != MPI_WIN_NULL)
        depart(node, comm_of(win), OF_WINDOWS, QUIPU_MPI_AWAITS_ALL, -1, begin);
}

#endif

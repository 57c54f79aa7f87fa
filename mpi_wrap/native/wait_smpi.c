/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long MPI calls wait under SMPI, the MPI of SimGrid. All ranks are in this process and run one at a time.
 * The simulated time when both sides of a message (send and receive) have been posted, and when all ranks have arrived
 * at a collective operation, is therefore known to the nanosecond. Additional synchronizations as in wait.c (probes)
 * are not necessary.
 *
 * Sends and receives are matched by the rules of MPI: in order, for each communicator and receiver, with wildcards. */
#include "wait.h"

#ifdef SMPI_H

#include <simgrid/engine.h>
#include <stdlib.h>
#include <string.h>

/* simgrid::smpi::Comm::id() const of libsimgrid, which no C header declares: a number of the communicator, equal on all
 * of its ranks. */
extern int id_of(MPI_Comm comm) __asm__("_ZNK7simgrid4smpi4Comm2idEv") __attribute__((weak));
/* simgrid::smpi::Win::comm() const: the communicator of a window. */
extern MPI_Comm comm_of(MPI_Win win) __asm__("_ZNK7simgrid4smpi3Win4commEv") __attribute__((weak));

bool quipu_mpi_tell_waits = false;
bool quipu_mpi_wait_mode_is_on = false;

struct queue;

/* A message of which at least one side (the send or the receive) has been posted. */
struct quipu_mpi_message {
    struct quipu_mpi_message *next; /* next message in the queue */
    struct queue *queue;            /* the queue with this message; NULL when both sides are posted */
    uint64_t matched;               /* when the second side was posted (clock_now); 0: not yet */
    /* source, tag: of the first side, maybe a wildcard. owners: number of references to this structure. */
    int source, tag, owners;
    bool receive;                 /* whether the first side is a receive */
    struct quipu_mpi_rank *first; /* rank of the first side */
};

/* Messages of which only the first side has been posted, in the order of posting. */
struct queue {
    struct quipu_mpi_message *first, **end;
};

/* Messages to one rank in one communicator that are not matched yet. */
struct inbox {
    uint64_t key; /* key_of */
    struct queue sends, receives;
};

/* A collective operation that at least one rank has begun, and that not all ranks have left. */
struct gathering {
    struct gathering *next;
    uint64_t last, root;                 /* arrival of the latest rank, and of the root (clock_now) */
    int came, left;                      /* number of ranks that have arrived, and that have left again */
    bool synchronized;                   /* all ranks of the program continue at the same moment */
    struct quipu_mpi_blocks reached;     /* largest clocks of the ranks that others wait for (quipu_mpi_reach) */
    struct quipu_mpi_arrival arrivals[]; /* arrival of each rank */
};

/* The current collective operations of a communicator, in a list. They have numbers from 0 on. */
struct collectives {
    uint64_t key;
    int size; /* number of ranks */
    /* begin: number of the operation `first`. calls: for each rank, the number of its current or next operation. */
    uint64_t begin, *calls;
    struct gathering *first;
};

/* A request whose message is recorded. The arguments of the message are used for persistent requests only. */
struct pending_request {
    uint64_t key;                      /* the handle */
    struct quipu_mpi_message *message; /* NULL: the request is not active */
    MPI_Comm comm;
    int peer, tag;
    bool persistent, receive;
};

/* Hash table of pointers to structures that begin with their key. */
struct table {
    uint64_t **slots;
    size_t room, used;
};

static struct table inboxes, all_collectives, requests;

/* Returns the simulated time in ns, plus 1: the value 0 means that an event has not happened yet. */
static uint64_t clock_now(void) { return (uint64_t)(simgrid_get_clock() * 1e9) + 1; }

static uint64_t **slot_of(struct table *table, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    for (hash ^= hash >> 32;; hash++) {
        uint64_t **slot = &table->slots[hash & (table->room - 1)];
        if (*slot == NULL || **slot == key)
            return slot;
    }
}

/* Returns the structure with this key. If there is none, adds one with all other members 0. NULL: there is no memory.
 */
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

/* Returns a key for a communicator and a rank of it. */
static uint64_t key_of(MPI_Comm comm, int rank) { return (uint64_t)id_of(comm) << 32 | (uint32_t)rank; }

/* Returns whether waiting is recorded for operations on this communicator. */
static bool is_told(MPI_Comm comm) { return quipu_mpi_tell_waits && comm != MPI_COMM_NULL && comm != MPI_COMM_SELF; }

void quipu_mpi_choose_waits(bool world) {
    (void)world; /* always true: there are no wrappers for MPI sessions under SMPI */
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

/* Removes a message from its queue. link: the pointer in the queue that leads to the message. */
static void unlink_message(struct quipu_mpi_message **link) {
    struct quipu_mpi_message *message = *link;
    *link = message->next;
    if (message->queue->end == &message->next)
        message->queue->end = link;
    message->queue = NULL;
}

/* Records that the running rank posts the second side of a message now. other: the rank of the first side. Nothing is
 * recorded if this rank is not inside of an MPI call, because then it cannot be waiting. */
static void come_to(struct quipu_mpi_rank *other, uint64_t now) {
    if (other == NULL || other->active_wrapper == NULL)
        return;
    if (other->awaited == NULL && (other->awaited = calloc(1, sizeof *other->awaited)) == NULL)
        return;
    quipu_mpi_forget_arrival(other->awaited);
    quipu_mpi_note_arrival(other->awaited);
    other->awaited->at = now;
}

/* Posts a side of a message. Returns the oldest queued message whose other side matches, or else a new message, which
 * is queued; NULL if there is no memory. source: rank of the sender, or MPI_ANY_SOURCE in a receive. */
static struct quipu_mpi_message *side(struct inbox *inbox, bool receive, int source, int tag) {
    struct queue *others = receive ? &inbox->sends : &inbox->receives,
                 *own = receive ? &inbox->receives : &inbox->sends;
    for (struct quipu_mpi_message **link = &others->first; *link != NULL; link = &(*link)->next) {
        struct quipu_mpi_message *other = *link;
        const int sent_by = receive ? other->source : source, wanted = receive ? source : other->source;
        const int sent_as = receive ? other->tag : tag, wanted_as = receive ? tag : other->tag;
        if ((wanted != MPI_ANY_SOURCE && wanted != sent_by) || (wanted_as != MPI_ANY_TAG && wanted_as != sent_as))
            continue;
        unlink_message(link); /* the reference of the queue now belongs to this side */
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

/* Gives up the reference of one side to a message. A receive without a send is removed from its queue: it was
 * cancelled, or its request was freed. A send without a receive stays in its queue, because the receive may be posted
 * later. */
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

/* Adds the time from `begin` until `until`, or until now if this is earlier, to wait_time (ns of simulated time). */
static void add_wait(struct quipu_node *node, uint64_t begin, uint64_t until) {
    const uint64_t end = quipu_ticks();
    until = until < end ? until : end;
    if (node != NULL && until > begin)
        quipu_mpi_add(node, QUIPU_WAIT_TIME, until - begin);
}

/* Adds the waiting of the running rank for one or several messages, and charges it to the rank of the other side.
 * begin: when the call began. until: when the second side of the last message was posted; 0: there is no message. */
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

/* Returns the record of a request; NULL if there is none. make: adds a record if there is none. */
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
    end_side(request->message); /* a message remains if an earlier request with this handle was freed */
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
            continue; /* The request is not complete. A persistent request keeps its handle when it is complete. */
        latest = matched > latest ? matched : latest;
        end_side(request->message);
        request->message = NULL;
    }
    if (all->count > 0 && all->handles != all->few)
        free((void *)all->handles);
    if (begin != 0)
        add_wait_for_message(node, begin, latest);
}

/* A communicator has two sequences of numbered operations: its collective operations, and the synchronizations of its
 * windows. There are two, because ranks may mix the two kinds in different orders. One sequence is enough for all
 * windows, because all ranks synchronize them in the same order. */
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

/* Returns the current operation of the running rank in `comm`, or else its next operation, which is created if no rank
 * has begun it. Sets *of and *rank to its communicator and to the running rank in it. Returns NULL if no waiting is
 * recorded for this communicator (it is MPI_COMM_SELF or an inter-communicator, or waiting is not recorded at all), if
 * MPI returned an error, or if there is no memory. */
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

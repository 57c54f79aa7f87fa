/* quipu_mpi.h: what generated MPI wrappers share (written by hand; mpi_wrap/generate.py writes the wrappers).
 *
 * A wrapper enters the region of its function, calls the PMPI_ function, counts, and leaves the region:
 *
 *     if (!quipu_mpi_outermost()) return PMPI_Send(...);
 *     QUIPU_MPI_CALL(&region);
 *     int result = PMPI_Send(...);
 *     if (result == MPI_SUCCESS) quipu_mpi_count(call.node, ...);
 *     return result;
 */
#ifndef QUIPU_MPI_H
#define QUIPU_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "mpi_at_hand.h" /* generated: the optional PMPI_ functions of this mpi.h */

#pragma GCC visibility push(hidden)

/* active.c ------------------------------------------------------------------------------------------------ */

/* After MPI_Init: rank, number of ranks and MPI library become attributes of the profile. */
void quipu_mpi_initialized(void);
#ifdef QUIPU_MPI_HAVE_Session_init
/* The same after MPI_Session_init, in a program that does without MPI_Init. */
void quipu_mpi_session_begun(const MPI_Session *session);
/* After MPI_Session_finalize: as quipu_mpi_finalized if it was the last one. */
void quipu_mpi_session_ended(void);
#endif
/* Before MPI_Finalize: the ranks reduce their profiles to one file, if that is wanted (reduce.h). */
void quipu_mpi_reduce_at_end(void);
/* After MPI_Finalize: the profile is complete as far as MPI goes. */
void quipu_mpi_finalized(void);

/* family.c: ends the process, with a message, if parts of it call another MPI than that of the wrappers. */
void quipu_mpi_check_family(void);

/* fortran_calls.c, smpi.c, smpi_calls.c ------------------------------------------------------------------- */

#ifndef OPEN_MPI
struct quipu_mpi_replacement {
    const char *name;
    const void *function;
};
/* Generated: the wrappers by the name of their function, sorted. */
extern const struct quipu_mpi_replacement quipu_mpi_replacements[];
extern const size_t quipu_mpi_replacement_count;
/* From now on the procedures of mpi_f08 that are loaded call the wrappers. */
void quipu_mpi_replace_fortran_calls(void);
#endif

#ifdef SMPI_H
/* From now on programs that SMPI loads call the wrappers. */
void quipu_mpi_replace_calls(void);
/* Before a function that takes simulated time: what was computed until now is simulated. */
void quipu_mpi_compute(void);
/* After it: simulated time goes on from here. */
void quipu_mpi_simulated(void);
#endif

/* group.c ------------------------------------------------------------------------------------------------- */

/* The processes of an operation, in the words of operations.toml; all: in the whole communicator. */
struct quipu_mpi_group {
    int all;
    int size;
    int local_size;
    int rank;
    bool inter;
    bool root_here;
    bool leaf;
};

/* MPI_COMM_WORLD once MPI is initialized; all = 0 before. */
extern struct quipu_mpi_group quipu_mpi_world;
/* After MPI_Init: what is known of MPI_COMM_WORLD need not be asked again. */
void quipu_mpi_know_world(void);
struct quipu_mpi_group quipu_mpi_ask_group(MPI_Comm comm);

static inline struct quipu_mpi_group quipu_mpi_group_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world;
    if (comm == MPI_COMM_SELF)
        return (struct quipu_mpi_group){.all = 1, .size = 1, .local_size = 1};
    return quipu_mpi_ask_group(comm);
}

/* Only the number of processes. */
static inline int quipu_mpi_processes_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world.all;
    return comm == MPI_COMM_SELF ? 1 : quipu_mpi_ask_group(comm).all;
}

/* The same with root_here and leaf for this root. */
struct quipu_mpi_group quipu_mpi_rooted(MPI_Comm comm, int root);
/* Only `all` is known of these. */
struct quipu_mpi_group quipu_mpi_group_of_win(MPI_Win win);
struct quipu_mpi_group quipu_mpi_group_of_file(MPI_File file);

enum quipu_mpi_direction { QUIPU_MPI_IN, QUIPU_MPI_OUT };
/* Neighbours of the topology that are not MPI_PROC_NULL. */
uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction);

/* bytes.c ------------------------------------------------------------------------------------------------- */

/* A datatype for all, or one for each of an array of counts (the Fortran array if the C array is NULL). */
struct quipu_mpi_types {
    MPI_Datatype all;
    const MPI_Datatype *each;
    const MPI_Fint *fortran;
};

/* The predefined datatype whose size this thread asked for last. It cannot be freed, so it keeps its size. */
struct quipu_mpi_known_type {
    MPI_Datatype type; /* no handle at first; its size is 0, as that of a null handle */
    uint64_t size;
};
extern _Thread_local struct quipu_mpi_known_type quipu_mpi_known_type __attribute__((tls_model("initial-exec")));
uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype);

/* The datatype of an empty part may be MPI_DATATYPE_NULL or garbage: it is not looked at. */
static inline uint64_t quipu_mpi_bytes(int64_t count, MPI_Datatype datatype) {
    if (count <= 0)
        return 0;
    const struct quipu_mpi_known_type *known = &quipu_mpi_known_type;
    return (uint64_t)count * (known->type == datatype ? known->size : quipu_mpi_ask_type_size(datatype));
}
/* Bytes of `length` counts, each of `width` bytes (int or MPI_Count). */
uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types);
uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types);
/* What a completed operation received or read. */
uint64_t quipu_mpi_status_bytes(const MPI_Status *status);

/* Adds to the node of the running call. A locked addition waits until all that MPI has just stored for the other
 * process has left the store buffer, so it is left to programs that need it. */
static inline void quipu_mpi_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (__builtin_expect(quipu_mpi_concurrent, 0))
        quipu_add(node, metric, value);
    else
        node->metrics[metric] += value;
}

void quipu_mpi_count_locked(struct quipu_node *node, int processes, uint64_t sent, uint64_t received, bool message_sent,
                            bool message_received);

/* Counts for the running call; node is that of the call, NULL if nothing is measured. */
static inline void quipu_mpi_count(struct quipu_node *node, int processes, uint64_t sent, uint64_t received,
                                   bool message_sent, bool message_received) {
    if (node == NULL)
        return;
    if (__builtin_expect(quipu_mpi_concurrent, 0)) {
        quipu_mpi_count_locked(node, processes, sent, received, message_sent, message_received);
        return;
    }
    uint64_t *counters = node->metrics;
    counters[QUIPU_BYTES_SENT] += sent;
    counters[QUIPU_BYTES_RECEIVED] += received;
    counters[QUIPU_MESSAGES_SENT] += message_sent;
    counters[QUIPU_MESSAGES_RECEIVED] += message_received;
    if (__builtin_expect((uint64_t)processes > counters[QUIPU_COMM_SIZE], 0))
        counters[QUIPU_COMM_SIZE] = (uint64_t)processes;
}

/* wait.c, wait_smpi.c ------------------------------------------------------------------------------------- */

/* Calls that take less did not wait; receives of at least so many bytes await the envelope first. */
enum { QUIPU_MPI_WAIT_FLOOR_NS = 1000, QUIPU_MPI_LONG_MESSAGE = 1 << 16 };

/* Whether the metric wait_time is kept. */
extern bool quipu_mpi_tell_waits;
/* Whether it was asked for: without a clock it is not kept all the same. */
extern bool quipu_mpi_wait_mode_is_on;

/* After MPI_Init: reads QUIPU_MPI_WAIT. Without MPI_COMM_WORLD (in a session) there are no probes. */
void quipu_mpi_choose_waits(bool world);
#ifndef SMPI_H
/* Every how many calls a collective is probed; 0: never. */
extern uint32_t quipu_mpi_probe_one_of;
extern uint64_t quipu_mpi_wait_floor; /* ticks */
/* At the end: number and cost of the probes become attributes of the profile. */
void quipu_mpi_report_waits(void);
/* A call took so long while it moved these bytes: the rest is waiting. */
void quipu_mpi_waited(struct quipu_node *node, uint64_t ticks, uint64_t bytes);
/* Wait until a message is there to receive. */
void quipu_mpi_await_message(struct quipu_node *node, int source, int tag, MPI_Comm comm);
/* A message that was there took so long to receive. */
void quipu_mpi_learn_rate(uint64_t ticks, uint64_t bytes);
/* Wait until all processes have come to a collective operation, if this call is one of those that are probed. */
void quipu_mpi_await_all(struct quipu_node *node, MPI_Comm comm);

/* When the call began and when it ended; 0: waits are not told. */
static inline uint64_t quipu_mpi_wait_begin(const struct quipu_mpi_call *call, bool awaited) {
    return !quipu_mpi_tell_waits ? 0 : awaited ? quipu_mpi_ticks() : call->begin;
}

static inline uint64_t quipu_mpi_wait_end(struct quipu_mpi_call *call) {
    return quipu_mpi_tell_waits ? call->end = quipu_mpi_ticks() : 0;
}

static inline void quipu_mpi_wait_between(struct quipu_node *node, uint64_t begin, uint64_t end, uint64_t bytes) {
    if (__builtin_expect(end - begin > quipu_mpi_wait_floor, 0))
        quipu_mpi_waited(node, end - begin, bytes);
}

/* Before a blocking receive into a buffer of this size; returns whether the message was awaited. */
static inline bool quipu_mpi_before_receive(struct quipu_node *node, uint64_t bytes, int source, int tag,
                                            MPI_Comm comm) {
    if (bytes < QUIPU_MPI_LONG_MESSAGE || !quipu_mpi_tell_waits || source == MPI_PROC_NULL)
        return false;
    quipu_mpi_await_message(node, source, tag, comm);
    return true;
}

static inline void quipu_mpi_after_receive(struct quipu_node *node, bool awaited, uint64_t begin, uint64_t end,
                                           uint64_t bytes) {
    if (!awaited)
        quipu_mpi_wait_between(node, begin, end, bytes);
    else if (bytes >= QUIPU_MPI_LONG_MESSAGE)
        quipu_mpi_learn_rate(end - begin, bytes);
}

static inline void quipu_mpi_before_collective(struct quipu_node *node, MPI_Comm comm) {
    if (__builtin_expect(quipu_mpi_probe_one_of != 0, 0))
        quipu_mpi_await_all(node, comm);
}
#else /* simulated time: nothing is probed. Moments are readings of quipu_ticks. */
struct quipu_mpi_message;
/* This rank sends or receives now; NULL if waits are not told. To be given to one of the next two. */
struct quipu_mpi_message *quipu_mpi_message(bool receive, int peer, int tag, MPI_Comm comm);
/* A blocking call is over that began at `begin`: until the other sides of its messages were there it waited. */
void quipu_mpi_waited_for(struct quipu_node *node, uint64_t begin, struct quipu_mpi_message *message,
                          struct quipu_mpi_message *other);
/* The message of a request. */
void quipu_mpi_message_posted(MPI_Request handle, struct quipu_mpi_message *message);
/* A persistent request, and its starts. */
void quipu_mpi_message_planned(MPI_Request handle, bool receive, int peer, int tag, MPI_Comm comm);
void quipu_mpi_messages_started(int count, const MPI_Request *handles);
/* All of a call is waiting. */
void quipu_mpi_waited_all(struct quipu_node *node, uint64_t begin);
/* Around a wait or test function. begin: 0 for test functions. */
struct quipu_mpi_pending {
    int count;
    MPI_Request *handles, few[32];
};
void quipu_mpi_before_completion(struct quipu_mpi_pending *all, int count, const MPI_Request *handles);
void quipu_mpi_after_completion(struct quipu_mpi_pending *all, const MPI_Request *handles, struct quipu_node *node,
                                uint64_t begin);
/* Around a collective operation; root: -1 if it has none. */
enum quipu_mpi_awaited { QUIPU_MPI_AWAITS_ALL, QUIPU_MPI_AWAITS_ROOT, QUIPU_MPI_ROOT_AWAITS };
void quipu_mpi_arrive(MPI_Comm comm, int root);
void quipu_mpi_depart(struct quipu_node *node, MPI_Comm comm, enum quipu_mpi_awaited awaited, int root, uint64_t begin);
#endif

/* requests.c ---------------------------------------------------------------------------------------------- */

/* MPICH and MPIs made from it leave the status of a nonblocking MPI_Sendrecv as the request before has left it. */
#if defined(OPEN_MPI) || defined(SMPI_H)
#define QUIPU_MPI_LACKS_STATUS false
#else
#define QUIPU_MPI_LACKS_STATUS true
#endif

/* What is known of a request that counts later: a receive (its bytes come with the status), or a persistent one. */
struct quipu_mpi_request {
    struct quipu_node *node; /* who is credited: the call path that posted or started it */
    uint64_t sent, received; /* known bytes: of a persistent request, or if no status will tell them */
    bool message_sent, message_received;
    bool from_status; /* `received` comes from the status */
    bool persistent;
    bool active; /* persistent: started and not complete */
    int processes;
};

/* Remember a request that MPI has just returned. */
void quipu_mpi_posted(MPI_Request handle, struct quipu_mpi_request request);
/* A persistent request was started by the call path `node`. */
void quipu_mpi_started(MPI_Request handle, struct quipu_node *node);
/* How many requests were ever remembered: requests remembered after this moment are later ones, even if MPI has
 * given them a handle again that another thread is just completing. */
uint64_t quipu_mpi_request_time(void);
/* Whether any request is remembered. */
bool quipu_mpi_any_request(void);
/* Whether a receive with this handle is remembered. */
bool quipu_mpi_is_receive(MPI_Request handle);
/* A request remembered no later than `time` is complete: credit it. A persistent one stays. Returns the bytes that it
 * received. */
uint64_t quipu_mpi_settle(MPI_Request handle, uint64_t time, const MPI_Status *status);
/* A request is gone without a result. */
void quipu_mpi_forget(MPI_Request handle, uint64_t time, bool persistent_too);

/* completion.c -------------------------------------------------------------------------------------------- */

enum { QUIPU_MPI_FEW = 32 };

/* The requests and statuses of a wait or test call. MPI overwrites the handles, and the statuses may be ignored
 * by the program but are needed here. */
struct quipu_mpi_completion {
    int count; /* 0: nothing to settle */
    int base;  /* number of the first request: 1 in Fortran */
    uint64_t time;
    uint64_t bytes; /* received by the requests that are complete */
    MPI_Request *handles;
    MPI_Status *statuses;
    void *memory; /* of more than a few */
    MPI_Request few_handles[QUIPU_MPI_FEW];
    MPI_Status few_statuses[QUIPU_MPI_FEW];
};

/* Before the call. Returns the statuses to pass to MPI: those of the program unless it ignores them. */
MPI_Status *quipu_mpi_await(struct quipu_mpi_completion *completion, int count, const MPI_Request *requests,
                            MPI_Status *statuses, int status_count);
/* After the call. flag: NULL for wait functions. */
void quipu_mpi_completed_one(struct quipu_mpi_completion *completion, int result, const MPI_Request *requests,
                             const int *index, const int *flag);
void quipu_mpi_completed_some(struct quipu_mpi_completion *completion, int result, const int *count,
                              const int *indices);
void quipu_mpi_completed_all(struct quipu_mpi_completion *completion, int result, const int *flag);
/* Before and after MPI_Request_free. */
void quipu_mpi_before_free(struct quipu_mpi_completion *completion, const MPI_Request *request);
void quipu_mpi_after_free(struct quipu_mpi_completion *completion, int result);

/* fortran.c ----------------------------------------------------------------------------------------------- */

#ifdef OPEN_MPI
/* Open MPI's Fortran status is its C status, as integers. */
enum { QUIPU_MPI_F_STATUS_SIZE = sizeof(MPI_Status) / sizeof(MPI_Fint) };

struct quipu_mpi_fortran_completion {
    struct quipu_mpi_completion c;
    int status_count;
    MPI_Fint *memory; /* for more than a few statuses that the program ignores; the wrapper frees it */
    MPI_Fint few[QUIPU_MPI_FEW * QUIPU_MPI_F_STATUS_SIZE];
};

/* The buffer as C sees it: Fortran has its own MPI_IN_PLACE. */
const void *quipu_mpi_fortran_buffer(const void *buffer);
/* The address of a procedure of MPI's Fortran library; ends the process if there is none. */
void *quipu_mpi_fortran_symbol(const char *name);
/* As quipu_mpi_await, with requests and statuses in their Fortran form. */
void *quipu_mpi_fortran_await(struct quipu_mpi_fortran_completion *completion, int count, const void *requests,
                              void *statuses, int status_count);
/* After the call, before quipu_mpi_completed_*: the statuses that MPI wrote, as C sees them. */
void quipu_mpi_fortran_statuses(struct quipu_mpi_fortran_completion *completion, const void *statuses);
#endif

#pragma GCC visibility pop
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the late thread of an OpenMP team at a barrier, and the call paths for which others wait (team_delays.cpp). */
#ifndef QUIPU_TEAM_DELAYS_H
#define QUIPU_TEAM_DELAYS_H

#include "tree.h"

namespace quipu {

/* Time of a thread in a call path between two barriers. path: hash of the names of its regions. */
struct TeamSpent {
    Node *node;
    uint64_t path, ticks;
    uint64_t total; /* ticks of the whole run, at the end of the interval */
    uint32_t place; /* in the list of the thread */
};

/* Processor use of a thread, from the kernel. */
struct ProcessorUse {
    uint64_t ns;      /* processor time */
    uint64_t blocked; /* number of times that it waited for something other than a processor */
    bool known;
};

/* A thread of a team. All times are readings of the clock. */
struct TeamThread {
    quipu_thread *thread; /* null: it is not measured */
    uint64_t *seen;       /* time of each listed node when it began */
    uint32_t nodes, seen_room;
    uint64_t begun, came;         /* when it left the previous construct, and arrived at the barrier */
    const Node *from, *operation; /* call paths of the previous construct and of the barrier */
    ProcessorUse use;             /* when it began */
    uint64_t deprived;            /* time since then without a processor, although it needed one */
    uint32_t barriers;            /* number of barriers that it has left */
    bool knows, waits;            /* whether `seen` is valid; whether it waits in a barrier (and runs no task there) */
    struct Work {                 /* until the latest barrier */
        uint64_t begun, came, left, deprived;
        const Node *from, *operation;
        TeamSpent *spent;
        uint32_t paths, room;
        bool known;
    } work;
};

/* Times of the only thread that does not wait yet, at the arrival of the last other thread. */
struct TeamWatch {
    const TeamThread *thread;
    uint64_t *seen;
    uint32_t nodes, room;
    uint64_t at;
    bool busy; /* a thread writes or reads it; with tasks, another thread may arrive meanwhile */
};

struct TeamDelays {
    TeamThread *threads;
    uint32_t size;
    uint32_t waiting, recorded; /* number of threads that wait in the barrier, and that recorded their work */
    bool next[2];               /* whether the interval after a barrier is accounted, by parity of the barrier number */
    TeamWatch watches[2]; /* by parity of the barrier number: threads may be at the next barrier during accounting */
    double *scratch;
    uint32_t scratch_room;
};

/* Begins a team of at most `room` threads. */
void begin_team(TeamDelays *team, uint32_t room);
/* The calling thread begins to work in a team of `size` threads, below call path `from`. */
void join_team(TeamDelays *team, uint32_t index, uint32_t size, const Node *from);
/* The calling thread arrives at a barrier and leaves it; end_team handles the last barrier of the region. */
void come_to_barrier(TeamDelays *team, uint32_t index);
void leave_barrier(TeamDelays *team, uint32_t index, bool ends_region);
/* The calling thread begins or ends a task in a barrier. */
void interrupt_barrier(TeamDelays *team, uint32_t index);
void resume_barrier(TeamDelays *team, uint32_t index);
/* Ends the team. All threads wait in the last barrier. */
void end_team(TeamDelays *team);

} // namespace quipu

#endif

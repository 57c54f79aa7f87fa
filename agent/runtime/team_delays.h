/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread of an OpenMP team the others wait for at a barrier, and why (team_delays.cpp). */
#ifndef QUIPU_TEAM_DELAYS_H
#define QUIPU_TEAM_DELAYS_H

#include "tree.h"

namespace quipu {

/* Time of a thread in a call path between two barriers. path: hash of the names of its regions. */
struct TeamSpent {
    Node *node;
    uint64_t path, ticks;
    uint64_t total; /* of the whole run, at the end */
    uint32_t place; /* in the list of the thread */
};

/* Of a thread, from the kernel. */
struct ProcessorUse {
    uint64_t ns;      /* processor time */
    uint64_t blocked; /* how often it waited for something else than a processor */
    bool known;
};

/* A thread of a team. All times are readings of the clock. */
struct TeamThread {
    quipu_thread *thread; /* null: it is not measured */
    uint64_t *seen;       /* time of each listed node when it began */
    uint32_t nodes, seen_room;
    uint64_t begun, came; /* when it came out of the construct before, and to the barrier */
    const Node *from, *operation;
    ProcessorUse use;  /* when it began */
    uint64_t deprived; /* of its time since then: it had no processor, although it needed one */
    uint32_t barriers; /* how many it left */
    bool knows, waits; /* whether `seen` is of its latest begin; whether it is in a barrier, and runs no task there */
    struct Work {      /* up to the latest barrier */
        uint64_t begun, came, left, deprived;
        const Node *from, *operation;
        TeamSpent *spent;
        uint32_t paths, room;
        bool known;
    } work;
};

/* Of the thread that alone does not wait yet: what it had spent when the last one of the others came. */
struct TeamWatch {
    const TeamThread *thread;
    uint64_t *seen;
    uint32_t nodes, room;
    uint64_t at;
    bool busy; /* a thread fills it, or reads it; with tasks, another one may come meanwhile */
};

struct TeamDelays {
    TeamThread *threads;
    uint32_t size;
    uint32_t waiting, recorded;
    bool next[2];         /* whether the interval after a barrier is accounted, by the number of the barrier */
    TeamWatch watches[2]; /* at a barrier, by its number: threads may be at the next one while the last accounts */
    double *scratch;
    uint32_t scratch_room;
};

/* A team of at most so many threads begins. */
void begin_team(TeamDelays *team, uint32_t room);
/* The calling thread begins to work in a team of so many, below `from`. */
void join_team(TeamDelays *team, uint32_t index, uint32_t size, const Node *from);
/* It comes to a barrier, which is active, and leaves it; the last barrier of the region is left in end_team. */
void come_to_barrier(TeamDelays *team, uint32_t index);
void leave_barrier(TeamDelays *team, uint32_t index, bool ends_region);
/* In a barrier it begins a task, or has ended one. */
void interrupt_barrier(TeamDelays *team, uint32_t index);
void resume_barrier(TeamDelays *team, uint32_t index);
/* All threads are in the last barrier, and do nothing else. */
void end_team(TeamDelays *team);

} // namespace quipu

#endif

// SPDX-License-Identifier: Apache-2.0
/* OpenMP constructs as regions: the call paths of the work of a team, and the waiting of its threads
 * (docs/design/threads.md).
 *
 * A thread of a team works in a copy of the call path that reached the parallel construct. An explicit task works in a
 * copy of the call path that created it. Waiting is the time of the regions of barriers, taskwait and locks. It
 * excludes tasks that run meanwhile, because these have separate call paths. */
#include "ompt.h"
#include "clock.h"
#include "team_delays.h"
#include "teams.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>

using namespace quipu;
using namespace quipu::ompt;

namespace {

struct TaskFrame; /* ompt_frame_t, unused */

/* ompt_callbacks_t (OpenMP 5.2, 19.4.4.1) */
enum Event {
    event_thread_begin = 1,
    event_parallel_begin = 3,
    event_parallel_end = 4,
    event_task_create = 5,
    event_task_schedule = 6,
    event_implicit_task = 7,
    event_sync_region_wait = 16,
    event_mutex_acquire = 26,
    event_mutex_acquired = 27
};
enum ThreadKind { thread_worker = 2 };
enum TaskFlag { task_initial = 1, task_explicit = 4, task_target = 8 };
/* All other values are events that do not change the running task, such as dependences. */
enum TaskStatus { task_complete = 1, task_yield = 2, task_cancel = 3, task_detach = 4, task_switch = 7 };
enum SyncRegion {
    sync_barrier_explicit = 3,
    sync_taskwait = 5,
    sync_taskgroup = 6,
    sync_reduction = 7,
    sync_barrier_implicit_parallel = 9,
    sync_barrier_teams = 10
};
enum Mutex { mutex_lock = 1, mutex_nest_lock = 3, mutex_critical = 5, mutex_atomic = 6, mutex_ordered = 7 };

struct StartToolResult {
    int (*initialize)(Lookup lookup, int device, Data *tool);
    void (*finalize)(Data *tool);
    Data tool;
};

/* One region per nesting level, because a region inside of itself would count as recursion. */
quipu_region parallel[] = {openmp_region("omp parallel"), openmp_region("omp parallel level 2"),
                           openmp_region("omp parallel level 3"), openmp_region("omp parallel level 4")};
constexpr uint32_t levels = sizeof parallel / sizeof *parallel;
quipu_region barrier = openmp_region("omp barrier");
quipu_region implicit_barrier = openmp_region("omp implicit barrier");
quipu_region taskwait = openmp_region("omp taskwait");
quipu_region taskgroup = openmp_region("omp taskgroup");
quipu_region critical = openmp_region("omp critical");
quipu_region atomic = openmp_region("omp atomic");
quipu_region ordered = openmp_region("omp ordered");
quipu_region lock_region = openmp_region("omp lock");

struct Team;
struct Running;

/* A thread of a team. The OpenMP library keeps workers in the barrier at the end of a parallel region until it needs
 * them again. The thread that ends the region therefore records how long the workers waited. */
struct Member {
    bool first;         /* the thread that reached the construct */
    quipu_frame *frame; /* frame of the parallel region; only the thread itself uses it */
    Node *barrier;
    uint64_t since; /* clock at the begin of waiting; 0: it does not wait */
    Team *team;
    uint32_t index;
    const Running *task; /* task in which the thread reached the barrier; null: not in a task */
    Member *around;      /* member at the enclosing barrier, where the thread runs this task */
};

struct Team {
    Node *path;     /* call path that reached the construct */
    uint32_t level; /* nesting level, from 0 */
    Team *next;     /* next unused team, or team of the enclosing region */
    uint32_t depth; /* number of enclosing regions */
    uint32_t room;
    Member *members;
    TeamDelays delays;
};

const void *library_code;        /* an address in the OpenMP library */
Team *spare;                     /* under the lock */
thread_local Member *at_end;     /* not null: this thread waits at the end of a parallel region */
thread_local Member *at_barrier; /* not null: this thread is at a barrier of its team */

/* Regions that this thread began. When the library reports the end of a region, the data of the region may already
 * belong to another region, because LLVM's library reuses the team before the callback. */
thread_local Team *begun; /* the innermost measured region */
thread_local uint32_t depth;

/* An explicit task that this thread runs, or that it interrupted for another task. Any thread may run each part of an
 * untied task, and the library starts each part like a separate task. The state of a running task is therefore stored
 * with the thread, not with the task. */
struct Running {
    const Data *task, *interrupted;
    quipu_frame *frame;
    Running *below;
};

thread_local Running *running; /* the innermost task */
thread_local Running *unused;

/* Returns a team with memory for `size` members. Call under the lock. */
Team *find_team(uint32_t size) {
    Team **place = &spare;
    while (*place && (*place)->room < size)
        place = &(*place)->next;
    Team *team = *place;
    if (team) {
        *place = team->next;
    } else if ((team = static_cast<Team *>(keep(sizeof(Team) + size * (sizeof(Member) + sizeof(TeamThread)))))) {
        team->members = reinterpret_cast<Member *>(team + 1);
        team->delays.threads = reinterpret_cast<TeamThread *>(team->members + size);
        team->room = size;
        for (uint32_t i = 0; i < size; i++) {
            team->members[i].team = team;
            team->members[i].index = i;
        }
    }
    return team;
}

Team *take_team(uint32_t size) {
    Team *team;
    {
        const Locked locked;
        team = find_team(size);
    }
    for (uint32_t i = 0; team && i < team->room; i++)
        __atomic_store_n(&team->members[i].since, 0, __ATOMIC_RELAXED);
    if (team)
        begin_team(&team->delays, team->room);
    return team;
}

/* Sets wait_time of a waiting region to its time. */
void wait_is_time(Node *node) { put(node->metrics[QUIPU_WAIT_TIME], get(node->metrics[QUIPU_TIME])); }

void add_wait(Member *member) {
    uint64_t since = __atomic_exchange_n(&member->since, 0, __ATOMIC_ACQ_REL);
    uint64_t now = ticks(clock_kind);
    if (!since || now < since)
        return;
    quipu_add(member->barrier, QUIPU_TIME, now - since);
    quipu_add(member->barrier, QUIPU_WAIT_TIME, now - since);
}

void begin_wait(Member *member) {
    uint64_t now = ticks(clock_kind);
    __atomic_store_n(&member->since, now ? now : 1, __ATOMIC_RELEASE);
}

/* Stores the call path that created an explicit task in the data of the task, with the lowest bit as a mark. The data
 * of an implicit task are a pointer to its Member, without the mark. */
void mark(Data *task, void *what) { ompt::set(task, static_cast<char *>(what) + 1); }

bool is_explicit(const Data *task) { return __atomic_load_n(&task->value, __ATOMIC_RELAXED) & 1; }

void *marked(const Data *task) { return static_cast<char *>(ompt::get(task)) - 1; }

Running *take_running() {
    Running *taken = unused;
    if (taken) {
        unused = taken->below;
        return taken;
    }
    const Locked locked;
    return static_cast<Running *>(keep(sizeof(Running)));
}

/* Returns whether this thread waits at a barrier of its team and runs no task there. */
bool waits_at_barrier() { return at_barrier && running == at_barrier->task; }

/* Runs when this thread begins (a part of) a task. */
void begin_task(const Data *task, const Data *interrupted) {
    Running *fresh = quipu_active() ? take_running() : nullptr;
    if (!fresh)
        return;
    if (at_end && !running)
        add_wait(at_end);
    if (waits_at_barrier())
        interrupt_barrier(&at_barrier->team->delays, at_barrier->index);
    *fresh = {task, interrupted, quipu_attach(static_cast<Node *>(marked(task))), running};
    running = fresh;
}

/* Runs at the end of (a part of) the innermost task. */
void end_task() {
    Running *last = running;
    quipu_exit(last->frame);
    running = last->below;
    last->below = unused;
    unused = last;
    if (at_end && !running)
        begin_wait(at_end);
    if (waits_at_barrier())
        resume_barrier(&at_barrier->team->delays, at_barrier->index);
}

/* Ends all tasks that this thread ran since `task`, which continues now. Returns false if this thread did not run it.
 */
bool go_back_to(const Data *task) {
    const Running *inner = running;
    while (inner && inner->task != task && inner->interrupted != task)
        inner = inner->below;
    if (!inner)
        return false;
    const Running *stays = inner->task == task ? inner : inner->below;
    while (running != stays)
        end_task();
    return true;
}

/* Ends the innermost frame if it belongs to this waiting region. */
void leave(const quipu_region *region) {
    quipu_frame *frame = quipu_top();
    Node *node = quipu_here();
    if (!node || node->region != id_of(region))
        return;
    quipu_exit(frame);
    wait_is_time(node);
}

quipu_region *region_of_wait(int kind) {
    switch (kind) {
    case sync_taskwait:
        return &taskwait;
    case sync_taskgroup:
        return &taskgroup;
    case sync_barrier_explicit:
        return &barrier;
    case sync_reduction:
        return nullptr; /* the barrier is reported separately */
    default:
        return &implicit_barrier;
    }
}

quipu_region *region_of_mutex(int kind) {
    switch (kind) {
    case mutex_critical:
        return &critical;
    case mutex_atomic:
        return &atomic;
    case mutex_ordered:
        return &ordered;
    case mutex_lock:
    case mutex_nest_lock:
        return &lock_region;
    default:
        return nullptr; /* testing a lock does not wait, and may not acquire the lock */
    }
}

void on_thread_begin(int kind, Data *) {
    /* The work of a worker belongs to parallel regions, not to the call path in which the OpenMP library created the
     * worker. */
    if (kind == thread_worker)
        thread_origin = nullptr;
}

bool is_construct(const Node *node) {
    for (const quipu_region &region : parallel)
        if (node->region && node->region == id_of(&region))
            return true;
    return false;
}

/* Returns the number of parallel regions on this call path. The team that runs a task may be nested deeper than the
 * team that created it. */
uint32_t level_of(const Node *path) {
    uint32_t level = 0;
    for (; path; path = path->up)
        level += is_construct(path);
    return level < levels ? level : levels - 1;
}

/* Returns whether the library itself created a parallel region: libomp has a team of threads that run target tasks. */
bool is_of_library(const void *code) {
    const quipu_thread *thread = quipu_current;
    const bool outside = !thread || is_outside(thread);
    return outside && are_in_one_library(library_code, code);
}

void on_parallel_begin(Data *task, const TaskFrame *, Data *region, unsigned size, int, const void *code) {
    go_back_to(task);
    Team *team = is_of_library(code) ? nullptr : take_team(size ? size : 1);
    if (team) {
        Node *path = quipu_here();
        team->level = level_of(path);
        team->next = begun;
        team->depth = depth;
        begun = team;
        __atomic_store_n(&team->path, path, __ATOMIC_RELEASE);
    }
    depth++;
    ompt::set(region, team);
}

void end_waits(Team *team) {
    for (uint32_t i = 0; i < team->room; i++)
        add_wait(&team->members[i]);
}

void on_parallel_end(Data *, Data *, int, const void *) {
    Team *team = begun;
    depth--;
    if (!team || team->depth != depth)
        return;
    begun = team->next;
    end_waits(team); /* of the members of a league (teams) */
    const Locked locked;
    team->next = spare;
    spare = team;
}

/* The initial tasks of a league (teams) are members of its region. They enter no region, because each of them runs a
 * separate parallel region. */
void on_implicit_task(int endpoint, Data *region, Data *task, unsigned size, unsigned index, int flags) {
    const bool initial = flags & task_initial;
    if (initial && index == 0)
        return;
    if (endpoint == scope_end) {
        if (index == 0 && ompt::get(task)) {
            go_back_to(task);
            const auto *first = static_cast<Member *>(ompt::get(task));
            quipu_exit(first->frame);
            /* At the end of the region, the other threads may already be in another team. */
            end_waits(first->team);
            end_team(&first->team->delays);
        }
        ompt::set(task, nullptr); /* the other threads ended at the barrier, and their team may not exist any more */
        return;
    }
    if (index > 0) {
        at_end = at_barrier = nullptr;
        while (running)
            end_task();
    }
    auto *team = region ? static_cast<Team *>(ompt::get(region)) : nullptr;
    Node *path = team ? __atomic_load_n(&team->path, __ATOMIC_ACQUIRE) : nullptr;
    ompt::set(task, nullptr);
    if (!path || index >= team->room)
        return;
    Member *member = &team->members[index];
    quipu_frame *base = index == 0 ? nullptr : quipu_attach(path);
    quipu_frame *entered = initial ? nullptr : quipu_enter(&parallel[team->level]);
    if (!quipu_here()) /* not measured, for example a thread of a simulated rank */
        return;
    member->frame = base ? base : entered;
    member->first = index == 0;
    ompt::set(task, member);
    if (!initial)
        join_team(&team->delays, index, size, quipu_here());
}

void come_to_barrier_of_team(Member *member) {
    member->task = running;
    member->around = at_barrier;
    at_barrier = member;
    come_to_barrier(&member->team->delays, member->index);
}

void leave_barrier_of_team(bool ends_region) {
    const Member *left = at_barrier;
    at_barrier = left->around;
    leave_barrier(&left->team->delays, left->index, ends_region);
}

void on_sync_region_wait(int kind, int endpoint, Data *, Data *task, const void *) {
    quipu_region *region = region_of_wait(kind);
    if (!region)
        return;
    if (task)
        go_back_to(task);
    if (endpoint == scope_end && at_end && !running)
        at_end = at_barrier = nullptr; /* its waiting is recorded, and its team may not exist any more */
    else if (endpoint == scope_end)
        leave(region);
    const bool is_barrier = kind != sync_taskwait && kind != sync_taskgroup;
    const bool of_nobody = is_barrier && task && !ompt::get(task); /* a team that the library created for itself */
    const bool ends_region = kind == sync_barrier_implicit_parallel || kind == sync_barrier_teams;
    if (endpoint == scope_end && is_barrier && waits_at_barrier())
        leave_barrier_of_team(ends_region);
    if (endpoint != scope_begin || of_nobody)
        return;
    quipu_enter(region);
    auto *member = is_barrier && task && !is_explicit(task) ? static_cast<Member *>(ompt::get(task)) : nullptr;
    if (!member)
        return;
    come_to_barrier_of_team(member);
    if (member->first || !ends_region)
        return;
    member->barrier = quipu_here();
    quipu_exit(member->frame);
    wait_is_time(member->barrier);
    at_end = member;
    begin_wait(member);
}

void on_task_create(Data *, const TaskFrame *, Data *task, int flags, int, const void *) {
    if (flags & (task_explicit | task_target))
        mark(task, quipu_here());
}

void on_task_schedule(Data *prior, int status, Data *next) {
    const bool ends = status == task_complete || status == task_cancel || status == task_detach;
    if (!ends && status != task_switch && status != task_yield)
        return;
    if (prior)
        go_back_to(prior);
    if (prior && ends && running && running->task == prior)
        end_task();
    if (next && !go_back_to(next) && is_explicit(next))
        begin_task(next, prior);
}

void on_mutex_acquire(int kind, unsigned, unsigned, uint64_t, const void *) {
    if (quipu_region *region = region_of_mutex(kind))
        quipu_enter(region);
}

void on_mutex_acquired(int kind, uint64_t, const void *) {
    if (quipu_region *region = region_of_mutex(kind))
        leave(region);
}

int initialize(Lookup lookup, int, Data *) {
    auto set = reinterpret_cast<SetCallback>(lookup("ompt_set_callback"));
    if (!set)
        return 0;
    library_code = reinterpret_cast<const void *>(lookup);
    set(event_thread_begin, reinterpret_cast<Callback>(on_thread_begin));
    set(event_parallel_begin, reinterpret_cast<Callback>(on_parallel_begin));
    set(event_parallel_end, reinterpret_cast<Callback>(on_parallel_end));
    set(event_implicit_task, reinterpret_cast<Callback>(on_implicit_task));
    set(event_sync_region_wait, reinterpret_cast<Callback>(on_sync_region_wait));
    set(event_task_create, reinterpret_cast<Callback>(on_task_create));
    set(event_task_schedule, reinterpret_cast<Callback>(on_task_schedule));
    set(event_mutex_acquire, reinterpret_cast<Callback>(on_mutex_acquire));
    set(event_mutex_acquired, reinterpret_cast<Callback>(on_mutex_acquired));
    watch_targets(set);
    return 1;
}

void finalize(Data *) {}

} // namespace

/* Simulated ranks share a thread, and the OpenMP library does not know this. If there is a tool, the library keeps a
 * stack of the teams of each thread. If a rank calls MPI in a parallel region, and another rank continues in its own
 * parallel region, the teams end in the wrong order, and the library aborts. In simulations there is therefore no tool.
 * Parallel constructs are detected by their bodies, which are functions. */
namespace quipu {

static bool left_to_others() {
    const char *choice = getenv("QUIPU_OPENMP");
    return choice && !strcmp(choice, "0");
}

bool is_body(const char *name) {
    return !left_to_others() && (strstr(name, ".omp_outlined") || strstr(name, "..omp_par")) &&
           !strstr(name, ".reduction.");
}

/* Returns whether a node is a task. Without optimization, the body of a task is such a function, too, below the entry
 * of the task. */
static bool is_task(const Node *node) {
    const RegionRecord *region = region_of(node->region);
    return region && strstr(region->text, ".omp_task_entry.");
}

void enter_construct(const quipu_thread *rank, quipu_region *body) {
    const RegionRecord *known = make_known(body) && id_of(body) ? region_of(id_of(body)) : nullptr;
    if (!known || !known->is_body || is_task(rank->here))
        return;
    uint32_t around = 0;
    for (const Node *node = rank->here; node; node = node->up)
        around += is_construct(node);
    quipu_frame *frame = quipu_enter(&parallel[around < levels ? around : levels - 1]);
    if (!is_construct(rank->here)) /* there was no space for the region */
        quipu_exit(frame);
}

quipu_frame *with_construct(quipu_frame *frame) {
    quipu_frame *outer = frame - 1;
    return is_construct(outer->node) && (outer - 1)->node != outer->node ? outer : frame;
}

} // namespace quipu

/* The OpenMP library searches for this name at its start. */
extern "C" __attribute__((visibility("default"))) StartToolResult *ompt_start_tool(unsigned, const char *) {
    static StartToolResult result = {initialize, finalize, {0}};
    return active && !ranks && !left_to_others() ? &result : nullptr;
}

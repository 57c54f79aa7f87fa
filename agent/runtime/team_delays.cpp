// SPDX-License-Identifier: Apache-2.0
/* Finds the late thread of an OpenMP team at a barrier, and the call paths for which the other threads wait.
 *
 * Every thread knows the time of its call paths since the previous barrier. The late thread arrives last. Another
 * thread waited for the call paths in which the late thread took longer than this other thread. Call paths that the
 * late thread executed while all others waited count first, because a dynamic schedule balances the work before that
 * moment. The rest of the waiting is distributed over the other call paths, in proportion to their excess. A thread is
 * also late if it left the previous construct later than the others, or had no processor for some time. This part of
 * the waiting is charged to the previous construct.
 *
 * Each thread records its call paths when it leaves a barrier. The last thread to do so compares all threads. At the
 * end of a region, workers do not leave the barrier. The thread that ends the region then does both steps for all
 * threads. */
#include "team_delays.h"
#include "clock.h"
#include "delays.h"

#include <string.h>
#include <sys/resource.h>

namespace quipu {
namespace {

/* Largest share of the time of the threads for this accounting. If it takes longer, barriers are skipped. */
constexpr double accounting_share = 0.01;

uint64_t accounting_ticks; /* time of all threads for this accounting */

/* Upper limits for the time of a step of accounting (per step, and per call path). A longer time means that the thread
 * lost its processor. */
constexpr double longest_ns = 20e3, longest_ns_of_path = 100;

struct Accounting {
    const uint64_t begun = ticks(clock_kind);
    const uint32_t paths, threads; /* threads: number of threads that wait for this step */
    Accounting(uint32_t listed, uint32_t held) : paths(listed), threads(held) {}
    ~Accounting() {
        const auto longest = static_cast<uint64_t>((longest_ns + longest_ns_of_path * paths) * ticks_per_ns);
        const uint64_t took = ticks(clock_kind) - begun;
        __atomic_add_fetch(&accounting_ticks, (took < longest ? took : longest) * threads, __ATOMIC_RELAXED);
    }
    Accounting(const Accounting &) = delete;
    Accounting &operator=(const Accounting &) = delete;
};

uint32_t listed_by(const TeamThread *own) { return quipu::own(get(own->thread))->listed; }

bool has_budget(uint32_t threads) {
    const uint64_t now = ticks(clock_kind), start = profile.header ? profile.header->start_ticks : now;
    return now > start && static_cast<double>(get(accounting_ticks)) <
                              accounting_share * static_cast<double>(now - start) * static_cast<double>(threads);
}

uint64_t time_of(const Node *node) { return get(node->metrics[QUIPU_TIME]); }

ProcessorUse use_now() {
    struct rusage use;
    timespec time;
    /* getrusage only has the times of the latest tick of the scheduler, so the processor time is from clock_gettime. */
    if (!may_call_system() || getrusage(RUSAGE_THREAD, &use) != 0 || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
        return {0, 0, false};
    const uint64_t ns = static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
    return {ns, static_cast<uint64_t>(use.ru_nvcsw), true};
}

/* Returns the time without a processor; 0 if the thread blocked, because it may have waited for a file, for example. */
uint64_t deprived_since(const TeamThread *own) {
    const ProcessorUse now = own->use.known ? use_now() : ProcessorUse{0, 0, false};
    if (!now.known || now.blocked != own->use.blocked)
        return 0;
    const double used = static_cast<double>(now.ns - own->use.ns) * ticks_per_ns;
    const auto passed = static_cast<double>(own->came - own->begun);
    return passed > used ? static_cast<uint64_t>(passed - used) : 0;
}

void remember(TeamThread *own) {
    const Thread *thread = quipu::own(own->thread);
    const uint32_t listed = thread->listed;
    if (!has_room(own->seen, own->seen_room, listed))
        return;
    for (uint32_t i = 0; i < listed; i++)
        own->seen[i] = time_of(thread->list[i]);
    own->nodes = listed;
    own->use = use_now();
    put(own->knows, true);
}

/* Records the work of a thread until it arrived at the barrier. The thread is in the barrier, or leaves it at `left`.
 */
void record(TeamThread *own, uint64_t left) {
    TeamThread::Work *work = &own->work;
    work->begun = own->begun;
    work->came = own->came;
    work->left = left;
    work->deprived = own->deprived;
    work->from = own->from;
    work->operation = own->operation;
    work->paths = 0;
    work->known = false;
    Thread *thread = quipu::own(own->thread);
    const uint32_t listed = thread->listed;
    const uint64_t *paths = get(own->knows) && own->operation ? paths_of(thread, listed) : nullptr;
    if (!paths)
        return;
    for (uint32_t i = 0; i < listed; i++) {
        Node *node = thread->list[i];
        const uint64_t time = time_of(node), before = i < own->nodes ? own->seen[i] : 0;
        if (time <= before || !node->region || region_of(node->region)->is_openmp)
            continue;
        if (!has_room(work->spent, work->room, work->paths + 1))
            return;
        work->spent[work->paths++] = {node, paths[i], time - before, time, i};
    }
    work->known = true;
}

/* Stores the times of the only thread that does not wait yet. */
void watch(TeamDelays *team, TeamWatch *watch) {
    const TeamThread *found = nullptr;
    for (uint32_t i = 0; i < get(team->size) && !found; i++)
        if (!__atomic_load_n(&team->threads[i].waits, __ATOMIC_ACQUIRE))
            found = &team->threads[i];
    watch->thread = nullptr;
    const quipu_thread *shared = found ? __atomic_load_n(&found->thread, __ATOMIC_ACQUIRE) : nullptr;
    if (!shared)
        return;
    const Thread *thread = own(shared);
    const uint32_t listed = __atomic_load_n(&thread->listed, __ATOMIC_ACQUIRE);
    Node *const *list = __atomic_load_n(&thread->list, __ATOMIC_ACQUIRE);
    if (!has_room(watch->seen, watch->room, listed))
        return;
    const Node *here = __atomic_load_n(&shared->here, __ATOMIC_RELAXED);
    const Node *active = here ? get(here->charged) : nullptr;
    const uint64_t last = get(shared->last), now = ticks(clock_kind);
    for (uint32_t i = 0; i < listed; i++)
        watch->seen[i] = time_of(list[i]) + (list[i] == active && now > last ? now - last : 0);
    watch->nodes = listed;
    watch->at = now;
    watch->thread = found;
}

/* Returns the time in a call path of the late thread while all others waited for it. */
uint64_t watched(const TeamWatch *watch, const TeamSpent &spent) {
    const uint64_t before = spent.place < watch->nodes ? watch->seen[spent.place] : 0;
    return spent.total > before ? spent.total - before : 0;
}

/* Arrays with an element for each call path of the late thread, and one for its late begin. charged: waiting that is
 * charged to it. alone: time of the late thread while all others waited. usual: time of another thread, then the excess
 * over it. */
struct Charges {
    double *charged, *alone, *usual, *slot; /* slot: hash table of places, from 1 */
    uint32_t slots;
};

bool make_room(TeamDelays *team, uint32_t paths, Charges *charges) {
    uint32_t slots = 8;
    while (slots < 2 * paths)
        slots *= 2;
    const size_t each = size_t{paths} + 1, wanted = 3 * each + slots;
    if (!has_room(team->scratch, team->scratch_room, wanted))
        return false;
    memset(team->scratch, 0, wanted * sizeof(double));
    *charges = {team->scratch, team->scratch + each, team->scratch + 2 * each, team->scratch + 3 * each, slots};
    return true;
}

/* Returns the slot of a call path in the hash table; an empty slot if the table does not contain it. */
double *slot_of(const Charges *charges, const TeamSpent *spent, uint64_t path) {
    for (uint64_t at = path >> 20;; at++) {
        double *slot = &charges->slot[at & (charges->slots - 1)];
        if (*slot == 0 || spent[static_cast<uint32_t>(*slot) - 1].path == path)
            return slot;
    }
}

double beyond(uint64_t a, double b) { return static_cast<double>(a) > b ? static_cast<double>(a) - b : 0; }

/* Charges the waiting of one thread to call paths. Returns the waiting without an explanation. */
double charge_one(const TeamThread::Work &late, const TeamThread::Work &other, Charges *charges) {
    memset(charges->usual, 0, (late.paths + 1) * sizeof(double));
    for (uint32_t i = 0; i < other.paths; i++) {
        const double slot = *slot_of(charges, late.spent, other.spent[i].path);
        if (slot != 0)
            charges->usual[static_cast<uint32_t>(slot) - 1] += static_cast<double>(other.spent[i].ticks);
    }
    charges->usual[late.paths] = static_cast<double>(other.begun);
    double alone = 0, rest = 0;
    for (uint32_t i = 0; i <= late.paths; i++) {
        const uint64_t own = i < late.paths ? late.spent[i].ticks : late.begun;
        double *excess = &charges->usual[i]; /* replaces `usual` from here on */
        *excess = beyond(own, *excess);
        const double first = *excess < charges->alone[i] ? *excess : charges->alone[i];
        alone += first;
        rest += *excess - first;
    }
    const auto waited = static_cast<double>(late.came - other.came);
    const double whole = alone + rest, explained = whole < waited ? whole : waited;
    if (whole <= 0)
        return waited;
    /* A thread without a processor is late in any call path. */
    const double longer = beyond(late.deprived, static_cast<double>(other.deprived));
    const double deprived = longer < whole ? explained * longer / whole : explained, worked = explained - deprived;
    const double of_alone = alone > worked ? worked / alone : 1;
    const double of_rest = rest > 0 ? (worked - of_alone * alone) / rest : 0;
    charges->charged[late.paths] += deprived;
    for (uint32_t i = 0; i <= late.paths; i++) {
        const double excess = charges->usual[i], first = excess < charges->alone[i] ? excess : charges->alone[i];
        charges->charged[i] += of_alone * first + of_rest * (excess - first);
    }
    return waited - explained;
}

/* Compares the threads after all have recorded their work. */
void account(TeamDelays *team, uint32_t barrier) {
    const TeamThread *late = nullptr;
    uint64_t before = 0; /* arrival of the second to last thread */
    for (uint32_t i = 0; i < get(team->size); i++) {
        const TeamThread *one = &team->threads[i];
        if (!get(one->thread) || !one->work.known)
            return;
        if (late && one->work.came <= late->work.came) {
            before = one->work.came > before ? one->work.came : before;
            continue;
        }
        before = late ? late->work.came : 0;
        late = one;
    }
    Charges charges;
    if (!late || is_locked_here() || !make_room(team, late->work.paths, &charges))
        return;
    const TeamThread::Work &work = late->work;
    TeamWatch *watch = &team->watches[barrier & 1];
    const bool is_free = !__atomic_exchange_n(&watch->busy, true, __ATOMIC_ACQUIRE);
    const bool is_watched = is_free && watch->thread == late && watch->at >= before && watch->at <= work.came;
    for (uint32_t i = 0; i < work.paths; i++) {
        *slot_of(&charges, work.spent, work.spent[i].path) = i + 1;
        charges.alone[i] = is_watched ? static_cast<double>(watched(watch, work.spent[i])) : 0;
    }
    if (is_free)
        __atomic_store_n(&watch->busy, false, __ATOMIC_RELEASE);
    double rest = 0, after = 0;
    for (uint32_t i = 0; i < get(team->size); i++) {
        const TeamThread::Work &other = team->threads[i].work;
        if (other.came < work.came)
            rest += charge_one(work, other, &charges);
        after += beyond(other.left, static_cast<double>(work.came));
    }
    Thread *thread = own(late->thread);
    const Locked locked;
    for (uint32_t i = 0; i < work.paths; i++)
        caused(thread, work.operation, work.spent[i].node, static_cast<uint64_t>(charges.charged[i]));
    caused(thread, work.operation, work.from, static_cast<uint64_t>(charges.charged[work.paths]));
    caused(thread, work.operation, work.operation, static_cast<uint64_t>(after));
    caused(thread, work.operation, nullptr, static_cast<uint64_t>(rest));
}

void begin_work(TeamThread *own, const Node *from, bool is_accounted) {
    put(own->knows, false);
    if (is_accounted) {
        own->begun = ticks(clock_kind);
        const Accounting accounting(listed_by(own), 1);
        remember(own);
    }
    own->from = from;
    own->operation = nullptr;
}

void note_arrival(TeamDelays *team, TeamThread *own) {
    if (!get(own->knows))
        return;
    own->came = ticks(clock_kind);
    {
        const Accounting accounting(0, 1);
        own->deprived = deprived_since(own);
    }
    __atomic_store_n(&own->waits, true, __ATOMIC_RELEASE);
    if (__atomic_add_fetch(&team->waiting, 1, __ATOMIC_ACQ_REL) + 1 == get(team->size)) {
        const Accounting accounting(listed_by(own), 1);
        TeamWatch *found = &team->watches[own->barriers & 1];
        if (!__atomic_exchange_n(&found->busy, true, __ATOMIC_ACQUIRE)) {
            watch(team, found);
            __atomic_store_n(&found->busy, false, __ATOMIC_RELEASE);
        }
    }
}

void go_on(TeamDelays *team, TeamThread *own) {
    if (!get(own->waits))
        return;
    __atomic_store_n(&own->waits, false, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&team->waiting, 1, __ATOMIC_ACQ_REL);
}

} // namespace

void begin_team(TeamDelays *team, uint32_t room) {
    /* Ordered after all accesses by threads of the previous region. */
    __atomic_exchange_n(&team->waiting, 0, __ATOMIC_ACQ_REL);
    put(team->size, 0u);
    put(team->recorded, 0u);
    for (uint32_t i = 0; i < room; i++)
        put(team->threads[i].thread, static_cast<quipu_thread *>(nullptr));
    const bool is_accounted = room > 1 && clock_kind != QUIPU_CLOCK_NONE && has_budget(room);
    __atomic_store_n(&team->next[0], is_accounted, __ATOMIC_RELAXED);
}

void join_team(TeamDelays *team, uint32_t index, uint32_t size, const Node *from) {
    TeamThread *own = &team->threads[index];
    __atomic_store_n(&team->size, size, __ATOMIC_RELAXED);
    own->barriers = 0;
    __atomic_store_n(&own->waits, false, __ATOMIC_RELEASE);
    own->work.known = false;
    quipu_thread *thread = measured_thread();
    if (!thread || is_idle(thread) || size < 2)
        return;
    __atomic_store_n(&own->thread, thread, __ATOMIC_RELEASE);
    begin_work(own, from, __atomic_load_n(&team->next[0], __ATOMIC_RELAXED));
}

void come_to_barrier(TeamDelays *team, uint32_t index) {
    TeamThread *own = &team->threads[index];
    if (!get(own->thread))
        return;
    own->operation = quipu_here();
    if (index == 0)
        __atomic_store_n(&team->next[(own->barriers + 1) & 1], has_budget(get(team->size)), __ATOMIC_RELAXED);
    note_arrival(team, own);
}

void leave_barrier(TeamDelays *team, uint32_t index, bool ends_region) {
    TeamThread *own = &team->threads[index];
    if (!get(own->thread))
        return;
    go_on(team, own);
    if (own->knows)
        own->work.left = ticks(clock_kind);
    if (ends_region)
        return;
    const uint32_t barrier = own->barriers++;
    if (own->knows) {
        {
            const Accounting accounting(listed_by(own), 1);
            record(own, own->work.left);
        }
        if (__atomic_add_fetch(&team->recorded, 1, __ATOMIC_ACQ_REL) == get(team->size)) {
            const Accounting accounting(get(team->size) * own->work.paths, 1);
            account(team, barrier);
            put(team->recorded, 0u);
        }
    }
    begin_work(own, own->operation, __atomic_load_n(&team->next[own->barriers & 1], __ATOMIC_RELAXED));
}

void interrupt_barrier(TeamDelays *team, uint32_t index) { go_on(team, &team->threads[index]); }

void resume_barrier(TeamDelays *team, uint32_t index) {
    TeamThread *own = &team->threads[index];
    if (get(own->thread) && !get(own->waits))
        note_arrival(team, own);
}

void end_team(TeamDelays *team) {
    const uint32_t size = get(team->size);
    if (size < 2 || !team->threads[0].thread || !team->threads[0].knows)
        return;
    const Accounting accounting(size * listed_by(&team->threads[0]), size);
    const uint64_t now = ticks(clock_kind);
    for (uint32_t i = 0; i < size; i++) {
        TeamThread *one = &team->threads[i];
        if (!get(one->thread) || !get(one->knows) || one->barriers != team->threads[0].barriers)
            return;
        record(one, i == 0 ? one->work.left : now);
    }
    account(team, team->threads[0].barriers);
}

} // namespace quipu

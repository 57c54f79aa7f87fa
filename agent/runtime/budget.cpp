// SPDX-License-Identifier: Apache-2.0
#include "budget.h"
#include "clock.h"
#include "settings.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace quipu {
namespace {

/* Time stamps may take 2 % of the time of a thread plus 2 ms. Short programs therefore keep the times of all call
 * paths. */
constexpr double usual_percent = 2;
constexpr double free_ns = 2e6;

double percent = usual_percent;
double pair_ticks, free_ticks; /* of two time stamps (0: there is no budget), and free_ns in ticks */
uint32_t untimed;
uint64_t first_untimed, last_untimed; /* ticks; under the lock */

/* Returns the nearest caller that has a time, to which the time of a call path can be added; null if there is none. */
Node *caller_with_time(const Node *node) {
    for (Node *up = node->up; up && up->id && up->region; up = up->up)
        if (get(up->charged) == up)
            return up;
    return nullptr;
}

void give_time(Node *node, Node *caller) {
    const uint64_t time = get(node->metrics[QUIPU_TIME]);
    put(caller->metrics[QUIPU_TIME], get(caller->metrics[QUIPU_TIME]) + time);
    put(node->metrics[QUIPU_TIME], uint64_t{0});
}

} // namespace

void read_budget() {
    const char *text = setting("QUIPU_TIME_BUDGET");
    if (!text || !*text)
        return;
    char *end = nullptr;
    percent = strtod(text, &end);
    if (*end || !(percent >= 0 && percent <= 100)) {
        fprintf(stderr,
                "quipu: error: QUIPU_TIME_BUDGET=%s: it must be a number of percent, 0 for no limit [bad-setting]\n",
                text);
        _exit(1);
    }
}

void begin_budget(double pair) {
    const bool limited = percent > 0 && clock_kind == QUIPU_CLOCK_TSC;
    pair_ticks = limited ? pair * ticks_per_ns : 0;
    free_ticks = free_ns * ticks_per_ns;
}

void review(quipu_thread *thread, Node *node) {
    if (pair_ticks == 0 || is_locked_here() || ranks)
        return;
    Node *caller = caller_with_time(node);
    if (get(node->charged) != node) { /* it already lost its time; the caller that gets the time may have changed */
        if (caller)
            put(node->charged, caller);
        return;
    }
    Thread *mine = own(thread);
    mine->stamped += pair_ticks * QUIPU_REVIEW_VISITS;
    const uint64_t now = ticks(clock_kind);
    const auto since = static_cast<double>(now - mine->begun);
    if (!caller || !get(thread->here)->id || mine->stamped < free_ticks + since * percent / 100)
        return;
    {
        const Locked locked;
        auto *path = static_cast<Thread::UntimedPath *>(keep(sizeof(Thread::UntimedPath)));
        if (!path)
            return;
        *path = {node, mine->untimed};
        __atomic_store_n(&mine->untimed, path, __ATOMIC_RELEASE);
        first_untimed = first_untimed ? first_untimed : now;
        last_untimed = now;
    }
    give_time(node, caller);
    put(node->charged, caller);
    __atomic_fetch_add(&untimed, 1, __ATOMIC_RELAXED);
}

void settle_time(quipu_thread *thread) {
    for (const auto *path = __atomic_load_n(&own(thread)->untimed, __ATOMIC_ACQUIRE); path; path = path->next)
        if (Node *caller = caller_with_time(path->node)) {
            give_time(path->node, caller);
            put(path->node->charged, caller);
        }
}

static void set_seconds(const char *key, uint64_t at) {
    char text[32];
    const double passed = static_cast<double>(at - profile.header->start_ticks) / (ticks_per_ns * 1e3);
    const auto microseconds = static_cast<unsigned long long>(passed > 0 ? passed : 0);
    snprintf(text, sizeof text, "%llu.%06llu", microseconds / 1000000, microseconds % 1000000);
    set_attribute(key, text);
}

void describe_budget() {
    if (const uint32_t count = __atomic_load_n(&untimed, __ATOMIC_RELAXED)) {
        char text[16];
        snprintf(text, sizeof text, "%u", count);
        set_attribute("untimed_paths", text);
        set_seconds("untimed_first_seconds", first_untimed);
        set_seconds("untimed_last_seconds", last_untimed);
    }
}

} // namespace quipu

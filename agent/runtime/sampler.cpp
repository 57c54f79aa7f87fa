// SPDX-License-Identifier: Apache-2.0
/* The timer of each thread, and the handler of its signal.
 *
 * A kernel event (cpu-clock, with a high-resolution timer that runs while the thread runs) sends the signal. The event
 * only fires in user code, so it never interrupts a system call. If such events are forbidden, a POSIX timer of the
 * thread's processor time sends the signal, at most once per kernel tick. The handler reads time and counters. The
 * active call path gets their increase since the last sample, so nothing is lost if a signal is late. */
#include "clock.h"
#include "counting.h"
#include "settings.h"
#include "signals.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <new>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quipu {

/* A call path, and its time at the last sample in it or below it. */
struct Mark {
    const Node *node;
    uint64_t time; /* ticks */
};
constexpr uint32_t most_marks = 64;

struct Sampler {
    bool running;
    bool timed; /* uses a POSIX timer */
    pid_t thread;
    EventFile clock;
    timer_t timer;
    uint64_t last;       /* nanoseconds of processor time at the last sample */
    uint64_t last_ticks; /* of the thread's clock at the last sample */
    uint32_t marks;
    Mark mark[most_marks]; /* the call path of the last sample and its callers, innermost first */
    Counting counting;
};

namespace {

SampleOptions options;

int sample_signal;
const char *problem; /* first problem that prevented sampling of a thread */
char failure[160];
uint32_t uncounted;  /* threads without the requested counters */
uint64_t lost, late; /* samples without a call path; periods that passed before a late sample */
bool by_events, by_timers;

/* Times of events, over all ended threads: requested and counted. */
PerfTimes times[most_events];

enum { SAMPLES, PROCESSOR_TIME, FIRST_COUNTER };

QUIPU_BARE void add(void *to, uint32_t counter, uint64_t value) {
    static_cast<uint64_t *>(to)[FIRST_COUNTER + counter] += value;
}

QUIPU_BARE uint64_t *task_clock(Node *node) { return node->metrics + QUIPU_METRIC_COUNT + PROCESSOR_TIME; }

/* Distributes the periods that passed while the thread was in the kernel.
 *
 * The call path of the last sample and the callers to which it returned get these periods, in this order, in proportion
 * to the wall time of each of them since that sample. Time without a processor is thus regarded as evenly distributed.
 * The last period belongs to the active call path, because the moment of its sample is random. At the end of sampling
 * (`end`) the moment is not random, so the whole time is distributed. passed: processor time since the last sample
 * (ns). Returns the rest, which belongs to the active call path. */
QUIPU_BARE uint64_t give_back(const Sampler *sampler, const Node *node, uint64_t now_ticks, uint64_t passed, bool end) {
    if (now_ticks <= sampler->last_ticks)
        return passed;
    const double scale = static_cast<double>(passed) / static_cast<double>(now_ticks - sampler->last_ticks);
    const uint64_t unit = end ? 1 : options.period;
    const uint64_t most = end ? passed : (passed + options.period / 2) / options.period - 1;
    uint64_t ticks_so_far = 0, given = 0;
    for (uint32_t i = 0; i < sampler->marks && sampler->mark[i].node != node; i++) {
        Node *before = const_cast<Node *>(sampler->mark[i].node);
        const uint64_t time = get(before->metrics[QUIPU_TIME]);
        ticks_so_far += time > sampler->mark[i].time ? time - sampler->mark[i].time : 0;
        const auto units = static_cast<uint64_t>(scale * static_cast<double>(ticks_so_far)) / unit;
        const uint64_t until = units < most ? units : most;
        if (until > given) {
            quipu_increase(task_clock(before), (until - given) * unit);
            given = until;
        }
    }
    return passed - given * unit;
}

QUIPU_BARE void set_marks(Sampler *sampler, const quipu_thread *thread, const Node *node, uint64_t now_ticks) {
    sampler->last_ticks = now_ticks;
    sampler->marks = 0;
    for (; node && node->id && sampler->marks < most_marks; node = node->up)
        sampler->mark[sampler->marks++] = {node, get(node->metrics[QUIPU_TIME])};
    const uint64_t last = get(thread->last); /* the time of the active call path does not contain the time since then */
    if (sampler->marks && now_ticks > last)
        sampler->mark[0].time += now_ticks - last;
}

/* Takes a sample of the calling thread, whose signals are blocked. context: context of the signal, or null. */
QUIPU_BARE void take(Sampler *sampler, const quipu_thread *thread, const void *context) {
    Node *here = get(thread->here), *node = counted(here);
    const uint64_t now = nanoseconds(CLOCK_THREAD_CPUTIME_ID), passed = now - sampler->last;
    const uint64_t now_ticks = ticks(static_cast<uint32_t>(thread->clock));
    sampler->last = now;
    const bool is_late = passed > options.period + options.period / 2;
    if (is_late)
        __atomic_fetch_add(&late, passed / options.period - 1, __ATOMIC_RELAXED);
    uint64_t own_part = passed;
    if (!context || (is_late && !sampler->timed)) /* a POSIX timer only has the resolution of a kernel tick */
        own_part = give_back(sampler, node, now_ticks, passed, !context);
    set_marks(sampler, thread, node, now_ticks);
    uint64_t values[FIRST_COUNTER + most_counters] = {context != nullptr, own_part};
    sampler->counting.take(add, values);
    uint64_t *total = node->metrics + QUIPU_METRIC_COUNT;
    for (uint32_t i = 0; i < FIRST_COUNTER + options.counters; i++)
        quipu_increase(total + i, values[i]);
    if (context)
        count_function(context, node->region == 0, values);
}

QUIPU_BARE void on_sample(int, siginfo_t *info, void *context) {
    const int error = errno;
    quipu_thread *thread = quipu_current;
    Sampler *sampler = thread && !is_idle(thread) ? own(thread)->sampler : nullptr;
    if (sampler && sampler->running && (sampler->timed ? info->si_code == SI_TIMER : info->si_code > 0)) {
        take(sampler, thread, context);
    } else if ((!sampler || sampler->running) && (info->si_code == SI_TIMER || info->si_code > 0)) {
        /* The signal was pending while its sampler was stopped, and an earlier sample contains its period. */
        __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
    }
    errno = error;
}

/* Stops sampling of a thread. Call under the lock. */
void stop(Sampler *sampler) {
    if (!sampler || !sampler->running)
        return;
    sampler->running = false;
    if (sampler->timed)
        timer_delete(sampler->timer);
    sampler->clock.close();
    for (uint32_t i = 0; i < options.events; i++) {
        const PerfTimes one = sampler->counting.times_of(&options.event[i]);
        times[i].enabled += one.enabled;
        times[i].running += one.running;
    }
    sampler->counting.end();
}

/* Starts the kernel event of a thread. Returns false if events are forbidden. */
bool start_event(Sampler *sampler) {
    const uint64_t config[3] = {PERF_COUNT_SW_CPU_CLOCK, 0, 0};
    if (sampler->clock.open(PERF_TYPE_SOFTWARE, config, false, -1, options.period) != 0)
        return false;
    const struct f_owner_ex owner = {F_OWNER_TID, sampler->thread};
    const int fd = sampler->clock.fd;
    if (sampler->clock.send(sample_signal) && fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
        fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK) == 0)
        return true;
    sampler->clock.close();
    return false;
}

/* Returns the clock of the processor time of a thread, like pthread_getcpuclockid (linux/posix-timers.h). */
clockid_t processor_clock(pid_t thread) { return static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6); }

bool start_timer(Sampler *sampler) {
    struct sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = sample_signal;
    event._sigev_un._tid = sampler->thread;
    const auto period = static_cast<long>(options.period);
    constexpr long second = 1000000000;
    const struct itimerspec every = {{period / second, period % second}, {period / second, period % second}};
    sampler->timed = timer_create(processor_clock(sampler->thread), &event, &sampler->timer) == 0;
    if (sampler->timed && timer_settime(sampler->timer, 0, &every, nullptr) != 0) {
        timer_delete(sampler->timer);
        sampler->timed = false;
    }
    return sampler->timed;
}

/* Changes to another signal, or stops sampling, because the program needs the signal. */
void change_signal() {
    const Locked locked;
    sample_signal = take_signal(on_sample);
    if (!sample_signal) {
        problem = problem ? problem : "the program uses SIGURG and SIGWINCH itself";
        stop_sampling();
    }
    for_each_thread([](quipu_thread *thread) {
        Sampler *sampler = own(thread)->sampler;
        if (!sampler || !sampler->running)
            return;
        if (sampler->timed) {
            timer_delete(sampler->timer); /* the timer contains the old signal */
            if (!start_timer(sampler))
                stop(sampler);
        } else if (!sampler->clock.send(sample_signal)) {
            stop(sampler);
        }
        if (!sampler->running)
            problem = problem ? problem : "the signal of the samples could not be changed";
    });
}

/* Selects a signal. Returns false if the program uses all candidates. Call under the lock. */
bool find_signal() {
    static bool looked;
    if (!looked) {
        looked = true;
        sample_signal = take_signal(on_sample);
        when_signal_is_wanted(change_signal);
    }
    return has_signal(sample_signal);
}

} // namespace

void read_sampling_options() {
    const char *wrong = read_sample_options(setting("QUIPU_SAMPLE"), setting("QUIPU_COUNTERS"), &options);
    if (wrong) {
        say("quipu: error: %s [bad-setting]\n", wrong);
        _exit(1);
    }
    if (options.period && ranks) {
        say("quipu: error: QUIPU_SAMPLE: ranks that share a process are not sampled [bad-setting]\n");
        _exit(1);
    }
}

uint32_t sampled_metrics() { return options.period ? FIRST_COUNTER + options.counters : 0; }

const char *sampled_metric_lines() {
    static char lines[most_counters * 100 + 300];
    size_t used = 0;
    lines[0] = '\0';
    if (options.period)
        used = static_cast<size_t>(snprintf(lines, sizeof lines,
                                            "samples\t1\tcost\tsum\tsamples in this call path\n"
                                            "task_clock\tns\tcost\tsum\tprocessor time, by samples\n"));
    for (uint32_t i = 0; i < options.counters; i++)
        used += static_cast<size_t>(
            snprintf(lines + used, sizeof lines - used, "%s\t1\tcost\tsum\tcounter, by samples\n", options.names[i]));
    return lines;
}

void begin_sampling() {
    quipu_thread *thread = quipu_current;
    if (!options.period || !thread || !may_call_system())
        return;
    const int error = errno;
    Sampler *sampler;
    {
        const Locked locked;
        sampler = own(thread)->sampler;
        if (!sampler) {
            void *memory = keep(sizeof(Sampler));
            sampler = own(thread)->sampler = memory ? new (memory) Sampler() : nullptr;
        }
        if (!sampler || !find_signal()) {
            problem = problem ? problem : sampler ? "the program uses SIGURG and SIGWINCH itself" : "no memory";
            return;
        }
    }
    sampler->thread = static_cast<pid_t>(syscall(SYS_gettid));
    sampler->timed = false;
    if (const char *event = sampler->counting.begin(options, failure, sizeof failure)) {
        const Locked locked;
        static char text[400];
        uncounted++;
        if (!problem)
            say("quipu: %s cannot be counted: %s; the profile only contains samples [counter-missing]\n", event,
                failure);
        snprintf(text, sizeof text, "%s cannot be counted: %s", event, failure);
        problem = problem ? problem : text;
    }
    sampler->last = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    sampler->marks = 0;
    sampler->running = true;
    const bool event = start_event(sampler), timer = !event && start_timer(sampler);
    __atomic_store_n(event ? &by_events : &by_timers, true, __ATOMIC_RELAXED);
    if (!event && !timer) {
        sampler->running = false;
        problem = problem ? problem : "neither perf_event_open nor timer_create is allowed";
    }
    errno = error;
}

/* Adds the time since the last sample to the active call path of this thread. Returns its sampler, or null if the
 * thread is not sampled. Call under the lock, so that no signal interrupts. */
static Sampler *take_rest() {
    quipu_thread *thread = quipu_current;
    Sampler *sampler = thread && !is_idle(thread) ? own(thread)->sampler : nullptr;
    if (!sampler || !sampler->running)
        return nullptr;
    take(sampler, thread, nullptr);
    return sampler;
}

void sample_now() {
    if (!options.period)
        return;
    const Locked locked;
    take_rest();
}

void end_sampling() {
    if (!options.period)
        return;
    const Locked locked;
    stop(take_rest());
}

void stop_sampling() {
    for_each_thread([](quipu_thread *thread) { stop(own(thread)->sampler); });
}

QUIPU_BARE void forget_sampling() {
    for_each_thread([](quipu_thread *thread) {
        Sampler *sampler = own(thread)->sampler;
        if (!sampler || !sampler->running)
            return;
        sampler->running = sampler->timed = false; /* a child inherits no timers */
        sampler->marks = 0;
        sampler->clock.close();
        sampler->counting.forget();
        sampler->counting.end();
    });
    lost = late = uncounted = 0;
    memset(times, 0, sizeof times);
}

void describe_sampling() {
    if (!options.period)
        return;
    char text[most_events * 88];
    const auto put_number = [&](const char *key, uint64_t number) {
        snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(number));
        set_attribute(key, text);
    };
    put_number("sample_period_ns", options.period);
    put_number("samples_lost", lost);
    put_number("samples_late", late);
    set_attribute("sampled_by", by_timers ? by_events ? "perf, timer" : "timer" : "perf");
    if (!problem && sample_signal && !has_signal(sample_signal))
        problem = "the program took the signal of the samples";
    if (uncounted) {
        snprintf(text, sizeof text, "%s (in %u threads, whose counters are missing)", problem, uncounted);
        set_attribute("sampling_problem", text);
    } else if (problem) {
        set_attribute("sampling_problem", problem);
    }
    size_t used = 0;
    text[0] = '\0';
    for_each_thread([](quipu_thread *thread) {
        Sampler *sampler = own(thread)->sampler;
        for (uint32_t i = 0; sampler && sampler->running && i < options.events; i++) {
            const PerfTimes one = sampler->counting.times_of(&options.event[i]);
            times[i].enabled += one.enabled;
            times[i].running += one.running;
        }
    });
    for (uint32_t i = 0; i < options.events; i++)
        used += static_cast<size_t>(snprintf(
            text + used, sizeof text - used, "%s:%llu/%llu ", options.names[options.event[i].counter],
            static_cast<unsigned long long>(times[i].running), static_cast<unsigned long long>(times[i].enabled)));
    if (options.events)
        set_attribute("counter_times", text);
    describe_functions();
}

} // namespace quipu

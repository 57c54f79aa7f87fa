/* SPDX-License-Identifier: Apache-2.0 */
/* What a timer of the kernel costs a program: prints the processor seconds of a loop.
 *
 *   interrupts nothing|interrupts|signals NANOSECONDS
 *
 * interrupts: an event (cpu-clock) of this period that tells nobody. signals: it sends a signal, whose handler counts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long counted;
static volatile double kept;

static void count(int number) {
    (void)number;
    counted = counted + 1;
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int start(unsigned long long period, int sends) {
    struct perf_event_attr event = {
        .size = sizeof event, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
    event.sample_period = period;
    event.exclude_kernel = event.exclude_hv = 1;
    event.wakeup_events = 1;
    const int fd = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
    if (fd < 0 || !sends)
        return fd;
    const struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    const struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    sigaction(SIGURG, &action, NULL);
    fcntl(fd, F_SETSIG, SIGURG);
    fcntl(fd, F_SETOWN_EX, &owner);
    fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    return fd;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "nothing") != 0 && start(strtoull(argv[2], NULL, 10), strcmp(argv[1], "signals") == 0) < 0) {
        perror("perf_event_open");
        return 1;
    }
    const double begin = seconds();
    double x = 1;
    for (long i = 0; i < 400000000; i++)
        x = x * 1.0000001 + 1e-9;
    kept = x;
    printf("%.6f\n", seconds() - begin);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace quipu {
namespace {

/* Returns whether the counter runs at one rate in all power states and on all cores (Intel SDM 18.17.1: CPUID
 * 80000007H, EDX bit 8). Hypervisors hide the bit; then the clock source of the kernel decides. */
bool counter_is_invariant() {
#if defined(__aarch64__)
    return true;
#elif defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)))
        return true;
    char source[16] = {};
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, source, sizeof source - 1);
    close(fd);
    return got >= 3 && strncmp(source, "tsc", 3) == 0;
#else
    return false;
#endif
}

} // namespace

bool counter_is_forbidden;

void forbid_counter() { counter_is_forbidden = true; }

void read_clock_of_kernel(clockid_t id, struct timespec *now) { syscall(SYS_clock_gettime, id, now); }

uint32_t choose_clock(const char *choice) {
    if (choice && !strcmp(choice, "none"))
        return QUIPU_CLOCK_NONE;
    if (choice && !strcmp(choice, "monotonic"))
        return QUIPU_CLOCK_NANOSECONDS;
    if (choice && !strcmp(choice, "tsc"))
        return QUIPU_CLOCK_TSC;
    return counter_is_invariant() ? QUIPU_CLOCK_TSC : QUIPU_CLOCK_NANOSECONDS;
}

} // namespace quipu

/* SPDX-License-Identifier: Apache-2.0 */
/* A child that no handler of pthread_atfork hears of: of _Fork, or of the call of the system. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int done;
__attribute__((noinline)) void of_child(void) { done++; }
__attribute__((noinline)) void of_both(void) { done++; }

int main(int argc, char **argv) {
    const int plain = argc > 1 && strcmp(argv[1], "_Fork") == 0;
    of_both();
    const pid_t child = plain ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        of_both();
        if (plain)
            of_child();
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    of_both();
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
// Children of fork: one counts inside of the region where it was made, one forks again, one executes a program.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long work(int n) {
    long s = 0;
    for (int i = 0; i < n; i++)
        if ((i * 7) % 3)
            s += i;
    return s;
}

static void wait_for(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        exit(1);
}

__attribute__((noinline)) static long parent(int n) {
    long s = work(n);
    pid_t child = fork();
    if (child == 0) {
        s += work(2 * n);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            work(4 * n);
            exit(0);
        }
        wait_for(grandchild);
        return s;
    }
    wait_for(child);
    return s + work(n);
}

int main(int argc, char **argv) {
    if (argc > 2)
        return work(8 * atoi(argv[1])) < 0;
    int n = atoi(argv[1]);
    pid_t self = getpid();
    parent(n);
    if (getpid() == self) {
        pid_t child = fork();
        if (child == 0)
            execl(argv[0], argv[0], argv[1], "again", (char *)0);
        wait_for(child);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
// As daemons do: closes all descriptors from 3 on, opens files of its own with these numbers, and goes on.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "many_paths.h"

static void close_all(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (rlim_t fd = 3; fd < limit.rlim_cur; fd++)
        close((int)fd);
}

static void open_all(const char *path) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int first = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (first != 3 || write(first, "mine\n", 5) != 5)
        exit(1);
    for (rlim_t fd = 4; fd < limit.rlim_cur; fd++)
        if (dup2(first, (int)fd) < 0)
            exit(2);
}

static KEEP void in_child(void) { walk(1); }

int main(int argc, char **argv) {
    walk(0);
    if (argc < 3)
        return 3;
    close_all();
    if (strcmp(argv[2], "fork"))
        open_all(argv[1]);
    if (!strcmp(argv[2], "fork")) {
        pid_t child = fork();
        if (child == 0) {
            in_child();
            exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 4;
    }
    if (!strcmp(argv[2], "close"))
        close(200); /* the runtime may have one again */
    walk(40);
    return 0;
}

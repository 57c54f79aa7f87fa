/* SPDX-License-Identifier: Apache-2.0 */
// Call paths by hand: many callees of one caller, many call paths, recursion to the bottom of a stack.
#include <quipu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 40000 };
static struct quipu_region regions[MOST];
static char names[MOST][16];

static void name_all(void) {
    for (int i = 0; i < MOST; i++) {
        snprintf(names[i], sizeof names[i], "r%d", i);
        regions[i].name = names[i];
        regions[i].kind = QUIPU_USER;
    }
}

static void callees(int count, int rounds) {
    struct quipu_frame *caller = quipu_enter(&regions[0]);
    for (int round = 0; round < rounds; round++)
        for (int i = 1; i <= count; i++)
            quipu_exit(quipu_enter(&regions[i]));
    quipu_exit(caller);
}

static void paths(int width) {
    for (int i = 0; i < width; i++) {
        struct quipu_frame *caller = quipu_enter(&regions[i]);
        for (int k = 0; k < width; k++)
            quipu_exit(quipu_enter(&regions[k]));
        quipu_exit(caller);
    }
}

static void deep(int depth) {
    struct quipu_frame *frame = quipu_enter(&regions[depth % 2]);
    if (depth > 0)
        deep(depth - 1);
    quipu_exit(frame);
}

int main(int argc, char **argv) {
    const int number = argc > 2 ? atoi(argv[2]) : 0, more = argc > 3 ? atoi(argv[3]) : 1;
    name_all();
    if (!strcmp(argv[1], "callees"))
        callees(number, more);
    if (!strcmp(argv[1], "deep"))
        deep(number);
    if (!strcmp(argv[1], "fork")) {
        paths(number);
        for (int i = 0; i < more; i++) {
            pid_t child = fork();
            if (child == 0)
                _exit(0);
            if (waitpid(child, 0, 0) != child)
                return 1;
        }
    }
    return 0;
}

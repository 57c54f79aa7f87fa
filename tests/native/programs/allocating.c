/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations whose numbers are known, by call path; `who` releases what another thread allocated. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN __attribute__((noinline))
void *volatile keep[4096];

OWN static void many_small(int count) {
    for (int i = 0; i < count; i++)
        keep[i] = malloc(100);
}

OWN static void one_large(void) { keep[4000] = malloc(8 << 20); }

OWN static void release_small(int count) {
    for (int i = 0; i < count; i++)
        free(keep[i]);
}

OWN static void all_kinds(void) {
    void *block;
    if (posix_memalign(&block, 64, 1000))
        abort();
    keep[0] = block;
    keep[1] = aligned_alloc(64, 640);
    keep[2] = memalign(128, 300);
    keep[3] = valloc(50);
    keep[4] = calloc(10, 10);
    keep[5] = reallocarray(NULL, 10, 20);
    keep[6] = realloc(keep[5], 5000);
    keep[7] = strdup("a text of the C library");
    if (reallocarray(NULL, (size_t)-1, 16) || realloc(keep[4], (size_t)1 << 62))
        abort();
    free(keep[0]), free(keep[1]), free(keep[2]), free(keep[3]), free(keep[4]), free(keep[6]), free(keep[7]);
    free(NULL);
}

static pthread_barrier_t ready;
OWN static void *producer(void *argument) {
    for (int i = 0; i < 1000; i++)
        keep[i] = malloc(2000);
    pthread_barrier_wait(&ready);
    return argument;
}
OWN static void *consumer(void *argument) {
    pthread_barrier_wait(&ready);
    for (int i = 0; i < 1000; i++)
        free(keep[i]);
    return argument;
}
OWN static void threads(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t a, b;
        pthread_barrier_init(&ready, NULL, 2);
        pthread_create(&a, NULL, producer, NULL);
        pthread_create(&b, NULL, consumer, NULL);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
    }
}

static sigjmp_buf back;
static void handler(int signal) {
    (void)signal;
    keep[9] = malloc(100000);
    free(keep[9]);
    siglongjmp(back, 1);
}
OWN static void signals(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 200; i++)
        if (!sigsetjmp(back, 1))
            raise(SIGUSR1);
}

OWN static void in_child(void) {
    keep[11] = malloc(2 << 20);
    free(keep[10]);
}

OWN static void forks(void) {
    keep[10] = malloc(4 << 20);
    const pid_t child = fork();
    if (child == 0) {
        in_child();
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        abort();
    free(keep[10]);
}

OWN static void libraries(void) {
    void *library = dlopen("libm.so.6", RTLD_NOW);
    if (!library || dlsym(library, "there is no such function") || !dlerror())
        abort();
    dlclose(library);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "hold") == 0) {
        many_small(3000);
        one_large();
        release_small(3000);
        free(keep[4000]);
    }
    if (strcmp(what, "kinds") == 0)
        all_kinds();
    if (strcmp(what, "threads") == 0)
        threads();
    if (strcmp(what, "signals") == 0)
        signals();
    if (strcmp(what, "forks") == 0)
        forks();
    if (strcmp(what, "libraries") == 0)
        libraries();
    puts("done");
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic ranks for merge_scaling.py in one thread, without an MPI: what the reduction itself costs.
 *
 *     merge_scaling_fibers RANKS PATHS METRICS FOLDER COLUMN_RANKS
 * Each rank runs on a stack of its own until it has to wait for another. The functions of MPI that the reduction calls
 * are here: a message is copied once, from the sender, who waits for that, to the receiver. Prints the seconds of all
 * ranks together, the processor seconds, and those of the rank with the most.
 */
#include "merge_scaling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

enum { STACK = 256 << 10 };

struct fiber {
    ucontext_t context;
    struct quipu_snapshot mine;
    struct quipu_reduction reduction;
    bool good, done;
    double cpu;
    /* the message that it offers: to whom, or -1 */
    int to;
    const void *bytes;
    int size;
    int received; /* bytes of the message that it got last */
    int from;     /* whose message it waits for, or -1 */
};

static struct fiber *fibers;
static int ranks, current;
static ucontext_t scheduler;
static int *ready, first, ready_count; /* ranks that can go on: a ring */

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void wake(int rank) { ready[(first + ready_count++) % ranks] = rank; }

static void pause_fiber(void) { swapcontext(&fibers[current].context, &scheduler); }

int PMPI_Comm_rank(MPI_Comm comm, int *rank) {
    (void)comm;
    *rank = current;
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size) {
    (void)comm;
    *size = ranks;
    return MPI_SUCCESS;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
    (void)status, (void)type;
    *count = fibers[current].received;
    return MPI_SUCCESS;
}

int PMPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    (void)type, (void)tag, (void)comm;
    struct fiber *self = &fibers[current];
    self->to = to;
    self->bytes = buffer;
    self->size = count;
    if (fibers[to].from == current) {
        fibers[to].from = -1;
        wake(to);
    }
    while (self->to >= 0)
        pause_fiber();
    return MPI_SUCCESS;
}

int PMPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    (void)type, (void)tag, (void)comm, (void)status;
    struct fiber *self = &fibers[current], *sender = &fibers[from];
    while (sender->to != current) {
        self->from = from;
        pause_fiber();
    }
    self->received = sender->size < count ? sender->size : count;
    if (self->received > 0)
        memcpy(buffer, sender->bytes, (size_t)self->received);
    sender->to = -1;
    wake(from);
    return MPI_SUCCESS;
}

static void run(void) {
    struct fiber *self = &fibers[current];
    self->good = quipu_reduce(&self->mine, MPI_COMM_WORLD, &self->reduction);
    self->done = true;
    pause_fiber();
}

static void start(int rank) {
    struct fiber *fiber = &fibers[rank];
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || getcontext(&fiber->context) != 0) {
        perror("merge_scaling_fibers");
        exit(1);
    }
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = STACK;
    fiber->from = fiber->to = -1;
    makecontext(&fiber->context, run, 0);
    wake(rank);
}

int main(int argc, char **argv) {
    ranks = argc == 6 ? atoi(argv[1]) : 0;
    fibers = calloc((size_t)ranks + 1, sizeof *fibers);
    ready = calloc((size_t)ranks + 1, sizeof *ready);
    if (ranks < 1 || fibers == NULL || ready == NULL)
        return 2;
    for (int rank = 0; rank < ranks; rank++) {
        fibers[rank].mine = made_up((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]), rank);
        fibers[rank].reduction = (struct quipu_reduction){
            .folder = argv[4], .column_ranks = (uint32_t)atoi(argv[5]), .pid = (uint32_t)rank + 1};
        start(rank);
    }
    const double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double before = cpu;
    for (; ready_count > 0; ready_count--) {
        current = ready[first];
        swapcontext(&scheduler, &fibers[current].context);
        const double after = seconds(CLOCK_PROCESS_CPUTIME_ID);
        fibers[current].cpu += after - before;
        before = after;
        first = (first + 1) % ranks;
    }
    double most = 0;
    for (int rank = 0; rank < ranks; rank++) {
        most = fibers[rank].cpu > most ? fibers[rank].cpu : most;
        if (!fibers[rank].done || !fibers[rank].good) {
            fprintf(stderr, "rank %d did not come to its end\n", rank);
            return 1;
        }
    }
    printf("%.6f %.6f %.6f\n", seconds(CLOCK_MONOTONIC) - begin, before - cpu, most);
    return 0;
}

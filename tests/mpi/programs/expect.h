/* SPDX-License-Identifier: Apache-2.0 */
/* What a test program expects of its own MPI calls: written to <folder>/expected-<rank>.tsv, one line per function. */
#ifndef EXPECT_H
#define EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open MPI 5 has these operations, although it says that it is of MPI 3.1. */
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define HAS_MPI_4
#endif

/* With LARGE_COUNTS the program calls the large-count twins: that header renames the functions. */
#ifdef LARGE_COUNTS
#include LARGE_COUNTS
typedef MPI_Count amount;
typedef MPI_Aint displacement;
#else
typedef int amount;
typedef int displacement;
#endif

struct expectation {
    char name[48];
    long long sent, received, messages_sent, messages_received, processes;
};

static struct expectation expectations[256];
static int expectation_count = 0;

static inline void fail(const char *what) {
    fprintf(stderr, "test program: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static inline void expect(const char *name, long long sent, long long received, int messages_sent,
                          int messages_received, int processes) {
    struct expectation *row = expectations;
    while (row < expectations + expectation_count && strcmp(row->name, name) != 0)
        row++;
    if (row == expectations + expectation_count) {
        expectation_count++;
        snprintf(row->name, sizeof row->name, "%s", name);
    }
    row->sent += sent;
    row->received += received;
    row->messages_sent += messages_sent;
    row->messages_received += messages_received;
    if (processes > row->processes)
        row->processes = processes;
}

static inline void expect_collective(const char *name, long long sent, long long received, int processes) {
    expect(name, sent, received, sent > 0, received > 0, processes);
}

/* One call of every form of a collective operation, with bytes per call; the persistent one counts when it starts. */
#define EVERY_FORM(blocking, nonblocking, sent, received, processes, ...)                                              \
    do {                                                                                                               \
        MPI_Request form;                                                                                              \
        blocking(__VA_ARGS__);                                                                                         \
        expect_collective(#blocking, sent, received, processes);                                                       \
        nonblocking(__VA_ARGS__, &form);                                                                               \
        MPI_Wait(&form, MPI_STATUS_IGNORE);                                                                            \
        expect_collective(#nonblocking, sent, received, processes);                                                    \
        PERSISTENT_FORM(blocking##_init, #blocking "_init", sent, received, processes, __VA_ARGS__);                   \
    } while (0)

#ifdef HAS_MPI_4
#define PERSISTENT_FORM(init, name, sent, received, processes, ...)                                                    \
    init(__VA_ARGS__, MPI_INFO_NULL, &form);                                                                           \
    expect(name, 0, 0, 0, 0, 0);                                                                                       \
    MPI_Start(&form);                                                                                                  \
    expect_collective("MPI_Start", sent, received, processes);                                                         \
    MPI_Wait(&form, MPI_STATUS_IGNORE);                                                                                \
    MPI_Request_free(&form)
#else
#define PERSISTENT_FORM(...) (void)0
#endif

static inline void write_expectations_of(int rank, const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/expected-%d.tsv", folder, rank);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail("cannot write expectations");
    for (int i = 0; i < expectation_count; i++) {
        const struct expectation *row = &expectations[i];
        fprintf(file, "%s\t%lld\t%lld\t%lld\t%lld\t%lld\n", row->name, row->sent, row->received, row->messages_sent,
                row->messages_received, row->processes);
    }
    if (fclose(file) != 0)
        fail("cannot write expectations");
}

static inline void write_expectations(const char *folder) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    write_expectations_of(rank, folder);
}

#endif

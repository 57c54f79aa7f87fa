/* SPDX-License-Identifier: Apache-2.0 */
/* Reduces the profiles of all ranks to one file in MPI_Finalize, if QUIPU_MPI_REDUCE is 1 and all ranks take part.
 *
 * The reduction must not block a program that would end without it. The ranks therefore first enter a nonblocking
 * barrier. A rank without these wrappers never enters the barrier, so the barrier never completes. Such a rank also has
 * no profile. A rank that has waited long therefore counts the profiles in the folder. If there are too few, the rank
 * gives up: it continues without a reduction.
 *
 * A profile is also missing if its rank could not write the file. Such a rank does enter the barrier, possibly after
 * other ranks have given up. A second barrier therefore follows. If any rank has given up, the second barrier never
 * completes, and the other ranks give up, too. A rank that gives up creates the file .no-reduction in the folder, so
 * that the other ranks need not wait so long. */
#include "active.h"

#include "group.h"
#include "reduction/reduce.h"
#include "wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef SMPI_H /* all ranks are one process with one profile */
void quipu_mpi_reduce_at_end(void) {}
#else
/* COLUMN_RANKS: default of QUIPU_RANK_COLUMNS. PATIENCE_SECONDS: time before and between two counts of the profiles.
 * YIELDS: number of tests of the barrier before the rank sleeps between two tests. */
enum { COLUMN_RANKS = 256, PATIENCE_SECONDS = 30, YIELDS = 1000 };
/* A rank gives up after so many consecutive counts with missing profiles, in the first and in the second barrier. One
 * count is not enough, because shared folders show new files late. */
enum { LOOKS_AT_ARRIVAL = 2, LOOKS_TOGETHER = 4 };

static bool all_have_profiles(const char *folder, int ranks) {
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return false;
    int profiles = 0;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
        profiles += strncmp(entry->d_name, "profile-", strlen("profile-")) == 0;
    closedir(entries);
    return profiles >= ranks;
}

static bool mark_of(const char *folder, char *path, size_t size) {
    const int length = snprintf(path, size, "%s/.no-reduction", folder);
    return length > 0 && (size_t)length < size;
}

/* Creates .no-reduction: this rank does not enter a barrier, or has left it before it was complete. */
static void mark_departure(const char *folder) {
    char path[4200];
    const int mark = mark_of(folder, path, sizeof path) ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (mark >= 0)
        close(mark);
}

static bool anybody_departed(const char *folder) {
    char path[4200];
    return mark_of(folder, path, sizeof path) && access(path, F_OK) == 0;
}

/* Waits in a nonblocking barrier. Returns false if this rank gives up, or if MPI returned an error. looks: number of
 * counts with missing profiles after which the rank gives up. */
static bool all_arrive(const char *folder, int looks) {
    MPI_Request barrier;
    if (PMPI_Ibarrier(MPI_COMM_WORLD, &barrier) != MPI_SUCCESS)
        return false;
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    time_t seconds = 0, next_look = PATIENCE_SECONDS;
    int missed = 0;
    for (long tests = 0;; tests++) {
        int done = 0;
        if (PMPI_Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done)
            return true;
        if (tests < YIELDS) {
            sched_yield();
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > seconds) {
            seconds = now.tv_sec - begin.tv_sec;
            if (anybody_departed(folder))
                return false;
        }
        if (seconds >= next_look) {
            missed = all_have_profiles(folder, quipu_mpi_world.all) ? 0 : missed + 1;
            if (missed == looks)
                return false;
            next_look += PATIENCE_SECONDS;
        }
    }
}

/* Creates a separate communicator; MPI_COMM_NULL if this fails. MPI_Comm_dup would run attribute callbacks of the
 * program. */
static MPI_Comm own_communicator(MPI_Group everybody) {
    MPI_Comm comm = MPI_COMM_NULL;
    return PMPI_Comm_create(MPI_COMM_WORLD, everybody, &comm) == MPI_SUCCESS ? comm : MPI_COMM_NULL;
}

void quipu_mpi_reduce_at_end(void) {
    const char *wanted = quipu_setting("QUIPU_MPI_REDUCE"), *folder = quipu_setting("QUIPU_DIR"),
               *limit = quipu_setting("QUIPU_RANK_COLUMNS");
    if (wanted == NULL || strcmp(wanted, "1") != 0 || folder == NULL || quipu_mpi_world.all == 1)
        return;
    if (quipu_mpi_world.all == 0) { /* the number of ranks is not known */
        mark_departure(folder);
        return;
    }
    MPI_Group everybody = MPI_GROUP_NULL;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &everybody) != MPI_SUCCESS || !all_arrive(folder, LOOKS_AT_ARRIVAL) ||
        !all_arrive(folder, LOOKS_TOGETHER)) {
        mark_departure(folder);
        if (everybody != MPI_GROUP_NULL)
            PMPI_Group_free(&everybody);
        return;
    }
    const struct quipu_snapshot *mine = quipu_take_snapshot();
    struct quipu_reduction reduction = {
        .folder = folder, .column_ranks = COLUMN_RANKS, .pid = (uint32_t)getpid(), .waits = quipu_mpi_wait_mode_is_on};
    if (limit != NULL && *limit != '\0')
        reduction.column_ranks = (uint32_t)strtoul(limit, NULL, 10);
    MPI_Comm comm = own_communicator(everybody);
    PMPI_Group_free(&everybody);
    bool reduced = false;
    if (comm != MPI_COMM_NULL) {
        PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        reduced = quipu_reduce(mine, comm, &reduction);
        PMPI_Comm_free(&comm);
    }
    if (mine != NULL)
        quipu_end_snapshot(reduced ? reduction.id : NULL);
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the requests that a wait or test function has completed. */
#include "requests.h"

#include <stdlib.h>
#include <string.h>

static bool ignored(const MPI_Status *statuses) {
    return statuses == MPI_STATUS_IGNORE || statuses == MPI_STATUSES_IGNORE;
}

MPI_Status *quipu_mpi_await(struct quipu_mpi_completion *completion, int count, const MPI_Request *requests,
                            MPI_Status *statuses, int status_count) {
    completion->count = completion->base = 0;
    completion->bytes = 0;
    completion->memory = NULL;
    if (count <= 0 || requests == NULL || !quipu_mpi_any_request())
        return statuses;
    completion->time = quipu_mpi_request_time();
    completion->handles = completion->few_handles;
    completion->statuses = ignored(statuses) ? completion->few_statuses : statuses;
    if (count > QUIPU_MPI_FEW) {
        const size_t own = ignored(statuses) ? (size_t)status_count : 0;
        completion->memory = malloc(own * sizeof(MPI_Status) + (size_t)count * sizeof(MPI_Request));
        if (completion->memory == NULL)
            return statuses;
        if (own > 0)
            completion->statuses = completion->memory;
        completion->handles = (MPI_Request *)(void *)((char *)completion->memory + own * sizeof(MPI_Status));
    }
    completion->count = count;
    memcpy(completion->handles, requests, (size_t)count * sizeof *requests);
    return completion->statuses;
}

static void finish(struct quipu_mpi_completion *completion) {
    free(completion->memory);
    completion->count = 0;
}

void quipu_mpi_completed_one(struct quipu_mpi_completion *completion, int result, const MPI_Request *requests,
                             const int *index, const int *flag) {
    if (completion->count == 0)
        return;
    if (result == MPI_SUCCESS) {
        if (flag == NULL || *flag) {
            const int which = index == NULL ? 0 : *index - completion->base;
            if (which >= 0 && which < completion->count) /* otherwise MPI_UNDEFINED: no request was active */
                completion->bytes +=
                    quipu_mpi_settle(completion->handles[which], completion->time, completion->statuses);
        }
    } else if (requests != NULL) { /* MPI has set the failed request to MPI_REQUEST_NULL */
        for (int i = 0; i < completion->count; i++)
            if (completion->handles[i] != requests[i] && requests[i] == MPI_REQUEST_NULL)
                quipu_mpi_forget(completion->handles[i], completion->time, false);
    }
    finish(completion);
}

/* Counts request number `which`, whose status has the index `at`, or removes it if it failed. If the call returned
 * MPI_ERR_IN_STATUS, the field MPI_ERROR of each status is valid. */
static void settle_of_several(struct quipu_mpi_completion *completion, int result, int which, int at) {
    const MPI_Status *status = &completion->statuses[at];
    if (result == MPI_SUCCESS || status->MPI_ERROR == MPI_SUCCESS)
        completion->bytes += quipu_mpi_settle(completion->handles[which], completion->time, status);
    else if (status->MPI_ERROR != MPI_ERR_PENDING)
        quipu_mpi_forget(completion->handles[which], completion->time, false);
}

void quipu_mpi_completed_some(struct quipu_mpi_completion *completion, int result, const int *count,
                              const int *indices) {
    if (completion->count == 0)
        return;
    if ((result == MPI_SUCCESS || result == MPI_ERR_IN_STATUS) && *count != MPI_UNDEFINED)
        for (int i = 0; i < *count; i++)
            settle_of_several(completion, result, indices[i] - completion->base, i);
    finish(completion);
}

void quipu_mpi_completed_all(struct quipu_mpi_completion *completion, int result, const int *flag) {
    if (completion->count == 0)
        return;
    if (result == MPI_ERR_IN_STATUS || (result == MPI_SUCCESS && (flag == NULL || *flag)))
        for (int i = 0; i < completion->count; i++)
            settle_of_several(completion, result, i, i);
    finish(completion);
}

void quipu_mpi_before_free(struct quipu_mpi_completion *completion, const MPI_Request *request) {
    quipu_mpi_await(completion, 1, request, MPI_STATUS_IGNORE, 1);
    if (completion->count == 0 || !quipu_mpi_is_receive(*request))
        return;
    int done = 0;
    if (PMPI_Request_get_status(*request, &done, completion->few_statuses) == MPI_SUCCESS && done)
        quipu_mpi_settle(*request, completion->time, completion->few_statuses);
}

void quipu_mpi_after_free(struct quipu_mpi_completion *completion, int result) {
    if (completion->count != 0 && result == MPI_SUCCESS)
        quipu_mpi_forget(completion->handles[0], completion->time, true);
    if (completion->count != 0)
        finish(completion);
}

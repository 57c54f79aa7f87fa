/* SPDX-License-Identifier: Apache-2.0 */
/* quipu_mpi.h: common code of the generated MPI wrappers (hand-written; mpi_wrap/generate.py writes the wrappers).
 *
 * A wrapper enters the region of its function, calls the PMPI_ function, counts, and leaves the region:
 *
 *     if (!quipu_mpi_outermost()) return PMPI_Send(...);
 *     QUIPU_MPI_CALL(&region);
 *     int result = PMPI_Send(...);
 *     if (result == MPI_SUCCESS) quipu_mpi_count(call.node, ...);
 *     return result; */
#ifndef QUIPU_MPI_H
#define QUIPU_MPI_H

#include "active.h"
#include "bytes.h"
#include "call.h"
#include "fortran.h"
#include "group.h"
#include "partners.h"
#include "requests.h"
#include "tables.h"
#include "wait.h"
#include "world_rank.h"

#include <stdlib.h>
#include <string.h>

/* Makes a wrapper visible to other objects. All other functions are hidden (-fvisibility=hidden). */
#define QUIPU_EXPORT __attribute__((visibility("default")))

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h: replacing functions in the tables of loaded objects. */
#ifndef QUIPU_MPI_TABLES_H
#define QUIPU_MPI_TABLES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct quipu_mpi_replacement {
    const char *name;
    const void *function;
    void **following; /* what the wrapper calls; NULL with SMPI */
};
/* Generated: the wrappers by the name of their function, sorted. */
extern const struct quipu_mpi_replacement quipu_mpi_replacements[];
extern const size_t quipu_mpi_replacement_count;

#ifdef SMPI_H
/* What to call for a function that reads the simulated clock or sleeps, where nothing else sees to it that computation
 * before is simulated; NULL for other functions. */
const void *quipu_mpi_clock_of(const char *name);
#endif

struct link_map;

/* The wrapper of a function of this name; NULL for other functions. */
const void *quipu_mpi_replacement_of(const char *name);
const struct quipu_mpi_replacement *quipu_mpi_find_replacement(const char *name);
/* What to write for a function that an object uses, NULL to leave it; `own`: the object defines it itself. */
typedef const void *quipu_mpi_choice(const struct link_map *object, const char *name, bool own);
void quipu_mpi_replace(const struct link_map *object, quipu_mpi_choice *choose);

#ifdef SMPI_H
/* From now on the wrappers are called by programs that SMPI loads. */
void quipu_mpi_replace_calls(void);
#else
/* Other libraries, and the program, may wrap functions of MPI, too: from now on both are called (chain.c). */
void quipu_mpi_chain(void);
#endif

#endif

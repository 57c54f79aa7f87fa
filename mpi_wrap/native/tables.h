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
    void **following; /* the function that the wrapper calls; NULL with SMPI */
};
/* Generated: the wrappers by the name of their function, sorted. */
extern const struct quipu_mpi_replacement quipu_mpi_replacements[];
extern const size_t quipu_mpi_replacement_count;

#ifdef SMPI_H
/* Returns the replacement of a function that reads the simulated clock or sleeps, if no other code simulates the
 * previous computation; otherwise NULL. */
const void *quipu_mpi_clock_of(const char *name);
#endif

struct link_map;

/* The wrapper of a function of this name; NULL for other functions. */
const void *quipu_mpi_replacement_of(const char *name);
const struct quipu_mpi_replacement *quipu_mpi_find_replacement(const char *name);
/* Returns the address to write for a function that an object uses; NULL: no change. own: the object defines the
 * function itself. */
typedef const void *quipu_mpi_choice(const struct link_map *object, const char *name, bool own);
void quipu_mpi_replace(const struct link_map *object, quipu_mpi_choice *choose);

#ifdef SMPI_H
/* Makes programs that SMPI loads call the wrappers. */
void quipu_mpi_replace_calls(void);
#else
/* Chains the wrappers with MPI wrappers of other libraries and of the program (chain.c). */
void quipu_mpi_chain(void);
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tables.h: functions that replace addresses of functions in the address tables (GOT) of loaded objects. */
#ifndef QUIPU_MPI_TABLES_H
#define QUIPU_MPI_TABLES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct quipu_mpi_replacement {
    const char *name;     /* the function of MPI */
    const void *function; /* its wrapper */
    void **following;     /* the variable with the function that the wrapper calls; NULL under SMPI */
};
/* Largest number of wrappers, which the generated code checks. */
enum { QUIPU_MPI_MOST_REPLACEMENTS = 2048 };
/* Generated: all wrappers, sorted by `name`. */
extern const struct quipu_mpi_replacement quipu_mpi_replacements[];
extern const size_t quipu_mpi_replacement_count;

#ifdef SMPI_H
/* Returns the replacement of a function that reads the simulated clock or sleeps. Returns NULL for other functions, and
 * outside of simulations by effort. */
const void *quipu_mpi_clock_of(const char *name);
#endif

struct link_map;

/* Return the wrapper of the MPI function with this name, or its entry in the table; NULL for other functions. */
const void *quipu_mpi_replacement_of(const char *name);
const struct quipu_mpi_replacement *quipu_mpi_find_replacement(const char *name);
/* Returns the address that replaces a function in the tables of an object; NULL: no change. own: whether the object
 * defines the function itself. */
typedef const void *quipu_mpi_choice(const struct link_map *object, const char *name, bool own);
/* Replaces the functions for which `choose` returns an address in the tables of an object. */
void quipu_mpi_replace(const struct link_map *object, quipu_mpi_choice *choose);

#ifdef SMPI_H
/* Makes programs that SMPI loads call the wrappers. */
void quipu_mpi_replace_calls(void);
#else
/* Chains the wrappers with MPI wrappers of other libraries and of the program (chain.c). */
void quipu_mpi_chain(void);
#endif

#endif

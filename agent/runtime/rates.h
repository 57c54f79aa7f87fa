/* SPDX-License-Identifier: Apache-2.0 */
/* The file that QUIPU_RATES names: seconds per unit of effort of call paths, and seconds of MPI calls. */
#ifndef QUIPU_RATES_H
#define QUIPU_RATES_H

#include "tree.h"

namespace quipu {

constexpr double fs_per_second = 1e15;

/* Femtoseconds per unit of each weighted metric, and per visit. */
struct Rates {
    double fs[QUIPU_WEIGHTED + 1];
};

/* Processor time of an MPI operation in femtoseconds: per call, and per byte sent or received. */
struct Operation {
    double fs_per_call, fs_per_byte;
};

/* The hash of all names from the root identifies a call path; the hash of its name identifies a region. no_names is the
 * hash without names; with_name returns a hash that is extended by a name. */
constexpr uint64_t no_names = 14695981039346656037u;
uint64_t with_name(uint64_t path, const char *name, size_t length);

/* Reads the file. An error in it ends the process with a message. */
void read_rates(const char *path);
/* Returns the rates of a call path, or else of its region, or else of the program. */
const Rates *rates_of(uint64_t path, uint64_t region);
/* Returns the operation of a call path, or else the operation by name; null if there is none. */
const Operation *operation_of(uint64_t path, uint64_t operation);

} // namespace quipu

#endif

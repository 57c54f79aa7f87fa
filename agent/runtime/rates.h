/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds per unit of effort, of call paths, and what calls of MPI take: the file that QUIPU_RATES names. */
#ifndef QUIPU_RATES_H
#define QUIPU_RATES_H

#include "tree.h"

namespace quipu {

constexpr double fs_per_second = 1e15;

/* Femtoseconds per unit of each weighted metric, and per visit. */
struct Rates {
    double fs[QUIPU_WEIGHTED + 1];
};

/* Femtoseconds that an operation of MPI takes the processor for: per call, and per byte sent or received. */
struct Operation {
    double fs_per_call, fs_per_byte;
};

/* A call path is told by the hash of all names from the root, a region by that of its name. */
constexpr uint64_t no_names = 14695981039346656037u;
uint64_t with_name(uint64_t path, const char *name, size_t length);

/* Ends the process with a message if the file has a mistake. */
void read_rates(const char *path);
/* Of a call path, or of its region, or of the program. */
const Rates *rates_of(uint64_t path, uint64_t region);
/* Of a call path, or of its operation; null if there is none. */
const Operation *operation_of(uint64_t path, uint64_t operation);

} // namespace quipu

#endif

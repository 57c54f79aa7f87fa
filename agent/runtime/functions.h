/* Where in the code samples were taken: addresses, which readers find the functions of. */
#ifndef QUIPU_FUNCTIONS_H
#define QUIPU_FUNCTIONS_H

#include "profile.h"

namespace quipu {

/* Room for addresses, if QUIPU_SAMPLE_FUNCTIONS asks for them. Under the lock, when the profile is there. */
void make_function_table();
/* Adds to the address that a signal interrupted; async-signal-safe. outside: of all regions. values: one per metric of
 * the sampler. */
void count_function(const void *context, bool outside, const uint64_t *values);
/* Where programs and libraries are in memory. Under the lock. */
void describe_functions();

} // namespace quipu

#endif

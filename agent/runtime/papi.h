/* SPDX-License-Identifier: Apache-2.0 */
/* PAPI, which is loaded only on request. */
#ifndef QUIPU_PAPI_H
#define QUIPU_PAPI_H

#include "sample_options.h"

namespace quipu {

/* Begins to count the events of `options` on the calling thread, in a new event set of PAPI (`set`). Returns the number
 * of events, or the index of the event that cannot be counted, with the reason in `failure`. */
uint32_t papi_begin(const SampleOptions &options, int *set, char *failure, size_t size);
bool papi_read(int set, long long *values);
void papi_end(int set);

} // namespace quipu

#endif

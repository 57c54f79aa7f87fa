/* SPDX-License-Identifier: Apache-2.0 */
/* PAPI, which is loaded only if it is asked for. */
#ifndef QUIPU_PAPI_H
#define QUIPU_PAPI_H

#include "sample_options.h"

namespace quipu {

/* Counts the events of `options` on the calling thread. Returns how many of them there are, or the number of the one
 * that cannot be counted, with the reason in `failure`. */
uint32_t papi_begin(const SampleOptions &options, int *set, char *failure, size_t size);
bool papi_read(int set, long long *values);
void papi_end(int set);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The compressed details of regions, which the pass writes. */
#ifndef QUIPU_RUNTIME_DETAILS_H
#define QUIPU_RUNTIME_DETAILS_H

#include "quipu.h"

namespace quipu {

/* Reads the details of `region` into `whole`: a function with its scopes, or a scope alone. `details` of each scope in
 * the result is the number of descriptors from the descriptor of the function to the descriptor of the scope; 0: the
 * scope has no descriptor. Returns false if there is no memory or the details are damaged. Call under the lock. */
bool read_details(const quipu_region *region, quipu_region *whole);

} // namespace quipu

#endif

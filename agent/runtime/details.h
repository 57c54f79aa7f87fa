/* SPDX-License-Identifier: Apache-2.0 */
/* What the pass keeps compressed of a region. */
#ifndef QUIPU_RUNTIME_DETAILS_H
#define QUIPU_RUNTIME_DETAILS_H

#include "quipu.h"

namespace quipu {

/* Fills in `whole` from the details of `region`: of a function with its scopes, of a scope alone. `details` of a scope
 * says how far behind the function it is a region in memory; 0: it is none. False if there is no memory for that, or
 * they are damaged. Under the lock. */
bool read_details(const quipu_region *region, quipu_region *whole);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses the zlib data of the pass. */
#ifndef QUIPU_INFLATE_H
#define QUIPU_INFLATE_H

#include <stddef.h>
#include <stdint.h>

namespace quipu {

/* Decompresses `in`, and writes `out_size` bytes to `out`. Returns false if the data are damaged or have another size.
 * The checksum at the end is not compared. Format: RFC 1950, RFC 1951. */
bool inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* leb128.h: numbers of variable length, as the pass packs them (DWARF 5, section 7.6). */
#ifndef QUIPU_LEB128_H
#define QUIPU_LEB128_H

#include <stdint.h>

namespace quipu {

/* Reads a number and moves `next` behind it. */
inline uint64_t read_leb128(const uint8_t *&next, bool is_signed) {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *next++;
        value |= shift < 64 ? uint64_t{byte & 0x7fu} << shift : 0;
        shift += 7;
    } while (byte & 0x80);
    return is_signed && byte & 0x40 && shift < 64 ? value | ~uint64_t{0} << shift : value;
}

} // namespace quipu

#endif

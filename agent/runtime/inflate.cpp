// SPDX-License-Identifier: Apache-2.0
#include "inflate.h"

#include <string.h>

namespace quipu {
namespace {

constexpr unsigned longest_code = 15, literals = 288, distances = 32;

/* Reads bits of the data, lowest bit of each byte first. Behind the end, bits are 0 and `missed` is set. */
struct Bits {
    const uint8_t *next, *end;
    uint64_t held = 0;
    unsigned count = 0;
    unsigned behind = 0; /* buffered bits behind the end of the data */
    bool missed = false;

    /* wanted: at most 56 */
    void fill(unsigned wanted) {
        while (count < wanted) {
            if (next < end)
                held |= uint64_t{*next++} << count;
            else
                behind += 8;
            count += 8;
        }
    }
    void drop(unsigned bits) {
        held >>= bits;
        count -= bits;
        missed |= count < behind;
    }
    unsigned take(unsigned wanted) {
        fill(wanted);
        const auto value = static_cast<unsigned>(held & ((uint64_t{1} << wanted) - 1));
        drop(wanted);
        return value;
    }
};

/* A canonical Huffman code (RFC 1951, section 3.2.2): the number of codes of each length, and the symbols in order of
 * codes. */
struct Code {
    static constexpr unsigned quick_bits = 9;

    uint16_t count[longest_code + 1];
    uint16_t symbol[literals];
    uint16_t quick[1u << quick_bits]; /* for each value of the next bits: symbol << 4 | length; 0: the code is longer */

    void make(const uint8_t *lengths, unsigned symbols) {
        memset(count, 0, sizeof count);
        for (unsigned i = 0; i < symbols; i++)
            count[lengths[i]]++;
        count[0] = 0;
        uint16_t first[longest_code + 2] = {}, code[longest_code + 2] = {};
        for (unsigned length = 1; length <= longest_code; length++) {
            first[length + 1] = static_cast<uint16_t>(first[length] + count[length]);
            code[length + 1] = static_cast<uint16_t>((code[length] + count[length]) << 1);
        }
        memset(quick, 0, sizeof quick);
        for (unsigned i = 0; i < symbols; i++) {
            const unsigned length = lengths[i];
            if (length == 0)
                continue;
            symbol[first[length]++] = static_cast<uint16_t>(i);
            unsigned turned = 0; /* the code with reversed bits, because codes begin with their highest bit */
            for (unsigned bit = 0, rest = code[length]++; bit < length; bit++, rest >>= 1)
                turned = turned << 1 | (rest & 1);
            for (; length <= quick_bits && turned < 1u << quick_bits; turned += 1u << length)
                quick[turned] = static_cast<uint16_t>(i << 4 | length);
        }
    }

    /* Returns ~0u if there is no such code. */
    unsigned read(Bits &bits) const {
        bits.fill(longest_code);
        if (const unsigned found = quick[bits.held & ((1u << quick_bits) - 1)]) {
            bits.drop(found & 15);
            return found >> 4;
        }
        unsigned code = 0, first = 0, index = 0;
        for (unsigned length = 1; length <= longest_code; length++) {
            code |= bits.take(1);
            const unsigned here = count[length];
            if (code < first + here)
                return symbol[index + code - first];
            index += here;
            first = (first + here) << 1;
            code <<= 1;
        }
        return ~0u;
    }
};

struct Output {
    uint8_t *begin, *next, *end;
};

bool stored(Bits &bits, Output &out) {
    bits.drop(bits.count % 8);
    bits.next -= (bits.count - bits.behind) / 8; /* unread buffered bytes */
    bits.held = bits.count = bits.behind = 0;
    if (bits.missed || bits.end - bits.next < 4)
        return false;
    const size_t size = bits.next[0] | static_cast<size_t>(bits.next[1]) << 8;
    bits.next += 4;
    if (static_cast<size_t>(bits.end - bits.next) < size || static_cast<size_t>(out.end - out.next) < size)
        return false;
    memcpy(out.next, bits.next, size);
    out.next += size;
    bits.next += size;
    return true;
}

bool coded(Bits &bits, Output &out, const Code &literal, const Code &distance) {
    /* RFC 1951, section 3.2.5 */
    static const uint16_t length_base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                           31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    constexpr unsigned end_of_block = 256, first_length = 257, lengths = sizeof length_more, last_distance = 29;
    while (!bits.missed) {
        unsigned symbol = literal.read(bits);
        if (symbol == end_of_block)
            return true;
        if (symbol < end_of_block) {
            if (out.next == out.end)
                return false;
            *out.next++ = static_cast<uint8_t>(symbol);
            continue;
        }
        symbol -= first_length;
        if (symbol >= lengths)
            return false;
        size_t length = length_base[symbol] + bits.take(length_more[symbol]);
        const unsigned code = distance.read(bits);
        if (code > last_distance)
            return false;
        /* Bases of distances double with every second code. */
        const unsigned more = code < 2 ? 0 : code / 2 - 1;
        const size_t back = 1 + (code < 2 ? code : (2u + (code & 1)) << more) + bits.take(more);
        if (back > static_cast<size_t>(out.next - out.begin) || length > static_cast<size_t>(out.end - out.next))
            return false;
        for (; length; length--, out.next++)
            *out.next = out.next[-static_cast<ptrdiff_t>(back)];
    }
    return false;
}

void make_fixed(Code &literal, Code &distance) {
    uint8_t lengths[literals];
    for (unsigned i = 0; i < literals; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    literal.make(lengths, literals);
    memset(lengths, 5, distances);
    distance.make(lengths, distances);
}

/* RFC 1951, section 3.2.7 */
bool read_codes(Bits &bits, Code &literal, Code &distance) {
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const unsigned of_literals = bits.take(5) + 257, of_distances = bits.take(5) + 1, of_lengths = bits.take(4) + 4;
    if (of_literals > literals || of_distances > distances)
        return false;
    uint8_t lengths[literals + distances] = {};
    for (unsigned i = 0; i < of_lengths; i++)
        lengths[order[i]] = static_cast<uint8_t>(bits.take(3));
    literal.make(lengths, sizeof order);
    memset(lengths, 0, sizeof lengths);
    for (unsigned i = 0; i < of_literals + of_distances;) {
        const unsigned symbol = literal.read(bits);
        if (symbol > 18 || bits.missed)
            return false;
        if (symbol < 16) {
            lengths[i++] = static_cast<uint8_t>(symbol);
            continue;
        }
        if (symbol == 16 && i == 0)
            return false;
        const uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
        unsigned times = symbol == 16 ? 3 + bits.take(2) : symbol == 17 ? 3 + bits.take(3) : 11 + bits.take(7);
        if (i + times > of_literals + of_distances)
            return false;
        while (times--)
            lengths[i++] = repeated;
    }
    distance.make(lengths + of_literals, of_distances);
    literal.make(lengths, of_literals);
    return true;
}

} // namespace

bool inflate(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size) {
    constexpr size_t head = 2;
    if (in_size < head || (in[0] & 0xf) != 8 || (in[1] & 0x20))
        return false;
    Bits bits = {in + head, in + in_size};
    Output output = {out, out, out + out_size};
    Code literal, distance;
    for (bool last = false; !last;) {
        last = bits.take(1);
        const unsigned kind = bits.take(2);
        if (kind == 0) {
            if (!stored(bits, output))
                return false;
            continue;
        }
        if (kind == 1)
            make_fixed(literal, distance);
        else if (kind == 3 || !read_codes(bits, literal, distance))
            return false;
        if (bits.missed || !coded(bits, output, literal, distance))
            return false;
    }
    return output.next == output.end;
}

} // namespace quipu

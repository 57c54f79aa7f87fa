// SPDX-License-Identifier: Apache-2.0
/* The uncompressed details of a file contain one entry per function. First comes the offset of each entry (32 bits,
 * little-endian), then the entries. Numbers are ULEB128, texts end with 0.
 *
 *   entry: function, size and bytes of its rows of weights, number of scopes, the scopes
 *   function: name, display (empty if the same), file (empty if unknown), line
 *   scope: function and enum quipu_hook (not the first scope), parent, number of rows, size and bytes of the rows
 */
#include "details.h"
#include "inflate.h"
#include "leb128.h"
#include "tree.h"

#include <string.h>

namespace quipu {
namespace {

/* Decompressed details. Equal details, of several files or of a library that is loaded again, are stored once. The
 * checksum at the end identifies them. */
struct Known {
    uint32_t size, packed;
    uint64_t end;
    const uint8_t *text;
    Known *next;
};

Known *known;

const uint8_t *text_of(const quipu_details *details) {
    if (details->packed >= details->size)
        return details->data;
    uint64_t end = 0;
    const size_t tail = details->packed < sizeof end ? details->packed : sizeof end;
    memcpy(&end, details->data + details->packed - tail, tail);
    for (const Known *each = known; each; each = each->next)
        if (each->size == details->size && each->packed == details->packed && each->end == end)
            return each->text;
    auto *fresh = static_cast<Known *>(keep(sizeof(Known)));
    auto *text = fresh ? static_cast<uint8_t *>(reserve(details->size)) : nullptr;
    if (!text || !inflate(details->data, details->packed, text, details->size))
        return nullptr;
    *fresh = {details->size, details->packed, end, text, known};
    known = fresh;
    return text;
}

class Reader {
  public:
    explicit Reader(const uint8_t *next) : next(next) {}

    uint64_t number() { return read_leb128(next, false); }
    const char *text() {
        const char *found = reinterpret_cast<const char *>(next);
        next += strlen(found) + 1;
        return found;
    }
    const uint8_t *bytes() {
        const uint64_t size = number();
        const uint8_t *found = next;
        next += size;
        return size ? found : nullptr;
    }
    void function(quipu_region *region) {
        region->name = text();
        region->display = text();
        region->file = text();
        region->line = static_cast<uint32_t>(number());
        region->kind = QUIPU_FUNCTION;
        if (!*region->display)
            region->display = nullptr;
        if (!*region->file)
            region->file = nullptr;
    }

  private:
    const uint8_t *next;
};

} // namespace

bool read_details(const quipu_region *region, quipu_region *whole) {
    const auto *details =
        reinterpret_cast<const quipu_details *>(reinterpret_cast<const char *>(region) + region->details);
    const uint8_t *text = region->line < details->entries ? text_of(details) : nullptr;
    if (!text)
        return false;
    uint32_t begin;
    memcpy(&begin, text + sizeof begin * region->line, sizeof begin);
    Reader reader(text + begin);
    *whole = {};
    reader.function(whole);
    whole->weights = reader.bytes();
    const uint64_t count = reader.number();
    auto *scopes = count ? static_cast<quipu_scope *>(keep(sizeof(quipu_scope) * count)) : nullptr;
    if (count && !scopes)
        return false;
    int64_t hooked = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0) {
            reader.function(&scopes[i].region);
            scopes[i].region.hook = static_cast<uint32_t>(reader.number());
            scopes[i].region.details = scopes[i].region.hook == QUIPU_HOOKED ? ++hooked : 0;
        }
        scopes[i].parent = static_cast<uint32_t>(reader.number());
        scopes[i].count = static_cast<uint32_t>(reader.number());
        scopes[i].rows = reader.bytes();
    }
    if (region->scope_count) {
        if (region->scope_count >= count)
            return false;
        *whole = scopes[region->scope_count].region;
        whole->details = 0;
    } else {
        whole->kind |= QUIPU_PACKED;
        whole->counters = region->counters;
        whole->scopes = scopes;
        whole->scope_count = static_cast<uint32_t>(count);
    }
    whole->hook = region->hook;
    whole->hash = region->hash;
    return true;
}

} // namespace quipu

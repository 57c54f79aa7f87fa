/* SPDX-License-Identifier: Apache-2.0 */
/* Score-P filter files, with the same rules for the runtime and the compiler pass.
 *
 * Needs libc only. Grammar and matching follow Score-P 8.4. Rules apply in order, and the last matching rule decides.
 * By default all regions are included. A region is excluded if its file or its name is excluded. Patterns are
 * fnmatch(pattern, name, 0). The body of an OpenMP construct also has the names of its function. */
#ifndef QUIPU_FILTER_H
#define QUIPU_FILTER_H

#include <stddef.h>

namespace quipu {

struct FilterRule {
    enum Target { File, Name, LinkerName } target;
    bool include;
    const char *pattern; /* points into the parsed text */
};

struct Filter {
    FilterRule *rules = nullptr;
    size_t count = 0;
    char *text = nullptr;

    /* Returns whether a region is included. `display` is null if it equals `name`; `file` may be null. */
    bool includes(const char *file, const char *name, const char *display) const;
    /* Returns whether the last matching rule includes the name explicitly. */
    bool asks_for(const char *name, const char *display) const;
    void clear();
};

struct FilterError {
    unsigned line = 0;      /* 0: no line (the file cannot be read) */
    char message[256] = {}; /* readable text */
};

/* Parses `text` of `length` bytes. Returns false and fills `error` at the first mistake. */
bool parse_filter(const char *text, size_t length, Filter &filter, FilterError &error);
/* Reads and parses a file. */
bool read_filter(const char *path, Filter &filter, FilterError &error);

} // namespace quipu

#endif

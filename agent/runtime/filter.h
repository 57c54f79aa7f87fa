/* SPDX-License-Identifier: Apache-2.0 */
/* Score-P filter files, for the runtime and for the compiler pass: the same rules at both places.
 *
 * Needs libc only. Grammar and matching follow Score-P 8.4: rules apply in order, the last that matches holds,
 * everything starts included; a region is out if its file or its name is out; patterns are fnmatch(pattern, name, 0).
 * The body of an OpenMP construct has the names of its function, too.
 */
#ifndef QUIPU_FILTER_H
#define QUIPU_FILTER_H

#include <stddef.h>

namespace quipu {

struct FilterRule {
    enum Target { File, Name, LinkerName } target;
    bool include;
    const char *pattern; /* points into the text that was parsed */
};

struct Filter {
    FilterRule *rules = nullptr;
    size_t count = 0;
    char *text = nullptr;

    /* `display` may be null if it is the same as `name`; `file` may be null. */
    bool includes(const char *file, const char *name, const char *display) const;
    /* Whether the last rule that fits the name includes it: somebody wants to see this region. */
    bool asks_for(const char *name, const char *display) const;
    void clear();
};

struct FilterError {
    unsigned line = 0;      /* 0: not in a line (the file cannot be read) */
    char message[256] = {}; /* for a person */
};

/* Parse `text` of `length` bytes. Returns false and fills `error` at the first mistake. */
bool parse_filter(const char *text, size_t length, Filter &filter, FilterError &error);
/* Read and parse a file. */
bool read_filter(const char *path, Filter &filter, FilterError &error);

} // namespace quipu

#endif

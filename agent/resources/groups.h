/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of files. A group contains the regular files whose names differ only in numbers, or all files of one kind,
 * such as pipes or sockets. Each group is a region. */
#ifndef QUIPU_GROUPS_H
#define QUIPU_GROUPS_H

#include "quipu.h"

namespace quipu::files {

struct Group {
    Group *next;
    quipu_region region;
    bool regular; /* the group contains regular files of the program */
    char name[1]; /* "file:", followed by the text that region.display points to */
};

/* Stores the working folder and the folder of profiles. Runs once, before the other functions. */
void begin_groups();
/* Returns the group of an open descriptor. Returns null if its file is not counted (for example a profile or a folder),
 * if it is not open, or if there is no memory. Preserves errno. */
Group *group_of(int descriptor);
/* Forgets the group of a descriptor, which was closed or now refers to another file. */
void forget_group(int descriptor);

} // namespace quipu::files

#endif

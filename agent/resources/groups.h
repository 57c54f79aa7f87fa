/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of files: regular files whose names differ only in digits, and other files (pipes, sockets) by kind. */
#ifndef QUIPU_GROUPS_H
#define QUIPU_GROUPS_H

#include "quipu.h"

namespace quipu::files {

struct Group {
    Group *next;
    quipu_region region;
    bool regular; /* a regular file */
    char name[1]; /* "file:", followed by the text that `display` points to */
};

/* Stores the working folder and the folder of profiles; files of profiles are in no group. */
void begin_groups();
/* Returns the group of an open descriptor; null if it does not belong to the program. Preserves errno. */
Group *group_of(int descriptor);
/* Forgets the group of a descriptor that was closed or is another file now. */
void forget_group(int descriptor);

} // namespace quipu::files

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of files: those whose names differ in digits only, and what is no regular file, by kind. */
#ifndef QUIPU_GROUPS_H
#define QUIPU_GROUPS_H

#include "quipu.h"

namespace quipu::files {

struct Group {
    Group *next;
    quipu_region region;
    bool regular; /* a file that programs keep data in */
    char name[1]; /* "file:" and what `display` points to */
};

/* Remembers the working folder, and the folder of profiles, whose files are in no group. */
void begin_groups();
/* The group of an open descriptor; null: none of the program's. Keeps errno. */
Group *group_of(int descriptor);
/* The descriptor was closed, or is another file now. */
void forget_group(int descriptor);

} // namespace quipu::files

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of a job whose launcher Quipu did not start, and did not see. */
#ifndef QUIPU_OTHER_LAUNCHER_H
#define QUIPU_OTHER_LAUNCHER_H

#include <stddef.h>

namespace quipu {

/* launcher: the name of its process. rank, ranks: as the launcher says in the environment, null if it does not. */
struct OtherLauncher {
    char launcher[17];
    const char *rank, *ranks;
};

/* Find the launcher between quipu-exec (the process `first`) and this process. False if there is none. */
bool find_other_launcher(long first, OtherLauncher *found);

} // namespace quipu

#endif

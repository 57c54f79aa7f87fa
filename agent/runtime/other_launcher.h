/* SPDX-License-Identifier: Apache-2.0 */
/* Detects processes of a launcher that Quipu did not start. */
#ifndef QUIPU_OTHER_LAUNCHER_H
#define QUIPU_OTHER_LAUNCHER_H

#include <stddef.h>

namespace quipu {

/* launcher: the name of its process; rank, ranks: from environment variables of the launcher, or null. */
struct OtherLauncher {
    char launcher[17];
    const char *rank, *ranks;
};

/* Searches the parents of this process, up to quipu-exec (process id `first`), for such a launcher. Returns false if
 * there is none. */
bool find_other_launcher(long first, OtherLauncher *found);

} // namespace quipu

#endif

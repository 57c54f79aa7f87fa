/* SPDX-License-Identifier: Apache-2.0 */
/* Linker names without what they say of the MPI that their program was built for. */
#ifndef QUIPU_MPI_HANDLES_H
#define QUIPU_MPI_HANDLES_H

#include <stddef.h>

namespace quipu {

/* Writes the linker name as every MPI's build of the function has it (modeling/mpi_handles.py says more), and returns
 * its length. `alike` has room for `length` characters; a name is never longer than it was. */
size_t built_alike(const char *name, size_t length, char *alike);

} // namespace quipu

#endif

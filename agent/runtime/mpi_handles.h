/* SPDX-License-Identifier: Apache-2.0 */
/* Linker names without the parts that depend on the MPI library. */
#ifndef QUIPU_MPI_HANDLES_H
#define QUIPU_MPI_HANDLES_H

#include <stddef.h>

namespace quipu {

/* Writes `name` in the form that is common to all MPI libraries (modeling/mpi_handles.py), and returns the length of
 * this form. `alike` has space for `length` characters; the result is never longer. */
size_t built_alike(const char *name, size_t length, char *alike);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- mpi_module.h - Fortran modules of MPI that flang can read --------===//
#ifndef QUIPU_MPI_MODULE_H
#define QUIPU_MPI_MODULE_H

#include <string>
#include <vector>

namespace quipu {

/// Makes `use mpi` and `use mpi_f08` work with an MPI whose modules were written by gfortran, which flang cannot read:
/// puts a folder with modules of its own before the folder that has gfortran's in `command`, the command line of a
/// flang.
///
/// `mpi` has what mpif.h declares, and the procedures of mpi.h beside it as external ones; `mpi_f08` see mpi_f08.h.
/// They are made by the compiler on the first call, and kept in ${XDG_CACHE_HOME:-~/.cache}/quipu/fortran, for each
/// compiler, mpif.h and version of this program. Nothing is changed if the folders have no mpi.mod or one that flang
/// can read. A line on stderr says why there is no module, where a source names it.
void addMpiModule(std::vector<std::string> &command);

/// Adds the procedures of all such modules `mpi_f08` to the command line of a linker, which takes those that it needs.
void linkMpiModules(std::vector<std::string> &command);

} // namespace quipu

#endif

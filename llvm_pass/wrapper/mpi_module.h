/* SPDX-License-Identifier: Apache-2.0 */
//===- mpi_module.h - Fortran modules of MPI that flang can read --------===//
#ifndef QUIPU_MPI_MODULE_H
#define QUIPU_MPI_MODULE_H

#include <string>
#include <vector>

namespace quipu {

/// Makes `use mpi` and `use mpi_f08` work with an MPI whose modules were written by gfortran, which flang cannot read.
/// Inserts a folder with other modules into `command` (the command line of flang), before the folder with the modules
/// of gfortran.
///
/// The module `mpi` has the declarations of mpif.h, and the procedures of mpi.h as external procedures. For `mpi_f08`
/// see mpi_f08.h. The modules are compiled at the first call, and stored in ${XDG_CACHE_HOME:-~/.cache}/quipu/fortran
/// for each compiler, mpif.h and version of this program. The command line is not changed if the folders contain no
/// mpi.mod, or an mpi.mod that flang can read. If a source uses a module that cannot be made, the function prints a
/// line with the reason on stderr.
void addMpiModule(std::vector<std::string> &command);

/// Adds the archives of all compiled modules `mpi_f08` to the command line of a linker. The linker takes only the
/// procedures that the program calls.
void linkMpiModules(std::vector<std::string> &command);

} // namespace quipu

#endif

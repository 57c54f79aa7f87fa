//===- mpi_module.h - a Fortran module `mpi` that flang can read ----------===//
#ifndef QUIPU_MPI_MODULE_H
#define QUIPU_MPI_MODULE_H

#include <string>
#include <vector>

namespace quipu {

/// Makes `use mpi` work with an MPI whose modules were written by gfortran, which flang cannot read: puts a folder with
/// a module `mpi` of its own before the folder that has gfortran's in `command`, the command line of a flang.
///
/// The module has what mpif.h declares, and the procedures of mpi.h beside it as external ones. It is made by the
/// compiler on the first call, and kept in ${XDG_CACHE_HOME:-~/.cache}/quipu/fortran, one for each compiler and mpif.h.
/// Nothing is changed if the folders have no mpi.mod or one that flang can read. A line on stderr says why there is no
/// module.
void addMpiModule(std::vector<std::string> &command);

} // namespace quipu

#endif

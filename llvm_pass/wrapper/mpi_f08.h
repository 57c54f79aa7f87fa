/* SPDX-License-Identifier: Apache-2.0 */
//===- mpi_f08.h - source of a Fortran module `mpi_f08` -------------------===//
#ifndef QUIPU_MPI_F08_H
#define QUIPU_MPI_F08_H

#include <set>
#include <string>

namespace quipu {

/// Returns a name in lower case, as in symbols and modules, because Fortran does not distinguish case.
std::string lower(std::string text);

/// Returns the source of a module `mpi_f08` for an MPI whose own module was written by another compiler.
///
/// Handles are structures of one INTEGER. The elements of a status are at the positions that mpif.h defines. Each
/// procedure calls the procedure of mpif.h, whose symbol is the same for all Fortran compilers, and passes the
/// references to its arguments unchanged. known: the names in mpif.h and its includes, in lower case. key: a part of
/// all symbols, so that modules for several MPIs can be linked into one program.
std::string f08Source(const std::set<std::string> &known, const std::string &key);

/// Returns `code`, the LLVM IR of this module, with weak declarations of the procedures that the MPI may not have.
std::string withWeakProcedures(std::string code);

} // namespace quipu

#endif

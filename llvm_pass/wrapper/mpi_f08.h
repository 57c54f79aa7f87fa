/* SPDX-License-Identifier: Apache-2.0 */
//===- mpi_f08.h - source of a Fortran module `mpi_f08` -------------------===//
#ifndef QUIPU_MPI_F08_H
#define QUIPU_MPI_F08_H

#include <set>
#include <string>

namespace quipu {

/// A name as symbols and modules have it: Fortran does not distinguish small and large letters.
std::string lower(std::string text);

/// The text of a module `mpi_f08` for an MPI whose own was written by another compiler.
///
/// Handles are structures of one INTEGER, a status has its places where mpif.h says, and each procedure calls that of
/// mpif.h, whose symbols all Fortran compilers share: what comes in by reference goes on as it is. known: the names in
/// mpif.h and what it includes, in small letters. key: a part of all symbols, so that modules for several MPIs may be
/// linked side by side.
std::string f08Source(const std::set<std::string> &known, const std::string &key);

/// LLVM IR of that module in which procedures that the MPI may lack are weak.
std::string withWeakProcedures(std::string code);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- toolchain.h - the compiler that a wrapper calls --------------------===//
#ifndef QUIPU_TOOLCHAIN_H
#define QUIPU_TOOLCHAIN_H

#include <string>
#include <vector>

namespace quipu {

enum class Language { C, Cxx, Fortran };

enum class Mpi {
    None,
    Installed, ///< runs the compiler wrapper of the MPI, which calls quipu-cc or a similar wrapper
    Simulated, ///< SimGrid SMPI: its compiler wrapper has a fixed compiler, so only its options are used
};

struct Wrapper {
    Language language;
    Mpi mpi;
};

/// The options that a compiler wrapper adds to the given arguments.
struct Additions {
    std::vector<std::string> compile; ///< before the arguments, always
    std::vector<std::string> link;    ///< after the arguments, if the linker runs
};

/// Reads the language and the kind of the wrapper from the name of the called program. Returns false for other names.
bool wrapperOf(const std::string &name, Wrapper &wrapper);

/// Returns the folder of the running program, with links resolved.
std::string programFolder();

/// Returns the compiler to call: QUIPU_CC, QUIPU_CXX or QUIPU_FC (default: the compiler that Quipu was built for); for
/// MPI wrappers QUIPU_MPICC, QUIPU_MPICXX or QUIPU_MPIFC (default: mpicc, mpicxx, mpifort).
std::string compilerOf(const Wrapper &wrapper);

/// Returns an error message if a wrapper would call itself without end: its compiler is, or calls, a wrapper of the
/// same kind. (A variable may name a wrapper, or a link in PATH may have the name of the compiler.) Otherwise returns
/// an empty text, and marks in the environment (QUIPU_WRAPPERS) that a wrapper of this kind calls a compiler.
std::string wayBack(const std::string &name, const Wrapper &wrapper);

/// Reads the options that the compiler wrapper of SMPI adds (smpicc, smpicxx, smpif90, or the value of QUIPU_SMPICC,
/// QUIPU_SMPICXX, QUIPU_SMPIF90). Returns false if the wrapper cannot be run.
bool simulatedMpi(Language language, Additions &additions);
/// Returns the name of the compiler wrapper of SMPI.
std::string simulatedMpiCompiler(Language language);

/// Converts an argument for gfortran to an argument for flang. Returns an empty text if flang does not support the
/// option and the option does not affect the results of the program.
std::string forFlang(const std::string &argument);

/// Returns the folder with plugin and runtime: ../lib/quipu, relative to the folder of the wrappers.
std::string libraryFolder();

/// Makes the compiler wrapper of the MPI (Open MPI, MPICH and derived MPIs) call the wrapper without MPI (quipu-cc).
void pointMpiAtWrapper(Language language);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- toolchain.h - which compiler a wrapper stands for ------------------===//
#ifndef QUIPU_TOOLCHAIN_H
#define QUIPU_TOOLCHAIN_H

#include <string>
#include <vector>

namespace quipu {

enum class Language { C, Cxx, Fortran };

enum class Mpi {
    None,
    Installed, ///< runs the compiler wrapper of the MPI, which calls our plain wrapper
    Simulated, ///< SimGrid SMPI: its compiler wrapper names one compiler for ever, so it is asked for its options
};

struct Wrapper {
    Language language;
    Mpi mpi;
};

/// What a compiler wrapper puts around the arguments that it is given.
struct Additions {
    std::vector<std::string> compile; ///< before them, always
    std::vector<std::string> link;    ///< after them, when the linker runs
};

/// What the name that the program was called by stands for. False if it is none of ours.
bool wrapperOf(const std::string &name, Wrapper &wrapper);

/// Folder of the running program, links resolved.
std::string programFolder();

/// The compiler to call: QUIPU_CC, QUIPU_CXX or QUIPU_FC, or the one that Quipu was built for; for MPI wrappers
/// QUIPU_MPICC, QUIPU_MPICXX or QUIPU_MPIFC, or mpicc, mpicxx, mpifort.
std::string compilerOf(const Wrapper &wrapper);

/// Notes for the compiler that is called that a wrapper of this kind calls it. Returns why it must not be called, as it
/// leads back to a wrapper of the same kind (a variable that names a wrapper, a link with the compiler's name in PATH);
/// empty if it may be.
std::string wayBack(const std::string &name, const Wrapper &wrapper);

/// What smpicc or smpicxx adds (QUIPU_SMPICC, QUIPU_SMPICXX name others). False if it cannot be run.
bool simulatedMpi(Language language, Additions &additions);
/// The name of that compiler wrapper.
std::string simulatedMpiCompiler(Language language);

/// Returns what flang gets for an argument of a build that was written for gfortran; empty if it gets nothing, because
/// flang does not know the option and the option decides nothing about what the program computes.
std::string forFlang(const std::string &argument);

/// Returns the folder with plugin and runtime: ../lib/quipu, relative to the folder of the wrappers.
std::string libraryFolder();

/// Makes the MPI's compiler wrapper (Open MPI, MPICH and its descendants) call our plain wrapper.
void pointMpiAtWrapper(Language language);

} // namespace quipu

#endif

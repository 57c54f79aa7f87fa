//===- toolchain.h - which compiler a wrapper stands for ------------------===//
#ifndef QUIPU_TOOLCHAIN_H
#define QUIPU_TOOLCHAIN_H

#include <string>

namespace quipu {

enum class Language { C, Cxx, Fortran };

struct Wrapper {
    Language language;
    bool mpi; ///< runs the compiler wrapper of the MPI, which calls our plain wrapper
};

/// What the name that the program was called by stands for. False if it is none of ours.
bool wrapperOf(const std::string &name, Wrapper &wrapper);

/// Folder of the running program, links resolved.
std::string programFolder();

/// The compiler to call: QUIPU_CC, QUIPU_CXX or QUIPU_FC, or the one that Quipu was built for; for MPI wrappers
/// QUIPU_MPICC, QUIPU_MPICXX or QUIPU_MPIFC, or mpicc, mpicxx, mpifort.
std::string compilerOf(const Wrapper &wrapper);

/// The folder with plugin and runtime: ../lib/quipu beside the wrappers.
std::string libraryFolder();

/// Tells the MPI's compiler wrapper (Open MPI, MPICH and its descendants) to call our plain wrapper.
void pointMpiAtWrapper(Language language);

} // namespace quipu

#endif

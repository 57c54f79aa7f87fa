/* SPDX-License-Identifier: Apache-2.0 */
//===- names.h - functions as their users know them ------------------------===//
#ifndef QUIPU_NAMES_H
#define QUIPU_NAMES_H

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace llvm {
class DISubprogram;
class Function;
class Module;
} // namespace llvm

namespace quipu {

/// Whose code a function is, as far as C++'s names and linkage say (libraries.h).
enum class Owner {
    Program,
    Library,       ///< a header of a library, in a namespace for its users
    LibraryInside, ///< a header, in a namespace for a library's implementation
};

/// What a function is known by wherever its code is.
struct Identity {
    std::string Name;    ///< linker name
    std::string Display; ///< as the user wrote it
    std::string File;
    unsigned Line = 0;            ///< 0: not known
    std::optional<bool> MuchWork; ///< whether a visit is worth being timed (worth.h), if that was found out
    Owner By = Owner::Program;
};

Identity identify(const llvm::Function &F);

/// Whether flang made the module.
bool isFortran(const llvm::Module &M);

/// The line where the function begins in its source, 0 if it is not known.
unsigned firstLine(const llvm::Function &F);

/// The name as the user wrote it: demangled in C++, module::procedure and host::procedure in Fortran; the body of an
/// OpenMP construct is named after its function and line.
std::string displayName(const llvm::Function &F);
/// The same of a function that may have been inlined.
std::string displayName(const llvm::DISubprogram &F);

/// What the linker knows the function by, without the end that marks its counted version (versions.h).
llvm::StringRef linkerName(const llvm::Function &F);
/// What the linker would know the function by, as far as debug information says.
llvm::StringRef linkerName(const llvm::DISubprogram &F);

} // namespace quipu

#endif

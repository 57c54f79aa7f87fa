/* SPDX-License-Identifier: Apache-2.0 */
//===- names.h - linker names and readable names of functions --------------===//
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

/// The owner of a function, derived from the C++ name and the linkage (libraries.h).
enum class Owner {
    Program,
    Library,       ///< header of a library, public namespace
    LibraryInside, ///< header of a library, implementation namespace
};

/// The identity of a function, independent of where it was inlined.
struct Identity {
    std::string Name;    ///< linker name
    std::string Display; ///< readable name, as in the source
    std::string File;
    unsigned Line = 0;            ///< 0: unknown
    std::optional<bool> MuchWork; ///< whether a visit is worth being timed (worth.h); empty: unknown
    Owner By = Owner::Program;
};

Identity identify(const llvm::Function &F);

/// Returns whether flang compiled the module.
bool isFortran(const llvm::Module &M);

/// Returns the first source line of the function; 0 if it is unknown.
unsigned firstLine(const llvm::Function &F);

/// Returns the name in the source: demangled in C++, module::procedure and host::procedure in Fortran. The body of an
/// OpenMP construct is named after its function and line.
std::string displayName(const llvm::Function &F);
/// Returns the name in the source of a function that may have been inlined.
std::string displayName(const llvm::DISubprogram &F);

/// Returns the readable name that readers of facts derive from a linker name (agent/source/readable.py). The facts
/// contain a readable name only if it differs from this name.
std::string readableName(llvm::StringRef Name);

/// Returns the linker name without the suffix of counted versions (versions.h).
llvm::StringRef linkerName(const llvm::Function &F);
/// Returns the linker name from debug information.
llvm::StringRef linkerName(const llvm::DISubprogram &F);

} // namespace quipu

#endif

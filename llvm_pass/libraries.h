/* SPDX-License-Identifier: Apache-2.0 */
//===- libraries.h - whose functions these are -------------------------------===//
#ifndef QUIPU_LIBRARIES_H
#define QUIPU_LIBRARIES_H

#include "names.h"

#include "llvm/ADT/StringSet.h"

namespace quipu {

/// The libraries whose headers a module was compiled with, as linker names show them: debug information, optimization
/// and the folders of headers do not matter.
///
/// A library of headers is an outermost namespace that has an implementation namespace (`Impl`, `detail`, ...) with
/// functions here that any file may define (inline, templates), and none that this file alone defines.
class Libraries {
  public:
    explicit Libraries(const llvm::Module &M);

    /// Whose a function is. What only one file can have (no inline function and no template) is the program's.
    Owner ownerOf(const llvm::Function &F) const;
    /// Whether this is a function of a library of headers, or of the C++ library.
    bool isOfLibrary(const llvm::Function &F) const;
    /// Whether a function that is not of its library calls it, directly.
    bool isCalledFromOutside(const llvm::Function &F) const;

  private:
    /// Whether one of the namespaces around the function is such that a library keeps its implementation in.
    bool isInner(llvm::StringRef Name) const;

    llvm::StringSet<> Classes; ///< that look like namespaces, by their full names
    llvm::StringSet<> Roots;   ///< outermost namespaces of libraries
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- libraries.h - functions of the program and of header libraries --------===//
#ifndef QUIPU_LIBRARIES_H
#define QUIPU_LIBRARIES_H

#include "names.h"

#include "llvm/ADT/StringSet.h"

namespace quipu {

/// The header libraries of a module, found from linker names. The result does not depend on debug information,
/// optimization, or the folders of headers.
///
/// A header library is an outermost namespace that contains an implementation namespace (`Impl`, `detail`, ...). All
/// functions of this namespace that this file defines are inline functions or templates, which any file may define.
class Libraries {
  public:
    explicit Libraries(const llvm::Module &M);

    /// Returns the owner of a function. A function that only one file can define (not inline, no template) belongs to
    /// the program.
    Owner ownerOf(const llvm::Function &F) const;
    /// Returns whether a function belongs to a header library or to the C++ library.
    bool isOfLibrary(const llvm::Function &F) const;
    /// Returns whether a function outside of the library of `F` calls `F` directly.
    bool isCalledFromOutside(const llvm::Function &F) const;

  private:
    /// Returns whether one of the enclosing namespaces is an implementation namespace.
    bool isInner(llvm::StringRef Name) const;

    llvm::StringSet<> Classes; ///< full names of classes, which look like namespaces in linker names
    llvm::StringSet<> Roots;   ///< outermost namespaces of libraries
};

/// Returns whether a function is in a namespace of the C++ library.
bool isOfCxxLibrary(llvm::StringRef Name);

} // namespace quipu

#endif

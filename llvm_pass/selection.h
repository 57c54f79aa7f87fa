/* SPDX-License-Identifier: Apache-2.0 */
//===- selection.h - which functions count, and which are call paths --------===//
#ifndef QUIPU_SELECTION_H
#define QUIPU_SELECTION_H

#include "filter.h"
#include "names.h"

namespace quipu {

/// Says in the module that a function was decided on: it is counted, or stays as it is, for good.
void markCounted(llvm::Function &F);

/// Whether that was done, in an earlier compilation: this one is of bitcode that a wrapper wrote.
bool isCounted(const llvm::Function &F);

/// Keeps the inliner from mixing functions that are counted with such that will be, which modules linked together may
/// have: what is inlined before counting has to be without counters. Returns whether there are counted ones.
bool keepCountedApart(llvm::Module &M);

/// Whether code of this function may be counted, and is not yet.
bool isCountable(const llvm::Function &F);

/// The filter that the compiler wrapper passes on, if there is one. Returns what is wrong with it, or nothing.
std::string readSelection(Filter &Selection);

/// Whether this is of the C++ library (namespaces std and __gnu_cxx).
bool isLibrary(const Identity &Function);

/// Whether the work of a function is that of its callers: what a filter excludes, what no source has, and inner parts
/// of libraries: of the C++ library all but free functions of namespace std that do much work by themselves
/// (algorithms), of others (libraries.h) what does little, destroys, copies or moves an object, and functions in
/// namespaces for the implementation that only the library calls. What the filter asks for is none of them.
bool isLeftOut(const Identity &Function, const Filter &Selection);

/// Whether a function that may have been inlined is a separate call path by the filter and by the language.
bool isShown(const Identity &Function, const Filter &Selection);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- selection.h - the counted functions, and those that are call paths ---===//
#ifndef QUIPU_SELECTION_H
#define QUIPU_SELECTION_H

#include "filter.h"
#include "names.h"

namespace quipu {

/// Marks a function as handled: the pass has inserted counters, or never will.
void markCounted(llvm::Function &F);

/// Returns whether markCounted() was called for the function, also in an earlier compilation that wrote the bitcode of
/// this module.
bool isCounted(const llvm::Function &F);

/// Prevents inlining between counted and uncounted functions. Linked modules may contain both. If counted code were
/// inlined into a function that is counted later, its counters would count as work of this function. Returns whether
/// there are counted functions.
bool keepCountedApart(llvm::Module &M);

/// Returns whether the function may be counted and is not counted yet.
bool isCountable(const llvm::Function &F);

/// Reads the filter that the compiler wrapper passes on, if there is one. Returns an error message, or an empty string.
std::string readSelection(Filter &Selection);

/// Returns whether a function belongs to the C++ library (namespaces std and __gnu_cxx).
bool isLibrary(const Identity &Function);

/// Returns whether the work of a function belongs to its callers. This holds for
///
/// - functions that a filter excludes, and functions that the compiler generated;
/// - functions of the C++ library, except free functions of namespace std with much work (algorithms);
/// - functions of other libraries (libraries.h): functions with little work, functions that destroy, copy or move an
///   object, and functions in implementation namespaces that only the library calls.
///
/// Functions that the filter includes are never left out.
bool isLeftOut(const Identity &Function, const Filter &Selection);

/// Returns whether a function, inlined or not, may be a separate call path: it is not left out (isLeftOut), and clang
/// did not generate it for an OpenMP task or under a name that begins with .omp_.
bool isShown(const Identity &Function, const Filter &Selection);

} // namespace quipu

#endif

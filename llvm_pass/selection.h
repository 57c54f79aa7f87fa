//===- selection.h - which functions count, and are call paths of their own --===//
#ifndef QUIPU_SELECTION_H
#define QUIPU_SELECTION_H

#include "filter.h"
#include "names.h"

namespace quipu {

/// Whether code of this function may be counted at all.
bool isCountable(const llvm::Function &F);

/// The filter that the compiler wrapper passes on, if there is one. Returns what is wrong with it, or nothing.
std::string readSelection(Filter &Selection);

/// Whether this is of the C++ library (namespaces std and __gnu_cxx).
bool isLibrary(const Identity &Function);

/// Whether the work of a function is that of its callers: what a filter excludes, what no source has, and inner parts
/// of the C++ library, which are all but free functions of namespace std that do much work by themselves (algorithms),
/// and what the filter asks for.
bool isLeftOut(const Identity &Function, const Filter &Selection);

/// Whether a function that may have been inlined is a call path of its own, as far as filter and language say.
bool isShown(const Identity &Function, const Filter &Selection);

} // namespace quipu

#endif

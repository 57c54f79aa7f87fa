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

/// Whether a function that may have been inlined is a call path of its own, as far as filter and language say.
bool isShown(const Identity &Function, const Filter &Selection);

} // namespace quipu

#endif

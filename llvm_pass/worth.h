//===- worth.h - which functions are worth being timed -----------------------===//
#ifndef QUIPU_WORTH_H
#define QUIPU_WORTH_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/PassManager.h"

namespace quipu {

/// Functions whose visits do so much work, as far as the code before optimization shows, that two time stamps are
/// little of it: those with a loop that may run long, with a call of a function of another file, or with a call of
/// such functions. Only those that hooks can be placed in before optimization, and that may be inlined at all.
llvm::SmallPtrSet<llvm::Function *, 32> worthTiming(llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- worth.h - functions with enough work for time stamps ------------------===//
#ifndef QUIPU_WORTH_H
#define QUIPU_WORTH_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class TargetLibraryInfo;
} // namespace llvm

namespace quipu {

struct Worth {
    bool IsMuch;      ///< a visit does much work compared with two time stamps
    bool TakesPlaces; ///< IsMuch, it may be inlined, and placeholders of hooks (marks.h) can be inserted before that
};

/// Estimates the work of each function from the code before optimization, so that the result is the same at every
/// optimization level. Much work is a loop that may run long, a recursion, a call of a function of another file, or
/// many instructions including callees.
llvm::DenseMap<llvm::Function *, Worth> worthTiming(llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

/// Returns whether this is the body of an OpenMP construct.
bool isParallelRegion(const llvm::Function &F);

/// Returns whether a call of `F` may run a function of another file that does not belong to the compiler's libraries:
/// `F` is such a function, or a library function that calls one (qsort, creation of threads).
bool isElsewhere(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- worth.h - which functions are worth being timed -----------------------===//
#ifndef QUIPU_WORTH_H
#define QUIPU_WORTH_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class TargetLibraryInfo;
} // namespace llvm

namespace quipu {

struct Worth {
    bool IsMuch;      ///< a visit does so much work that two time stamps are little of it
    bool TakesPlaces; ///< and places of hooks can be put into it before optimization, because it may be inlined
};

/// What the code before optimization shows, so that it is the same at every level: much work is a loop that may run
/// long, recursion, a call of a function of another file, or simply many instructions, also in functions that it calls.
llvm::DenseMap<llvm::Function *, Worth> worthTiming(llvm::Module &M, llvm::FunctionAnalysisManager &FAM);

/// Whether this is the body of an OpenMP construct.
bool isParallelRegion(const llvm::Function &F);

/// Whether this is a function of another file that is not of the compiler's libraries, or calls one.
bool isElsewhere(const llvm::Function &F, const llvm::TargetLibraryInfo &TLI);

} // namespace quipu

#endif

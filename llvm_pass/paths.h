/* SPDX-License-Identifier: Apache-2.0 */
//===- paths.h - counters of paths, at the edges that decide the path ------===//
#ifndef QUIPU_PATHS_H
#define QUIPU_PATHS_H

#include "llvm/IR/PassManager.h"

namespace llvm {
class LLVMContext;
class MDNode;
class Value;
} // namespace llvm

namespace quipu {

/// Returns the alias scope of counters, in a new domain.
llvm::MDNode *counterScope(llvm::LLVMContext &Context);

/// Returns whether the value is a constant on each edge to the place where it is used, so that PathEdgesPass adds to a
/// counter with a constant index.
bool isKnownOnEdges(const llvm::Value *Number);

/// Moves the addition to the counter of a path from the end of the function to the edges that decide the path. There
/// the number of the path is a constant: the addition is one instruction. At the end it is two or three: the number
/// goes into a register, sometimes with a jump. Runs at the end of the pipeline, because simplification of the control
/// flow joins equal additions again.
class PathEdgesPass : public llvm::PassInfoMixin<PathEdgesPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

} // namespace quipu

#endif

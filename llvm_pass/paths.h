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

/// Creates an alias scope for the counters of a function, in a new domain.
llvm::MDNode *counterScope(llvm::LLVMContext &Context);

/// Returns whether the edges of a path alone determine its number: the value is a constant, or a PHI node of constants
/// and of other such PHI nodes. PathEdgesPass can then add to a counter with a constant index.
bool isKnownOnEdges(const llvm::Value *Number);

/// Moves the addition to the counter of a path from the end of the function to the edges that decide the path. On these
/// edges, the number of the path is a constant, and the addition takes one instruction. At the end of the function, it
/// takes two or three: the number must be loaded into a register, sometimes with a jump. The pass runs at the end of
/// the pipeline, because SimplifyCFG would merge the additions again.
class PathEdgesPass : public llvm::PassInfoMixin<PathEdgesPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);
};

} // namespace quipu

#endif

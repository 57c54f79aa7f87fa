/* SPDX-License-Identifier: Apache-2.0 */
//===- callgraph.h - the call graph of the source, before functions are inlined ===//
#ifndef QUIPU_CALLGRAPH_H
#define QUIPU_CALLGRAPH_H

#include "llvm/IR/PassManager.h"

namespace quipu {

/// Writes a description of every function of a module as lines of JSON for the section .quipu.facts: statements, loops,
/// calls with their loop depth, functions whose address is taken, and virtual tables. The pass does not change the
/// code. It runs first, before inlining.
class CallGraphPass : public llvm::PassInfoMixin<CallGraphPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    static bool isRequired() { return true; }
};

} // namespace quipu

#endif

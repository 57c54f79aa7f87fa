/* SPDX-License-Identifier: Apache-2.0 */
//===- callgraph.h - the call graph of the source, before functions are inlined ===//
#ifndef QUIPU_CALLGRAPH_H
#define QUIPU_CALLGRAPH_H

#include "llvm/IR/PassManager.h"

namespace quipu {

/// Describes every function of a module as the front end made it: statements, loops, calls with their loop depth,
/// functions whose address is taken, tables of virtual functions. Lines of JSON, compressed, in the section
/// .quipu.callgraph; the code stays as it is. Runs first, so that nothing has been inlined.
class CallGraphPass : public llvm::PassInfoMixin<CallGraphPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    static bool isRequired() { return true; }
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- instrument.h - the pass: regions, blocks, descriptors ---------------===//
#ifndef QUIPU_INSTRUMENT_H
#define QUIPU_INSTRUMENT_H

#include "llvm/IR/PassManager.h"

namespace quipu {

/// Counts executed basic blocks in every function of a module and surrounds the selected ones with quipu_enter and
/// quipu_exit. Runs after inlining and simplification, before vectorization; a module whose coroutines are still whole
/// there, as without optimization, waits for the second time, at the end.
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
  public:
    enum When { Early, Late };
    explicit InstrumentPass(When Now = Early) : Now(Now) {}
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    /// Runs for functions that ask for no optimization, too.
    static bool isRequired() { return true; }

  private:
    llvm::PreservedAnalyses instrument(llvm::Module &M, llvm::ModuleAnalysisManager &AM);

    When Now;
};

} // namespace quipu

#endif

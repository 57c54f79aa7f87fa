/* SPDX-License-Identifier: Apache-2.0 */
//===- instrument.h - the pass: regions, blocks, descriptors ---------------===//
#ifndef QUIPU_INSTRUMENT_H
#define QUIPU_INSTRUMENT_H

#include "llvm/IR/PassManager.h"

namespace quipu {

/// Inserts counters of basic blocks into every function of a module, and quipu_enter and quipu_exit into the selected
/// functions. The pass runs after inlining and simplification, before vectorization. If the module contains a coroutine
/// that is not split yet (at -O0), the pass runs at the end of the pipeline instead.
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
  public:
    enum When { Early, Late };
    explicit InstrumentPass(When Now = Early) : Now(Now) {}
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    /// Makes the pass run for functions with the attribute optnone, too.
    static bool isRequired() { return true; }

  private:
    llvm::PreservedAnalyses instrument(llvm::Module &M, llvm::ModuleAnalysisManager &AM);

    When Now;
};

} // namespace quipu

#endif

//===- counting.h - how many basic blocks a function executes -------------===//
#ifndef QUIPU_COUNTING_H
#define QUIPU_COUNTING_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ValueHandle.h"

namespace llvm {
class AllocaInst;
class Function;
class Instruction;
class Loop;
class ScalarEvolution;
class TargetTransformInfo;
class Value;
} // namespace llvm

namespace quipu {

/// The reference that the optimized counting is tested against: one call of quipu_blocks(1) in every block.
void countNaively(llvm::Function &F, llvm::FunctionCallee Blocks);

/// Blocks executed so far by one activation of a function, held in a local variable that becomes a register.
class BlockCounter {
  public:
    /// Adds one increment to every block of `F`. `InMemory` keeps the variable in memory (functions that call
    /// setjmp: longjmp would roll a register back).
    BlockCounter(llvm::Function &F, bool InMemory);

    /// A load of the count at `Where`, in front of that instruction.
    llvm::Value *read(llvm::Instruction *Where);

    /// Counts from zero again, from `Where` on: what was read has been handed over.
    void restart(llvm::Instruction *Where);

    /// Turns the variable into registers and replaces counts of loops by closed forms where the trip count is
    /// known. Call once, after the last read().
    void finish(llvm::FunctionAnalysisManager &FAM);

  private:
    llvm::SmallPtrSet<llvm::Value *, 32> registers() const;
    void closeLoop(llvm::Loop &L, const llvm::SmallPtrSetImpl<llvm::Value *> &Web, llvm::ScalarEvolution &SE,
                   const llvm::TargetTransformInfo &TTI);

    llvm::Function &F;
    llvm::AllocaInst *Slot;
    bool InMemory;
    llvm::SmallVector<llvm::WeakTrackingVH, 32> Additions;
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- counting.h - how much work a function does --------------------------===//
#ifndef QUIPU_COUNTING_H
#define QUIPU_COUNTING_H

#include "carried.h"
#include "classes.h"
#include "flow.h"
#include "scopes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"
#include "llvm/IR/ValueHandle.h"

namespace llvm {
class AllocaInst;
class Function;
class GlobalVariable;
class Loop;
class MDNode;
class Value;
} // namespace llvm

namespace quipu {

/// The reference that counters are tested against: quipu_effort() in every block, for each scope that does something
/// there, and quipu_moved() at every transfer whose length is not constant. The function is `Region`.
void countNaively(llvm::Function &F, const Scopes &Within, llvm::GlobalVariable *Region, llvm::FunctionCallee Effort,
                  llvm::FunctionCallee Moved);

/// Whether a function may have a counter for each way through it.
enum class PathUse {
    Never,
    Usually,
    IfManyBranches ///< its visits are known elsewhere, so that a counter of one branch is enough
};

/// Counters of one function. The plan is made from the function as it is when this is constructed; insert() adds the
/// code that counts.
class Counting {
  public:
    /// Callees: what is called and counted here. Ways: where each way has a counter, visits need no other one.
    Counting(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Scopes &Within, const CarriedCalls &Callees,
             PathUse Ways);

    /// Rows of weights: of a visit, then of each counter (quipu_region.weights, quipu_scope.rows).
    const std::vector<ScopedWork> &weights() const { return Plan.Weights; }
    /// Whether the counters say how often the function was visited, too.
    bool countsVisits() const { return Paths.has_value(); }
    unsigned counters() const { return Plan.Weights.size() - 1; }
    /// The number of the first counter of what is called and counted here.
    unsigned firstOfCallees() const { return FirstOfCallees; }

    /// Additions that counting itself does, in memory or in registers, by row of weights; the number of a path is one,
    /// too. After insert().
    std::vector<int64_t> additions() const;

    /// The blocks that are executed equally often, and what they do. Before insert().
    std::vector<CountClass> classes() const;

    /// Adds to `Counters` (an array of 64-bit integers, defined in the entry block) from now on. Loops without calls
    /// count in registers, in closed form where the trip count is known; everything else counts in memory, so that the
    /// counters are right at every call.
    void insert(llvm::Value *Counters);

  private:
    struct Site {
        unsigned Counter;
        llvm::Instruction *Where;
        llvm::Value *Amount; ///< null: 1
    };

    void shapeLoops();
    std::optional<PathNumbers> choosePaths() const;
    void followPaths();
    void planTransfers(llvm::ArrayRef<llvm::Instruction *> Transfers);
    llvm::Loop *registerLoop(const llvm::BasicBlock *BB, llvm::DenseMap<llvm::Loop *, unsigned> &Used) const;
    llvm::Instruction *placeOf(const CountedEdge &Edge);
    bool isCheap(const llvm::Loop *L);
    void add(llvm::IRBuilder<> &Builder, llvm::Value *Counter, llvm::Value *Amount, bool Volatile);
    void addToMemory(llvm::Instruction *Where, unsigned Counter, llvm::Value *Amount);
    void addToRegister(llvm::Loop *L, const Site &S);
    void flush(llvm::Loop *L, unsigned Counter, llvm::AllocaInst *Slot);
    /// Counter: its value says how often, -1: the block does.
    void noteAddition(const llvm::BasicBlock *BB, int Counter);
    void separateMemory();
    void promote();
    void closeLoop(llvm::Loop &L, const llvm::SmallPtrSetImpl<llvm::Value *> &Web);
    llvm::SmallPtrSet<llvm::Value *, 32> registers() const;

    llvm::Function &F;
    llvm::FunctionAnalysisManager &FAM;
    llvm::DominatorTree DT;
    llvm::LoopInfo LI;
    llvm::ScalarEvolution SE;
    const Scopes &Within;
    const CarriedCalls &Callees;
    unsigned FirstOfCallees = 0;
    bool InMemory;                    ///< nothing is kept in registers
    std::optional<PathNumbers> Paths; ///< then the plan is made of them
    CountingPlan Plan;
    std::vector<Site> Sites;                               ///< transfers; edges are placed when they are inserted
    llvm::SmallPtrSet<const llvm::Loop *, 16> Transparent; ///< loops without calls that may not return
    llvm::Value *Counters = nullptr;
    llvm::MDNode *Scope = nullptr; ///< alias scope of the counters
    llvm::MapVector<std::pair<llvm::Loop *, unsigned>, llvm::AllocaInst *> Slots;
    /// In registers, and the counter whose value says how often; -1: the block does.
    llvm::SmallVector<std::pair<llvm::WeakTrackingVH, int>, 32> Additions;
    std::vector<int64_t> PerCount;                                ///< additions for 1 in each counter
    llvm::DenseMap<const llvm::BasicBlock *, int64_t> PerBlock;   ///< additions for each execution of a block
    llvm::DenseMap<const llvm::BasicBlock *, unsigned> CounterOf; ///< of blocks that were made for an edge
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- counting.h - the counters of a function -----------------------------===//
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

/// Inserts the reference implementation that tests compare with counters. Every block calls quipu_effort() for each
/// scope with work in the block. Every transfer of variable length calls quipu_moved(). `Region` is the function.
void countNaively(llvm::Function &F, const Scopes &Within, llvm::GlobalVariable *Region, llvm::FunctionCallee Effort,
                  llvm::FunctionCallee Moved);

/// When a function may have one counter per path instead of counters of edges.
enum class PathUse {
    Never,
    Usually,
    IfManyBranches ///< its visits are counted elsewhere, so path counters replace the counters of branches only
};

/// Counters of one function. The constructor plans the counters from the current code. insert() adds the code that
/// counts.
class Counting {
  public:
    /// Callees: the calls that this function counts for. Ways: whether path counters are allowed; they also count
    /// visits.
    Counting(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Scopes &Within, const CarriedCalls &Callees,
             PathUse Ways);

    /// Returns the rows of weights: work of a visit, then work per unit of each counter (quipu_region.weights,
    /// quipu_scope.rows).
    const std::vector<ScopedWork> &weights() const { return Plan.Weights; }
    /// Returns whether the counters also contain the visits of the function.
    bool countsVisits() const { return Paths.has_value(); }
    unsigned counters() const { return Plan.Weights.size() - 1; }
    /// Returns the index of the first counter of the callees that this function counts for.
    unsigned firstOfCallees() const { return FirstOfCallees; }

    /// Returns the additions that counting itself executes, in memory and in registers, by row of weights. The update
    /// of a path number is also an addition. Call after insert().
    std::vector<int64_t> additions() const;

    /// Returns the classes of blocks that are executed equally often, and their effort. Call before insert().
    std::vector<CountClass> classes() const;

    /// Inserts code that adds to `Counters` (an array of 64-bit integers, defined in the entry block). Loops without
    /// calls count in registers, and in closed form if the trip count is known. All other code counts in memory, so the
    /// counters are correct at every call.
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
    /// Notes an addition. Its executions are the value of `Counter`, or the executions of the block if `Counter` is -1.
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
    bool InMemory;                    ///< no counter is in a register
    std::optional<PathNumbers> Paths; ///< if set, the plan consists of path counters
    CountingPlan Plan;
    std::vector<Site> Sites;                               ///< transfers; insert() places the counters of edges
    llvm::SmallPtrSet<const llvm::Loop *, 16> Transparent; ///< loops that contain no call that may not return
    llvm::Value *Counters = nullptr;
    llvm::MDNode *Scope = nullptr; ///< alias scope of the counters
    llvm::MapVector<std::pair<llvm::Loop *, unsigned>, llvm::AllocaInst *> Slots;
    /// Additions in registers. The number is the counter with their executions; -1: the executions of the block.
    llvm::SmallVector<std::pair<llvm::WeakTrackingVH, int>, 32> Additions;
    std::vector<int64_t> PerCount;                              ///< additions per unit of each counter
    llvm::DenseMap<const llvm::BasicBlock *, int64_t> PerBlock; ///< additions per execution of a block
    llvm::DenseMap<const llvm::BasicBlock *, unsigned>
        CounterOf; ///< counter of each block that was inserted into an edge
};

} // namespace quipu

#endif

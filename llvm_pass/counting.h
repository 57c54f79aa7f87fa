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
/// scope with work in the block. Every transfer of variable length calls quipu_moved(). `Region` is the descriptor of
/// the function.
void countNaively(llvm::Function &F, const Scopes &Within, llvm::GlobalVariable *Region, llvm::FunctionCallee Effort,
                  llvm::FunctionCallee Moved);

/// When a function may have one counter per path instead of counters of edges (flow.h).
enum class PathUse {
    Never,
    Usually,
    IfManyBranches ///< its visits are counted elsewhere, so path counters replace the counters of branches only: if
                   ///< these need more than one addition per visit
};

/// Counters of one function. The constructor plans the counters from the current code. insert() adds the code that
/// counts.
class Counting {
  public:
    /// Callees: the calls whose callees count in counters of this function (carried.h). Ways: whether path counters are
    /// allowed; they also count the visits of the function.
    Counting(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Scopes &Within, const CarriedCalls &Callees,
             PathUse Ways);

    /// Returns the weights: row 0 is the work of one visit, row i + 1 the work per unit of counter i
    /// (quipu_region.weights, quipu_scope.rows).
    const std::vector<ScopedWork> &weights() const { return Plan.Weights; }
    /// Returns whether the counters also contain the visits of the function.
    bool countsVisits() const { return Paths.has_value(); }
    unsigned counters() const { return Plan.Weights.size() - 1; }
    /// Returns the index of the first counter of the callees that this function counts for.
    unsigned firstOfCallees() const { return FirstOfCallees; }

    /// Returns the number of additions that the inserted code executes, in memory and in registers: per visit (row 0),
    /// then per unit of each counter. The update of a path number is also an addition. Call after insert().
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
        llvm::Value *Amount; ///< added to the counter; null: 1
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
    /// Records an inserted addition for additions(). The value of the counter with index `Counter` is the number of its
    /// executions; if `Counter` is -1, it is executed as often as the block.
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
    std::vector<Site> Sites; ///< transfers of variable length; insert() adds the edges and the visits of callees
    /// Loops in simplified form that can end, and in which every call returns.
    llvm::SmallPtrSet<const llvm::Loop *, 16> Transparent;
    llvm::Value *Counters = nullptr;
    llvm::MDNode *Scope = nullptr;                                                ///< alias scope of the counters
    llvm::MapVector<std::pair<llvm::Loop *, unsigned>, llvm::AllocaInst *> Slots; ///< local variable of each count
    /// Additions in registers, each with the argument `Counter` of noteAddition().
    llvm::SmallVector<std::pair<llvm::WeakTrackingVH, int>, 32> Additions;
    std::vector<int64_t> PerCount;                              ///< additions, by row of weights
    llvm::DenseMap<const llvm::BasicBlock *, int64_t> PerBlock; ///< additions per execution of a block
    llvm::DenseMap<const llvm::BasicBlock *, unsigned>
        CounterOf; ///< counter of each block that was inserted into an edge
};

} // namespace quipu

#endif

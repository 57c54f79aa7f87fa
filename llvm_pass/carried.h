/* SPDX-License-Identifier: Apache-2.0 */
//===- carried.h - small functions that count in the counters of their callers ===//
#ifndef QUIPU_CARRIED_H
#define QUIPU_CARRIED_H

#include "classes.h"
#include "effort.h"
#include "scopes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <vector>

namespace llvm {
class CallBase;
class Function;
class Value;
} // namespace llvm

namespace quipu {

/// A function without a hook whose counted version gets its counters from the caller. A caller in the same file counts
/// for it as for a function that was inlined: it is a scope of the caller, and its counters are some of the caller's.
struct Carried {
    llvm::Function *Counted; ///< its last parameter is the counters, if there are some
    const Identity *Self;
    bool IsShown; ///< else its work is that of the caller
    std::vector<Scope> Inner;
    std::vector<ScopedWork> Weights; ///< of a visit, with the visit, then of each counter
    std::vector<CountClass> Classes;
    std::vector<int64_t> Additions; ///< what counting takes, by row of weights (counting.h)
    unsigned counters() const { return Weights.size() - 1; }
};

/// By the version that has the name.
using CarriedFunctions = llvm::DenseMap<const llvm::Function *, Carried>;

/// The calls in one function of functions that it counts for.
class CarriedCalls {
  public:
    /// Finds the calls, and adds the scopes and the work of the callees to the scopes and the work of `F`.
    CarriedCalls(llvm::Function &F, Scopes &Within, const CarriedFunctions &Known);
    /// None.
    CarriedCalls() = default;

    bool carries(const llvm::CallBase &Call) const { return Found.contains(&Call); }

    /// The counters that the caller needs in addition: what 1 in each of them means.
    llvm::ArrayRef<ScopedWork> rows() const { return Rows; }
    /// A call that may not be reached although its block is: the caller counts it.
    struct Visit {
        llvm::Instruction *Where;
        unsigned Row; ///< of rows()
    };
    llvm::ArrayRef<Visit> visits() const { return Visits; }
    /// Adds the classes of the callees. First: index of the first of rows() in the rows of the caller.
    void addClasses(ClassTable &Table, unsigned First) const;
    /// Adds the additions that counting in the callees does: for an execution of a block, and for 1 in each of rows().
    void addAdditions(llvm::DenseMap<const llvm::BasicBlock *, int64_t> &PerBlock,
                      llvm::MutableArrayRef<int64_t> PerRow) const;
    /// Makes the calls call the counted versions. Counters: of the caller; the counters of rows() begin at `First`.
    void redirect(llvm::Value *Counters, unsigned First);

  private:
    /// All calls of one function in one scope of the caller. They share counters.
    struct Group {
        const Carried *What;
        llvm::SmallVector<unsigned, 4> ScopeOf; ///< of the caller, by scope of the callee
        unsigned First;                         ///< of rows(): the first counter of the callee
        std::optional<unsigned> VisitRow;
        llvm::SmallVector<const llvm::BasicBlock *, 4> Blocks; ///< each execution of which is a visit
    };
    void add(llvm::CallBase &Call, const Carried &What, bool MayHaveEnded);
    bool takes(const llvm::CallBase &Call, const Carried &What);
    Group &groupOf(const Carried &What, unsigned Scope);
    ScopedWork mapped(const Group &G, unsigned Row) const;

    Scopes *Within = nullptr;
    std::vector<Group> Groups;
    llvm::DenseMap<std::pair<const Carried *, unsigned>, unsigned> Index;
    llvm::MapVector<llvm::CallBase *, unsigned> Sites; ///< with the group
    llvm::DenseSet<const llvm::CallBase *> Found;
    std::vector<ScopedWork> Rows;
    llvm::SmallVector<Visit, 4> Visits;
};

/// Whether callers may count for a function with these weights and scopes.
bool isFewToCarry(size_t Counters, size_t Scopes);

/// Gives a function one more parameter, the counters. Returns the function that takes its place.
llvm::Function *withCounters(llvm::Function &F);

/// A number of what weights and scopes mean: equal numbers, equal meaning.
uint64_t numberOf(llvm::ArrayRef<Scope> Inner, llvm::ArrayRef<ScopedWork> Weights);

/// The functions of a module, callees first; with true those that may call themselves.
std::vector<std::pair<llvm::Function *, bool>> calleesFirst(llvm::Module &M);

} // namespace quipu

#endif

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

/// A carried function: a small function without hooks whose callers in the same file count for it, as if it were
/// inlined. It is a scope of the caller (scopes.h), and its counters are part of the counters of the caller.
struct Carried {
    llvm::Function *Counted; ///< the counted version; its last parameter is the array of counters, if it has counters
    const Identity *Self;
    bool IsShown;             ///< whether it is a separate call path; otherwise its work belongs to the caller
    std::vector<Scope> Inner; ///< its scopes: the function itself, then the functions that were inlined into it
    std::vector<ScopedWork>
        Weights; ///< work of a visit (including the visit itself), then work per unit of each counter
    std::vector<CountClass> Classes;
    std::vector<int64_t> Additions; ///< number of additions by which it counts, by row of weights (counting.h)
    bool Returns;                   ///< whether each call returns (alwaysReturns)
    unsigned counters() const { return Weights.size() - 1; }
};

/// Carried functions, indexed by their plain version (versions.h).
using CarriedFunctions = llvm::DenseMap<const llvm::Function *, Carried>;

/// The calls of carried functions in one function, the caller.
class CarriedCalls {
  public:
    /// Finds the calls, and adds the scopes and the work of the callees to the scopes and the work of `F`.
    CarriedCalls(llvm::Function &F, Scopes &Within, const CarriedFunctions &Known);
    /// Creates a table without calls.
    CarriedCalls() = default;

    bool carries(const llvm::CallBase &Call) const { return Found.contains(&Call); }
    /// Marks the calls whose callees always return. LLVM cannot do it for an inline function, because the linker may
    /// take another copy. A counted version has a name that contains the number of its code (numberOf).
    void markReturning() const;

    /// Returns the weights of the additional counters of the caller: the work per unit of each counter.
    llvm::ArrayRef<ScopedWork> rows() const { return Rows; }
    /// A call that may not be executed although its block is, because an earlier call in the block may not return. It
    /// has a separate counter.
    struct Visit {
        llvm::Instruction *Where;
        unsigned Row; ///< index in rows()
    };
    llvm::ArrayRef<Visit> visits() const { return Visits; }
    /// Adds the classes of the callees. First: index of the first row of rows() in the caller's rows.
    void addClasses(ClassTable &Table, unsigned First) const;
    /// Adds the number of additions by which the callees count: per execution of a block, and per unit of each row of
    /// rows().
    void addAdditions(llvm::DenseMap<const llvm::BasicBlock *, int64_t> &PerBlock,
                      llvm::MutableArrayRef<int64_t> PerRow) const;
    /// Replaces the callees by their counted versions. Counters: the array of the caller; rows() begin at index
    /// `First`.
    void redirect(llvm::Value *Counters, unsigned First);

  private:
    /// All calls of one carried function in one scope of the caller. They share counters.
    struct Group {
        const Carried *What;
        llvm::SmallVector<unsigned, 4> ScopeOf;                ///< scope of the caller, indexed by scope of the callee
        unsigned First;                                        ///< index in rows() of the first counter of the callee
        std::optional<unsigned> VisitRow;                      ///< index in rows() of the counter of calls in visits()
        llvm::SmallVector<const llvm::BasicBlock *, 4> Blocks; ///< each execution of these blocks is a visit
    };
    void add(llvm::CallBase &Call, const Carried &What, bool MayHaveEnded);
    bool takes(const llvm::CallBase &Call, const Carried &What);
    Group &groupOf(const Carried &What, unsigned Scope);
    ScopedWork mapped(const Group &G, unsigned Row) const;

    Scopes *Within = nullptr;
    std::vector<Group> Groups;
    llvm::DenseMap<std::pair<const Carried *, unsigned>, unsigned> Index;
    llvm::MapVector<llvm::CallBase *, unsigned> Sites; ///< call and index of its group
    llvm::DenseSet<const llvm::CallBase *> Found;
    std::vector<ScopedWork> Rows;
    llvm::SmallVector<Visit, 4> Visits;
};

/// Returns whether callers may count for a function with this number of counters and scopes.
bool isFewToCarry(size_t Counters, size_t Scopes);

/// Adds a parameter for the counters to a function. Returns the function that replaces `F`, which is then empty.
llvm::Function *withCounters(llvm::Function &F);

/// Returns whether each call of a function returns: it has no loop, and only calls that return.
bool alwaysReturns(const llvm::Function &F);

/// Returns a hash of weights and scopes, and of whether each call returns. Equal hashes mean that the counters have the
/// same meaning.
uint64_t numberOf(llvm::ArrayRef<Scope> Inner, llvm::ArrayRef<ScopedWork> Weights, bool Returns);

/// Returns the functions of a module, callees first, and whether each function may call itself, directly or indirectly.
std::vector<std::pair<llvm::Function *, bool>> calleesFirst(llvm::Module &M);

} // namespace quipu

#endif

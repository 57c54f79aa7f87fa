/* SPDX-License-Identifier: Apache-2.0 */
//===- scopes.h - the inlined functions of a function ------------------------===//
#ifndef QUIPU_SCOPES_H
#define QUIPU_SCOPES_H

#include "effort.h"
#include "marks.h"
#include "streams.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

namespace quipu {

/// A scope is a call path inside of one compiled function: the function itself, or a function that was inlined into
/// another scope. (A scope of LLVM's debug information is something else: a DISubprogram, which does not depend on the
/// callers.)
struct Scope {
    const Identity *Function;
    unsigned Parent;     ///< index of the scope that it was inlined into; 0: the function itself
    bool Hooked = false; ///< it has an enter and an exit, which count its visits
    bool Called = false; ///< it is not inlined, but counts in counters of this function (carried.h)
};

/// The scopes of one function, and the work of each block by scope. Recursive calls have no separate scope: if a
/// function was inlined into itself, directly or indirectly, the inner calls belong to the scope of the outermost call.
class Scopes {
  public:
    /// Reads the function; call it before Marks::remove(). May insert blocks before loops. IsShown: returns whether a
    /// function is a separate call path; if not, the work of the function belongs to its caller.
    Scopes(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Identity &Self, const Marks &M,
           llvm::function_ref<bool(const Identity &)> IsShown);

    /// Returns all scopes. The first is the function itself, and parents come before children.
    llvm::ArrayRef<Scope> scopes() const { return All; }

    /// Identifies an inlined call: the location of the call (inlined-at), and the subprogram of the callee.
    using Instance = std::pair<const llvm::DILocation *, const llvm::DISubprogram *>;
    /// A placeholder of a hook in an inlined function.
    struct Hook {
        llvm::Instruction *Place;
        Instance Of;
        unsigned Scope;
        bool IsExit;
    };
    llvm::ArrayRef<Hook> hooks() const { return Hooks; }
    /// Returns the innermost inlined call with hooks that contains this landing pad. It is the active call again after
    /// the landing pad has caught an exception. None: the function itself is active again.
    std::optional<Instance> hookedAround(const llvm::BasicBlock &LandingPad) const {
        return Around.lookup(&LandingPad);
    }

    /// Returns the work of one execution of each block.
    const BlockWork &work() const { return Work; }
    /// Returns the effort of one execution of an instruction.
    Effort effortOf(const llvm::Instruction &I) const;
    unsigned scopeOf(const llvm::Instruction &I) const { return Placed.lookup(&I); }
    /// Returns the scope of `Function` when `Parent` calls it, and creates it if necessary. Returns the outer scope of
    /// a recursive function; `Parent` if the function is not a separate call path, or if there are too many scopes.
    unsigned below(unsigned Parent, const Identity *Function);
    /// Sets Scope::Called of a scope other than 0.
    void setCalled(unsigned Scope) { All[Scope].Called = Scope > 0; }
    /// Adds `More` to the work of one execution of the block.
    void add(const llvm::BasicBlock &BB, const ScopedWork &More) { quipu::accumulate(Work[&BB], More, 1); }
    /// Returns the scope whose metric `blocks` increases when this block is executed.
    unsigned scopeOf(const llvm::BasicBlock &BB) const;
    /// Returns whether the block exists only because of Quipu: it contains only placeholders of hooks, or the
    /// constructor inserted it before a loop. Such a block does not count.
    bool vanishes(const llvm::BasicBlock &BB) const { return Vanishing.contains(&BB); }

  private:
    struct LoopsOf;
    unsigned scopeAt(const llvm::DILocation *Place);
    void readHooks(llvm::Function &F);
    void findVanishing(const llvm::Function &F, LoopsOf &Found);
    void readBlock(const llvm::BasicBlock &BB);
    void countMark(const llvm::BasicBlock &BB, const llvm::Instruction &I, const Identity &Marked);
    void countUnmarked(LoopsOf &Found);

    const Marks &M;
    Streams Walking;
    llvm::function_ref<bool(const Identity &)> IsShown;
    std::vector<Scope> All;
    BlockWork Work;
    llvm::DenseMap<const llvm::Instruction *, unsigned> Placed; ///< scope of each instruction that is not in scope 0
    llvm::DenseMap<Instance, unsigned> Known;
    /// For each inlined call, its scope and the first block with its code.
    llvm::MapVector<Instance, std::pair<unsigned, const llvm::BasicBlock *>> Seen;
    llvm::DenseSet<Instance> Marked;
    std::vector<Hook> Hooks;
    llvm::DenseSet<const llvm::BasicBlock *> Vanishing;
    llvm::DenseSet<Instance> Hooked;
    llvm::DenseMap<const llvm::BasicBlock *, std::optional<Instance>> Around;
    llvm::DenseSet<const Identity *> Merged; ///< functions with a mark that stands for several inlined calls
};

} // namespace quipu

#endif

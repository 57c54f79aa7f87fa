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

/// A call path inside of a function: an inlined function and the scope that it was inlined into.
struct Scope {
    const Identity *Function;
    unsigned Parent;     ///< index of a scope; 0: the function itself
    bool Hooked = false; ///< it has hooks, which count its visits
    bool Called = false; ///< it is a call whose callee this function counts for
};

/// The scopes of one function, and the work of each block by scope. Recursion folds, as in call trees: if a function
/// was inlined into itself, directly or indirectly, all instances are the outermost one.
class Scopes {
  public:
    /// Reads the function before the marks are removed. May insert blocks before loops. IsShown: returns whether a
    /// function is a separate call path; otherwise its work belongs to its caller.
    Scopes(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Identity &Self, const Marks &M,
           llvm::function_ref<bool(const Identity &)> IsShown);

    /// Returns all scopes. The first is the function itself, and parents come before children.
    llvm::ArrayRef<Scope> scopes() const { return All; }

    /// One inlined call: its location, and the scope of debug information.
    using Instance = std::pair<const llvm::DILocation *, const llvm::DISubprogram *>;
    struct Hook {
        llvm::Instruction *Place;
        Instance Of;
        unsigned Scope;
        bool IsExit;
    };
    llvm::ArrayRef<Hook> hooks() const { return Hooks; }
    /// Returns the innermost inlined call with hooks that an exception leaves when this landing pad catches it; none:
    /// the function itself.
    std::optional<Instance> hookedAround(const llvm::BasicBlock &LandingPad) const {
        return Around.lookup(&LandingPad);
    }

    /// Returns the work of one execution of each block.
    const BlockWork &work() const { return Work; }
    /// Returns the effort of one execution of an instruction.
    Effort effortOf(const llvm::Instruction &I) const;
    unsigned scopeOf(const llvm::Instruction &I) const { return Placed.lookup(&I); }
    /// Returns the scope of `Function` below `Parent`; `Parent` if the function is not a separate call path.
    unsigned below(unsigned Parent, const Identity *Function);
    /// Marks a scope as a call whose callee this function counts for.
    void setCalled(unsigned Scope) { All[Scope].Called = Scope > 0; }
    /// Adds work to one execution of the block.
    void add(const llvm::BasicBlock &BB, const ScopedWork &More) { quipu::accumulate(Work[&BB], More, 1); }
    /// Returns the scope that the execution of a block counts for.
    unsigned scopeOf(const llvm::BasicBlock &BB) const;
    /// Returns whether the block exists only for places of hooks. It is not part of the program and does not count.
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
    llvm::DenseMap<const llvm::Instruction *, unsigned>
        Placed; ///< scopes of instructions that do not belong to the function itself
    llvm::DenseMap<Instance, unsigned> Known;
    llvm::MapVector<Instance, std::pair<unsigned, const llvm::BasicBlock *>> Seen; ///< scope, and its first block
    llvm::DenseSet<Instance> Marked;
    std::vector<Hook> Hooks;
    llvm::DenseSet<const llvm::BasicBlock *> Vanishing;
    llvm::DenseSet<Instance> Hooked;
    llvm::DenseMap<const llvm::BasicBlock *, std::optional<Instance>> Around;
    llvm::DenseSet<const Identity *> Merged; ///< functions with a mark that merges several calls
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- scopes.h - the functions that became part of a function ---------------===//
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

/// A call path inside of a function: what was inlined, and into what.
struct Scope {
    const Identity *Function;
    unsigned Parent;     ///< index of a scope; 0: the function itself
    bool Hooked = false; ///< it is entered and left at run time, which counts its visits
    bool Called = false; ///< it was not inlined, and the function counts for it
};

/// The scopes of one function, and what each of its blocks does in which of them. Recursion folds, as in call trees: a
/// function that was inlined into itself, or into what was, is the outer one.
class Scopes {
  public:
    /// Reads the function before the marks are removed, and may put blocks before loops. IsShown: whether a function is
    /// a separate call path; otherwise its work belongs to its caller.
    Scopes(llvm::Function &F, llvm::FunctionAnalysisManager &FAM, const Identity &Self, const Marks &M,
           llvm::function_ref<bool(const Identity &)> IsShown);

    /// The first is the function itself; parents come before children.
    llvm::ArrayRef<Scope> scopes() const { return All; }

    /// One inlined call: where, and the scope of debug information.
    using Instance = std::pair<const llvm::DILocation *, const llvm::DISubprogram *>;
    struct Hook {
        llvm::Instruction *Place;
        Instance Of;
        unsigned Scope;
        bool IsExit;
    };
    llvm::ArrayRef<Hook> hooks() const { return Hooks; }
    /// The innermost call with hooks that the exceptions which a block catches may leave; none: the function itself.
    std::optional<Instance> hookedAround(const llvm::BasicBlock &LandingPad) const {
        return Around.lookup(&LandingPad);
    }

    /// One execution of each block.
    const BlockWork &work() const { return Work; }
    /// One execution of an instruction.
    Effort effortOf(const llvm::Instruction &I) const;
    unsigned scopeOf(const llvm::Instruction &I) const { return Placed.lookup(&I); }
    /// Returns the scope of `Function` below `Parent`; `Parent` if the function is no separate call path.
    unsigned below(unsigned Parent, const Identity *Function);
    /// A scope is what calls of a function are, which this one counts for.
    void setCalled(unsigned Scope) { All[Scope].Called = Scope > 0; }
    /// One execution of the block does this, too.
    void add(const llvm::BasicBlock &BB, const ScopedWork &More) { quipu::accumulate(Work[&BB], More, 1); }
    /// The scope that the execution of a block counts for.
    unsigned scopeOf(const llvm::BasicBlock &BB) const;
    /// Whether the block is there for places of hooks only: it is no part of the program, and does not count.
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
    llvm::DenseMap<const llvm::Instruction *, unsigned> Placed; ///< those that are not of the function itself
    llvm::DenseMap<Instance, unsigned> Known;
    llvm::MapVector<Instance, std::pair<unsigned, const llvm::BasicBlock *>> Seen; ///< scope, and the first block of it
    llvm::DenseSet<Instance> Marked;
    std::vector<Hook> Hooks;
    llvm::DenseSet<const llvm::BasicBlock *> Vanishing;
    llvm::DenseSet<Instance> Hooked;
    llvm::DenseMap<const llvm::BasicBlock *, std::optional<Instance>> Around;
    llvm::DenseSet<const Identity *> Merged; ///< functions with marks that became one for several places
};

} // namespace quipu

#endif

//===- scopes.h - the functions that became part of a function ---------------===//
#ifndef QUIPU_SCOPES_H
#define QUIPU_SCOPES_H

#include "effort.h"
#include "marks.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

namespace quipu {

/// A call path inside of a function: what was inlined, and into what.
struct Scope {
    const Identity *Function;
    unsigned Parent; ///< index of a scope; 0: the function itself
};

/// The scopes of one function, and what each of its blocks does in which of them. Recursion folds, as in call trees: a
/// function that was inlined into itself, or into what was, is the outer one.
class Scopes {
  public:
    /// Reads the function before the marks are removed. IsShown: which functions are call paths of their own; the work
    /// of others is their callers'.
    Scopes(const llvm::Function &F, const Identity &Self, const Marks &M,
           llvm::function_ref<bool(const Identity &)> IsShown);

    /// The first is the function itself; parents come before children.
    llvm::ArrayRef<Scope> scopes() const { return All; }
    /// One execution of each block.
    const BlockWork &work() const { return Work; }
    /// The scope of a transfer of variable length (effort.h).
    unsigned scopeOfTransfer(const llvm::Instruction &I) const { return Transfers.lookup(&I); }

  private:
    using Instance = std::pair<const llvm::DILocation *, const llvm::DISubprogram *>;

    unsigned scopeAt(const llvm::DILocation *Place);
    unsigned below(unsigned Parent, const Identity *Function);
    void readBlock(const llvm::BasicBlock &BB);
    void countMark(const llvm::BasicBlock &BB, const llvm::Instruction &I, const Identity &Marked);
    void countUnmarked();

    const Marks &M;
    llvm::function_ref<bool(const Identity &)> IsShown;
    std::vector<Scope> All;
    BlockWork Work;
    llvm::DenseMap<const llvm::Instruction *, unsigned> Transfers;
    llvm::DenseMap<Instance, unsigned> Known;
    llvm::MapVector<Instance, std::pair<unsigned, const llvm::BasicBlock *>> Seen; ///< scope, and the first block of it
    llvm::DenseSet<Instance> Marked;
    llvm::DenseSet<const Identity *> Merged; ///< functions with marks that became one for several places
};

} // namespace quipu

#endif

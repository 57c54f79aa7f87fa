/* SPDX-License-Identifier: Apache-2.0 */
//===- marks.h - what keeps functions apart that become one ------------------===//
#ifndef QUIPU_MARKS_H
#define QUIPU_MARKS_H

#include "names.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/PassManager.h"

#include <string>

namespace llvm {
class BasicBlock;
class DILocation;
class DISubprogram;
class Function;
class Instruction;
class Module;
} // namespace llvm

namespace quipu {

/// Runs on the code as the compiler's front end wrote it. Every function gets debug information of its scopes if it has
/// none, which the inliner keeps up; a mark at its entry (a pseudo probe, which optimization passes look through); and
/// its identity, under the name that it has before optimization, in the metadata of the module. Functions that are
/// worth being timed (worth.h) also get places of hooks, which cost the inliner nothing.
class MarkPass : public llvm::PassInfoMixin<MarkPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    /// Runs for functions that ask for no optimization, too.
    static bool isRequired() { return true; }
};

/// What the marks of a module say, after optimization.
class Marks {
  public:
    explicit Marks(llvm::Module &M);
    /// The function that a scope of debug information is of; null if it has no mark.
    const Identity *identityOf(const llvm::DISubprogram *Scope) const;
    /// What a function is known by: as before optimization, if it has a mark.
    Identity identityOf(const llvm::Function &F) const;
    /// The function whose entry this instruction marks; null if it is no mark.
    const Identity *markedBy(const llvm::Instruction &I) const;
    /// Whether a hook was placed here, and which: an enter or an exit.
    static bool isEnter(const llvm::Instruction &I);
    static bool isExit(const llvm::Instruction &I);
    /// Whether there is nothing in the block but places of hooks and a branch to one other.
    static bool hasOnlyPlaces(const llvm::BasicBlock &BB);
    bool empty() const { return ByName.empty(); }
    /// Removes marks, and debug information that is there for them only.
    void remove(llvm::Module &M);
    /// Removes places of hooks that nobody made use of.
    static void removePlaces(llvm::Module &M);

  private:
    llvm::StringMap<Identity> ByName;
    llvm::DenseMap<const llvm::DISubprogram *, const Identity *> ByScope;
    llvm::DenseMap<uint64_t, const Identity *> ByNumber;
    mutable llvm::DenseMap<const llvm::DISubprogram *, const Identity *> Copies; ///< of scopes, by passes that clone
};

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- marks.h - marks that identify functions after inlining ----------------===//
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

/// Marks functions at the start of the pipeline, on the code of the front end. Every function gets
///
/// - debug information of its scopes, if it has none; the inliner keeps it up to date;
/// - a pseudo probe at its entry, which optimization passes ignore;
/// - its identity (with its name before optimization) in the metadata of the module;
/// - places of hooks, if it is worth being timed (worth.h); they cost nothing in the estimate of the inliner.
class MarkPass : public llvm::PassInfoMixin<MarkPass> {
  public:
    llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &AM);
    /// Makes the pass run for functions with the attribute optnone, too.
    static bool isRequired() { return true; }
};

/// Reads the marks of a module after optimization.
class Marks {
  public:
    explicit Marks(llvm::Module &M);
    /// Returns the function of a scope of debug information; null if it has no mark.
    const Identity *identityOf(const llvm::DISubprogram *Scope) const;
    /// Returns the identity of a function; the identity before optimization if it has a mark.
    Identity identityOf(const llvm::Function &F) const;
    /// Returns the function whose entry this instruction marks; null if it is no mark.
    const Identity *markedBy(const llvm::Instruction &I) const;
    /// Returns whether the instruction is a place of a hook: of an enter, or of an exit.
    static bool isEnter(const llvm::Instruction &I);
    static bool isExit(const llvm::Instruction &I);
    /// Returns whether the block contains only places of hooks and an unconditional branch.
    static bool hasOnlyPlaces(const llvm::BasicBlock &BB);
    bool empty() const { return ByName.empty(); }
    /// Removes marks, and the debug information that was added for them.
    void remove(llvm::Module &M);
    /// Removes unused places of hooks.
    static void removePlaces(llvm::Module &M);

  private:
    llvm::StringMap<Identity> ByName;
    llvm::DenseMap<const llvm::DISubprogram *, const Identity *> ByScope;
    llvm::DenseMap<uint64_t, const Identity *> ByNumber;
    mutable llvm::DenseMap<const llvm::DISubprogram *, const Identity *> Copies; ///< scopes that passes cloned
};

} // namespace quipu

#endif

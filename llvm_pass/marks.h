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

/// Marks functions at the start of the pipeline, in the code of the front end, so that their code can be identified
/// after inlining. A hook is a call of quipu_enter or quipu_exit. Every function that can be counted (isCountable) gets
///
/// - debug information, if it has none, because the inliner records there which function inlined code comes from;
/// - the mark: a pseudo probe (llvm.pseudoprobe) at its entry, which optimization passes ignore;
/// - an entry with its identity in the metadata of the module, because optimization passes may rename the function;
/// - placeholders of hooks, if it is a call path whose visits are long enough to be timed (worth.h): calls of
///   llvm.var.annotation, which cost nothing in the estimate of the inliner.
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
    /// Returns the identity of the function that a DISubprogram describes; null if this function has no mark.
    const Identity *identityOf(const llvm::DISubprogram *Scope) const;
    /// Returns the identity of a function: the identity before optimization if the function has a mark, otherwise the
    /// present one.
    Identity identityOf(const llvm::Function &F) const;
    /// Returns the identity of the function whose entry this instruction marks; null if the instruction is not a mark.
    const Identity *markedBy(const llvm::Instruction &I) const;
    /// Returns whether the instruction is the placeholder of an enter (isEnter) or of an exit (isExit).
    static bool isEnter(const llvm::Instruction &I);
    static bool isExit(const llvm::Instruction &I);
    /// Returns whether the block contains placeholders, an unconditional branch, and no other work (isWork).
    static bool hasOnlyPlaces(const llvm::BasicBlock &BB);
    bool empty() const { return ByName.empty(); }
    /// Removes all marks, their metadata, and the debug information that MarkPass added.
    void remove(llvm::Module &M);
    /// Removes the placeholders that are left.
    static void removePlaces(llvm::Module &M);

  private:
    llvm::StringMap<Identity> ByName;
    llvm::DenseMap<const llvm::DISubprogram *, const Identity *> ByScope;
    llvm::DenseMap<uint64_t, const Identity *> ByNumber;
    /// Identities of subprograms that are not in ByScope, for example of clones; null: no mark.
    mutable llvm::DenseMap<const llvm::DISubprogram *, const Identity *> Copies;
};

} // namespace quipu

#endif

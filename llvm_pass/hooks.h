/* SPDX-License-Identifier: Apache-2.0 */
//===- hooks.h - calls of the runtime, with their common case inline ---------===//
#ifndef QUIPU_HOOKS_H
#define QUIPU_HOOKS_H

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm {
class AllocaInst;
class CallInst;
class Function;
class GlobalVariable;
class Module;
class Value;
} // namespace llvm

namespace quipu {

/// The functions of quipu.h that the pass calls in one module.
class Runtime {
  public:
    explicit Runtime(llvm::Module &M);

    llvm::FunctionCallee Enter, Exit, Count, Unwind, Top, Effort, Moved;
    llvm::FunctionCallee ExitVisit, UnwindVisit; ///< the argument is the result of newVisit()

    /// Allocates the local variable of a visit whose hooks are inline (struct quipu_visit).
    llvm::AllocaInst *newVisit(llvm::Function &F) const;
    /// Replaces a call of `Enter` or `Exit` by inline code for the common case, and a call for all other cases
    /// (agent/runtime/inlined.h). KeepsNode: whether to store the active node in the visit, for calls of `UnwindVisit`.
    void inlineHook(llvm::CallInst *Call, llvm::Value *Visit, bool KeepsNode);
    /// Replaces a call of `Enter` or `Exit` by a call of a shared function of this module, which contains this inline
    /// code.
    void shareHook(llvm::CallInst *Call, llvm::Value *Visit);
    /// Replaces a call of `Count` by inline code for the common case, and a call for all other cases. CountsVisits: the
    /// counters contain the visits of the function. Far: null, or a call of `Count` in a separate function with the
    /// same parameters, which then handles all other cases.
    void inlineCount(llvm::CallInst *Call, bool CountsVisits, llvm::CallInst *Far = nullptr);
    /// Completes the inserted hooks; call it once, after all other functions.
    void finish();
    /// A variable that is not 0 while the process is measured.
    llvm::GlobalVariable *Measuring;
    /// Describes the program's copies of variables of the runtime (struct quipu_program); null: there are no copies.
    llvm::GlobalVariable *Program = nullptr;
    /// Returns whether hooks in `F` are inline: on x86-64 without QUIPU_CALLS, if `F` is neither optnone nor optimized
    /// for size.
    bool inlines(const llvm::Function &F) const;

  private:
    llvm::GlobalVariable *ofProgram(llvm::StringRef Name, llvm::Constant *Initial, bool IsOfThread) const;
    void makeCopies();
    llvm::Value *threadLocal(llvm::IRBuilder<> &Builder, llvm::GlobalVariable *Variable, const llvm::Twine &Name) const;
    llvm::Value *threadState(llvm::IRBuilder<> &Builder, llvm::GlobalVariable *Place) const;
    /// The blocks of a call with an inline common case. Head decides, Slow contains the call for all other cases, and
    /// both continue in Tail.
    struct Ways {
        llvm::BasicBlock *Head, *Slow, *Tail;
    };
    Ways split(llvm::CallInst *Call) const;
    llvm::BasicBlock *block(const Ways &Way, const llvm::Twine &Name) const;
    void go(llvm::IRBuilder<> &Builder, llvm::Value *Usual, llvm::BasicBlock *Next, const Ways &Way) const;
    /// Values that the code of findLink() computes. Usual: whether `Link` leads from the active node to the region.
    struct Known {
        llvm::Value *Thread, *Here, *Link, *Usual;
    };
    llvm::Value *linkAt(llvm::IRBuilder<> &Builder, llvm::Value *Found) const;
    Known findLink(llvm::IRBuilder<> &Builder, llvm::Value *Region, const Ways &Way);
    void useLink(llvm::IRBuilder<> &Builder, llvm::Value *Link, llvm::CallInst *Count, bool CountsVisits) const;
    llvm::CallInst *replace(llvm::CallInst *Call, llvm::FunctionCallee Callee,
                            llvm::ArrayRef<llvm::Value *> Arguments) const;
    llvm::GlobalVariable *slots();
    unsigned slotOf(llvm::Value *Region);
    llvm::Value *slot(llvm::IRBuilder<> &Builder, llvm::Value *Region);
    llvm::Value *slotOrNull(llvm::IRBuilder<> &Builder, llvm::Value *Region);
    void inlineFew();
    llvm::Function *preserving(const llvm::Twine &Name, llvm::Type *Result,
                               llvm::ArrayRef<llvm::Type *> Parameters) const;
    llvm::CallInst *callMissed(llvm::CallInst *Call, llvm::Function *&Here, llvm::FunctionCallee Callee,
                               llvm::Value *Region, llvm::ArrayRef<llvm::Value *> More = {});
    llvm::Function *sharedHook(llvm::Function *&Known, llvm::FunctionCallee Hook);
    llvm::Function *passingSlot(llvm::Function *&Known, llvm::FunctionCallee Callee);
    void inlineEnter(llvm::CallInst *Call, llvm::Value *Visit, bool KeepsNode);
    void inlineExit(llvm::CallInst *Call, llvm::Value *Visit);

    llvm::Module &M;
    llvm::Type *Pointer;
    llvm::Type *I64;
    llvm::GlobalVariable *Current = nullptr, *ActiveNode = nullptr;
    llvm::GlobalVariable *OwnActiveNode = nullptr; ///< the program's copy of the variable, if it has one
    llvm::GlobalVariable *Slots = nullptr;
    llvm::MapVector<std::pair<llvm::GlobalVariable *, unsigned>, unsigned> SlotOf; ///< number of the slot by descriptor
    llvm::Function *CountHere = nullptr, *EnterHere = nullptr;                     ///< functions of passingSlot()
    llvm::Function *SharedEnter = nullptr, *SharedExit = nullptr;                  ///< functions of shareHook()
    llvm::FunctionCallee CountMissed, EnterMissed, ExitMissed;
    bool HasSlots = false;
};

} // namespace quipu

#endif

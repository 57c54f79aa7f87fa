/* SPDX-License-Identifier: Apache-2.0 */
//===- hooks.h - calls of the runtime, and their usual way inline ------------===//
#ifndef QUIPU_HOOKS_H
#define QUIPU_HOOKS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm {
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

    /// Puts what these calls do when nothing unusual happens in front of them (agent/runtime/inlined.h), so that they
    /// are only made otherwise. CountsVisits: the counters of `F` say how often it was visited. Own: how many of them,
    /// from the first on, get that code. The others share one copy of it.
    void inlineHooks(llvm::Function &F, llvm::ArrayRef<llvm::CallInst *> Calls, size_t Own, bool CountsVisits);
    /// Whether that does anything: not for processors without a cheap clock, and not where `F` asks for small code.
    bool inlines(const llvm::Function &F) const;

  private:
    llvm::Value *threadLocal(llvm::IRBuilder<> &Builder, llvm::GlobalVariable *Variable, const llvm::Twine &Name) const;
    llvm::Value *threadState(llvm::IRBuilder<> &Builder) const;
    struct Ways {
        llvm::BasicBlock *Head, *Slow, *Tail;
    };
    Ways split(llvm::CallInst *Call) const;
    llvm::BasicBlock *block(const Ways &Way, const llvm::Twine &Name) const;
    void go(llvm::IRBuilder<> &Builder, llvm::Value *Usual, llvm::BasicBlock *Next, const Ways &Way) const;
    struct Known {
        llvm::Value *Thread, *Here, *Link, *Usual;
    };
    Known findLink(llvm::IRBuilder<> &Builder, llvm::Value *Region, llvm::Value *Slot, const Ways &Way) const;
    llvm::CallInst *replace(llvm::CallInst *Call, llvm::FunctionCallee Callee,
                            llvm::ArrayRef<llvm::Value *> Arguments) const;
    llvm::GlobalVariable *newSlot();
    llvm::Value *addressOf(llvm::Value *Slot, llvm::Instruction *Before) const;
    llvm::Function *newHelper(llvm::StringRef Name, llvm::FunctionType *Type) const;
    void callHelper(llvm::CallInst *Call, llvm::FunctionCallee Helper);
    void chargeTime(llvm::IRBuilder<> &Builder, llvm::Value *Thread, llvm::Value *Here, llvm::Value *Other,
                    const Ways &Way, bool Enters);
    void inlineCount(llvm::CallInst *Call, bool CountsVisits);
    void inlineEnter(llvm::CallInst *Call, llvm::Value *Slot);
    void inlineExit(llvm::CallInst *Call);

    llvm::Module &M;
    llvm::Type *Pointer;
    llvm::Type *I64;
    llvm::GlobalVariable *Current = nullptr, *ActiveNode = nullptr;
    llvm::Constant *NoLink = nullptr;
    llvm::FunctionCallee CountMissed, EnterMissed, ExitMissed;
    llvm::Function *EnterHelper = nullptr, *ExitHelper = nullptr;
    bool HasSlots = false;
};

} // namespace quipu

#endif

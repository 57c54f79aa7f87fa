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
    /// are only made otherwise. Does nothing for processors without a cheap clock, or where `F` asks for small code.
    void inlineHooks(llvm::Function &F, llvm::ArrayRef<llvm::CallInst *> Calls);

  private:
    llvm::Value *currentThread(llvm::IRBuilder<> &Builder) const;
    struct Ways {
        llvm::Value *Thread;
        llvm::BasicBlock *Known, *Fast, *Slow, *Tail;
        llvm::MDNode *Likely;
    };
    Ways split(llvm::CallInst *Call) const;
    void chargeTime(llvm::IRBuilder<> &Builder, llvm::Value *Thread, llvm::Value *Here, llvm::Value *Clock);
    void inlineEnter(llvm::CallInst *Call, bool Quiet);
    void inlineExit(llvm::CallInst *Call);

    llvm::Module &M;
    llvm::Type *Pointer;
    llvm::Type *I64;
    llvm::GlobalVariable *Current = nullptr;
};

} // namespace quipu

#endif

// SPDX-License-Identifier: Apache-2.0
#include "versions.h"

#include "flow.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace quipu {
namespace {

/// Largest number of instructions of a function that is copied. In a larger function, counting a visit costs little
/// compared with the work of the visit, and the copy would be large.
constexpr size_t MostInstructions = 1000;

bool canBeCopied(const Function &F) {
    if (F.hasOptNone() || F.hasOptSize() || F.isVarArg() || F.hasSection() || F.hasFnAttribute(Attribute::NoReturn) ||
        !hasPlainEdges(F))
        return false;
    for (const Argument &A : F.args())
        if (A.hasInAllocaAttr() || A.hasPreallocatedAttr() || A.hasSwiftErrorAttr())
            return false;
    size_t Instructions = 0;
    for (const BasicBlock &BB : F) {
        if (BB.hasAddressTaken())
            return false;
        for (const Instruction &I : BB) {
            if (const auto *Call = dyn_cast<CallBase>(&I)) {
                const auto *Assembly = dyn_cast<InlineAsm>(Call->getCalledOperand());
                if (Call->cannotDuplicate() || (Assembly && StringRef(Assembly->getAsmString()).contains(':')))
                    return false; // the copy would define a label twice
            }
            Instructions += !I.isDebugOrPseudoInst();
        }
    }
    return Instructions <= MostInstructions;
}

/// Sets name and linkage of a version that only plain and counted versions call.
void becomeVersion(Function &F, const Function &Original, const Twine &Suffix) {
    F.setName(Original.getName() + Suffix);
    F.setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    if (Original.isDiscardableIfUnused() && !Original.isInterposable() && !Original.hasLocalLinkage()) {
        // An inline function: the linker keeps one of the copies of all files, and all files call this copy.
        F.setVisibility(GlobalValue::HiddenVisibility);
        if (F.hasComdat())
            F.setComdat(F.getParent()->getOrInsertComdat(F.getName()));
    } else {
        F.setLinkage(GlobalValue::InternalLinkage);
        F.setVisibility(GlobalValue::DefaultVisibility);
        F.setComdat(nullptr);
    }
    F.setDSOLocal(true);
}

/// Returns whether the compiler can turn a function with these parameters into a jump, if it only calls another
/// function with the same arguments.
bool isJump(const Function &F) {
    return !F.isVarArg() && none_of(F.args(), [](const Argument &A) { return A.hasPassPointeeByValueCopyAttr(); });
}

/// Returns whether the function neither calls another function nor has local variables in memory.
bool isLeaf(const Function &F) {
    return none_of(instructions(F), [](const Instruction &I) {
        return isa<AllocaInst>(I) || (isa<CallBase>(I) && !isa<IntrinsicInst>(I));
    });
}

} // namespace

CallInst *callWithArguments(IRBuilder<> &Builder, Function &From, Function &To, Value *Counters) {
    SmallVector<Value *, 8> Arguments;
    for (Argument &A : From.args())
        Arguments.push_back(&A);
    if (Counters)
        Arguments.push_back(Counters);
    CallInst *Call = Builder.CreateCall(&To, Arguments);
    Call->setCallingConv(To.getCallingConv());
    Call->setAttributes(To.getAttributes().removeFnAttributes(From.getContext()));
    Call->setTailCallKind(CallInst::TCK_Tail);
    if (From.getReturnType()->isVoidTy())
        Builder.CreateRetVoid();
    else
        Builder.CreateRet(Call);
    return Call;
}

Function *separateCounted(Function &F) {
    if (!canBeCopied(F))
        return nullptr;
    ValueToValueMapTy Map;
    Function *Plain = CloneFunction(&F, Map);
    F.replaceAllUsesWith(Plain);
    Plain->takeName(&F);
    Plain->setLinkage(F.getLinkage());
    Plain->setVisibility(F.getVisibility());
    Plain->setDLLStorageClass(F.getDLLStorageClass());
    Plain->setDSOLocal(F.isDSOLocal());
    Plain->setUnnamedAddr(F.getUnnamedAddr());
    Plain->setComdat(F.getComdat());
    becomeVersion(F, *Plain, ".quipu");
    return Plain;
}

Lookup decideAtEntry(Function &Plain, Function &Counted, GlobalVariable *Measuring, FunctionCallee Count,
                     Value *Region) {
    LLVMContext &Context = Plain.getContext();
    Module &M = *Plain.getParent();
    BasicBlock *Body = &Plain.getEntryBlock();
    BasicBlock *Entry = BasicBlock::Create(Context, "", &Plain, Body);
    BasicBlock *Measured = BasicBlock::Create(Context, "quipu.measured", &Plain);
    IRBuilder<> Builder(Entry);
    if (DISubprogram *Debug = Plain.getSubprogram())
        Builder.SetCurrentDebugLocation(DILocation::get(Context, Debug->getScopeLine(), 0, Debug));
    // Only allocas in the entry block have a fixed place in the stack frame.
    for (Instruction &I : make_early_inc_range(*Body))
        if (auto *Local = dyn_cast<AllocaInst>(&I); Local && isa<ConstantInt>(Local->getArraySize()))
            Local->moveBefore(*Entry, Entry->end());
    Type *I32 = Builder.getInt32Ty();
    Builder.CreateCondBr(Builder.CreateICmpEQ(Builder.CreateLoad(I32, Measuring), Builder.getInt32(0)), Body, Measured);

    Builder.SetInsertPoint(Measured);
    CallInst *Counters = Region ? Builder.CreateCall(Count, {Region}, "quipu.counters") : nullptr;
    const bool TakesCounters = Counted.arg_size() > Plain.arg_size();
    if (Counters && !TakesCounters) {
        Builder.CreateBr(Body);
        return {Counters};
    }
    callWithArguments(Builder, Plain, Counted, TakesCounters ? Counters : nullptr);
    if (!Counters || !isJump(Plain))
        return {Counters};
    Function *Far = Function::Create(Plain.getFunctionType(), GlobalValue::PrivateLinkage, Plain.getAddressSpace(),
                                     Plain.getName() + ".quipu.far");
    M.getFunctionList().insertAfter(Plain.getIterator(), Far);
    Far->copyAttributesFrom(&Plain);
    Far->setVisibility(GlobalValue::DefaultVisibility);
    Far->setPersonalityFn(nullptr);
    Far->setDSOLocal(true);
    Far->setComdat(Plain.getComdat());
    Far->addFnAttr(Attribute::Cold);
    Far->addFnAttr(Attribute::NoInline);
    IRBuilder<> Cold(BasicBlock::Create(Context, "", Far));
    CallInst *Again = Cold.CreateCall(Count, {Region}, "quipu.counters");
    callWithArguments(Cold, *Far, Counted, Again);
    return {Counters, Again};
}

Function *separateEntry(Function &Plain, Function &Body, SmallPtrSetImpl<const Function *> &Copies) {
    if (Plain.isInterposable() || !isJump(Plain))
        return &Plain;
    SmallVector<CallBase *, 16> Calls;
    for (const Use &U : Plain.uses())
        if (auto *Call = dyn_cast<CallBase>(U.getUser()); Call && Call->isCallee(&U) &&
                                                          Call->getFunctionType() == Plain.getFunctionType() &&
                                                          Copies.contains(Call->getFunction()))
            Calls.push_back(Call);
    if (Calls.empty() && (&Body == &Plain ? isLeaf(Plain) : Body.use_empty()))
        return &Plain;
    Function *Entry = Function::Create(Plain.getFunctionType(), Plain.getLinkage(), Plain.getAddressSpace());
    Plain.getParent()->getFunctionList().insert(Plain.getIterator(), Entry);
    Entry->copyAttributesFrom(&Plain);
    Entry->setPersonalityFn(nullptr);
    Entry->setComdat(Plain.getComdat());
    Entry->takeName(&Plain);
    Plain.replaceAllUsesWith(Entry);
    for (CallBase *Call : Calls)
        Call->setCalledFunction(&Body);
    IRBuilder<> Builder(BasicBlock::Create(Plain.getContext(), "", Entry));
    callWithArguments(Builder, *Entry, Body, nullptr);
    if (&Body == &Plain) {
        becomeVersion(Plain, *Entry, ".quipu.plain");
    } else {
        Copies.erase(&Plain);
        Plain.eraseFromParent();
    }
    return Entry;
}

void callCounted(const DenseMap<Function *, Function *> &CountedOf) {
    SmallPtrSet<const Function *, 32> Counted;
    for (const auto &[Plain, Version] : CountedOf)
        Counted.insert(Version);
    for (const auto &[Plain, Version] : CountedOf) {
        if (Plain->isInterposable())
            continue;
        for (Use &U : make_early_inc_range(Plain->uses()))
            if (auto *Call = dyn_cast<CallBase>(U.getUser());
                Call && Call->isCallee(&U) && Counted.contains(Call->getFunction()))
                U.set(Version);
    }
}

} // namespace quipu

#include "worth.h"

#include "effort.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace quipu {
namespace {

/// Iterations up to which a loop is no longer than what time stamps take.
constexpr uint64_t FewIterations = 16;

/// Whether the loop ends when something reaches a small constant, as far as one can see before optimization.
bool isShort(const Loop &L) {
    SmallVector<BasicBlock *, 4> Exiting;
    L.getExitingBlocks(Exiting);
    return any_of(Exiting, [](const BasicBlock *BB) {
        const auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
        const auto *Test = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
        const auto *Bound = Test ? dyn_cast<ConstantInt>(Test->getOperand(1)) : nullptr;
        return Bound && !Bound->isZero() && Bound->getValue().ult(FewIterations + 1);
    });
}

bool hasLongLoop(Function &F) {
    DominatorTree DT(F);
    LoopInfo LI(DT);
    return any_of(LI.getLoopsInPreorder(), [](const Loop *L) { return !isShort(*L); });
}

/// A function of another file that is not of the compiler's libraries.
bool isElsewhere(const Function &F, const TargetLibraryInfo &TLI) {
    LibFunc Known;
    const StringRef Name = F.getName();
    return F.isDeclaration() && !F.isIntrinsic() && !TLI.getLibFunc(F, Known) && !Name.starts_with("_ZSt") &&
           !Name.starts_with("_ZNSt") && !Name.starts_with("_ZNKSt") && !Name.starts_with("_Zn") &&
           !Name.starts_with("_Zd") && !Name.starts_with("_FortranA") && !Name.starts_with("__");
}

bool takesHooks(const Function &F) {
    if (F.isDeclaration() || F.getName() == "main" ||
        (F.hasFnAttribute(Attribute::NoInline) && !F.hasFnAttribute(Attribute::AlwaysInline)) ||
        F.hasFnAttribute(Attribute::NoReturn))
        return false;
    for (const BasicBlock &BB : F) {
        // A call of itself at its end would no longer become a loop.
        for (const Instruction &I : BB)
            if (const auto *Call = dyn_cast<CallBase>(&I);
                Call &&
                (Call->getCalledFunction() == &F || Call->hasFnAttr(Attribute::ReturnsTwice) || Call->isMustTailCall()))
                return false;
        if (isa<IndirectBrInst, CallBrInst>(BB.getTerminator()) || (BB.isEHPad() && !BB.isLandingPad()))
            return false;
    }
    return true;
}

} // namespace

SmallPtrSet<Function *, 32> worthTiming(Module &M, FunctionAnalysisManager &FAM) {
    SmallPtrSet<Function *, 32> Worth;
    SmallVector<Function *, 32> Work;
    for (Function &F : M)
        if (F.isDeclaration() ? isElsewhere(F, FAM.getResult<TargetLibraryAnalysis>(F)) : hasLongLoop(F))
            Work.push_back(&F);
    while (!Work.empty()) {
        Function *F = Work.pop_back_val();
        if (!Worth.insert(F).second)
            continue;
        for (const User *U : F->users())
            if (const auto *Call = dyn_cast<CallBase>(U); Call && Call->getCalledFunction() == F)
                Work.push_back(const_cast<Function *>(Call->getFunction()));
    }
    for (Function &F : M)
        if (!takesHooks(F))
            Worth.erase(&F);
    return Worth;
}

} // namespace quipu

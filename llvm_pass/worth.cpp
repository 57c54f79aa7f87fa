// SPDX-License-Identifier: Apache-2.0
#include "worth.h"

#include "effort.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace quipu {
namespace {

/// Smallest number of instructions of a visit, before optimization, for which hooks are worthwhile. Optimization leaves
/// a third to a half of them. The two time stamps of a visit take as long as about 100 instructions after optimization.
constexpr uint64_t MuchWork = 2048;
constexpr uint64_t Unlimited = ~uint64_t{0};
/// Instructions that a call of a library function counts as.
constexpr uint64_t LibraryCall = 64;

/// Returns an estimate of the largest trip count of a loop: the smallest constant with which an exit compares, + 1.
/// Returns Unlimited if there is none. Exits to cold blocks do not count, because they are not the usual end.
uint64_t tripsOf(const Loop &L, const SmallPtrSetImpl<const BasicBlock *> &Cold) {
    SmallVector<Loop::Edge, 4> Exits;
    L.getExitEdges(Exits);
    uint64_t Trips = Unlimited;
    for (const auto &[BB, Outside] : Exits) {
        if (Cold.contains(Outside))
            continue;
        const auto *Branch = dyn_cast<BranchInst>(BB->getTerminator());
        const auto *Test = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
        if (!Test)
            continue;
        const auto *Bound = dyn_cast<ConstantInt>(Test->getOperand(1));
        if (!Bound)
            Bound = dyn_cast<ConstantInt>(Test->getOperand(0));
        if (Bound && Bound->getValue().isStrictlyPositive())
            Trips = std::min(Trips, Bound->getValue().getLimitedValue() + 1);
    }
    return Trips;
}

/// Returns the blocks from which every path ends the program or continues an exception. Usual visits do not execute
/// them.
SmallPtrSet<const BasicBlock *, 16> coldBlocks(const Function &F) {
    SmallPtrSet<const BasicBlock *, 16> Cold;
    SmallVector<const BasicBlock *, 16> Work;
    auto Add = [&](const BasicBlock *BB) {
        if (Cold.insert(BB).second)
            Work.append(pred_begin(BB), pred_end(BB));
    };
    for (const BasicBlock &BB : F)
        if (isa<UnreachableInst, ResumeInst>(BB.getTerminator()) || BB.isLandingPad())
            Add(&BB);
    while (!Work.empty()) {
        const BasicBlock *BB = Work.pop_back_val();
        if (all_of(successors(BB), [&](const BasicBlock *Next) { return Cold.contains(Next); }))
            Add(BB);
    }
    return Cold;
}

/// Estimates an upper bound of the work of a visit, for each function of a module.
class WorkEstimate {
  public:
    WorkEstimate(Module &M, FunctionAnalysisManager &FAM) : FAM(FAM) {
        CallGraph Calls(M);
        for (auto Group = scc_begin(&Calls); !Group.isAtEnd(); ++Group) // callees come first
            for (const CallGraphNode *Node : *Group)
                if (Function *F = Node->getFunction(); F && !F->isDeclaration())
                    Of[F] = Group.hasCycle() ? Unlimited : ofVisit(*F);
        propagate();
    }

    bool isMuch(Function *F) const { return Of.lookup(F) >= MuchWork; }

  private:
    uint64_t ofVisit(Function &F) {
        DominatorTree DT(F);
        LoopInfo LI(DT);
        const SmallPtrSet<const BasicBlock *, 16> Cold = coldBlocks(F);
        uint64_t Sum = 0;
        for (BasicBlock &BB : F) {
            if (Cold.contains(&BB))
                continue;
            uint64_t Times = 1;
            for (const Loop *L = LI.getLoopFor(&BB); L; L = L->getParentLoop())
                Times = SaturatingMultiply(Times, tripsOf(*L, Cold));
            for (Instruction &I : BB)
                Sum = SaturatingMultiplyAdd(Times, ofInstruction(I), Sum);
        }
        return Sum;
    }

    uint64_t ofInstruction(Instruction &I) {
        if (isa<AnyMemIntrinsic>(I))
            return LibraryCall;
        if (isa<IntrinsicInst, AllocaInst>(I))
            return 0; // some of them exist only with optimization
        const auto *Call = dyn_cast<CallBase>(&I);
        if (!Call || Call->isInlineAsm())
            return 1;
        auto *Callee = dyn_cast<Function>(Call->getCalledOperand()->stripPointerCasts());
        if (!Callee) {
            Indirect[Call->getFunctionType()].push_back(I.getFunction());
            return LibraryCall;
        }
        if (!Callee->isDeclaration())
            return SaturatingAdd(uint64_t{1}, Of.lookup(Callee));
        return isElsewhere(*Callee, FAM.getResult<TargetLibraryAnalysis>(*Callee)) ? Unlimited : LibraryCall;
    }

    /// Propagates work through indirect calls. A call through a pointer may call any function of this type whose
    /// address is taken.
    void propagate() {
        SmallVector<Function *, 32> Work;
        for (const auto &[F, Sum] : Of)
            if (Sum >= MuchWork && F->hasAddressTaken())
                Work.push_back(F);
        while (!Work.empty()) {
            Function *F = Work.pop_back_val();
            auto Found = F->hasAddressTaken() ? Indirect.find(F->getFunctionType()) : Indirect.end();
            for (Function *Caller : Found == Indirect.end() ? ArrayRef<Function *>() : ArrayRef(Found->second))
                raise(Caller, Work);
            for (const User *U : F->users())
                if (const auto *Call = dyn_cast<CallBase>(U); Call && Call->getCalledFunction() == F)
                    raise(const_cast<Function *>(Call->getFunction()), Work);
        }
    }

    void raise(Function *F, SmallVectorImpl<Function *> &Work) {
        if (Of[F] < MuchWork) {
            Of[F] = Unlimited;
            Work.push_back(F);
        }
    }

    FunctionAnalysisManager &FAM;
    DenseMap<Function *, uint64_t> Of;
    DenseMap<FunctionType *, SmallVector<Function *, 4>> Indirect; ///< functions that call through pointers, by type
};

/// Returns whether placeholders of hooks (marks.h) may be inserted into the function before optimization.
bool takesPlaces(const Function &F) {
    // A coroutine has several parts with separate begins and ends.
    if (F.getName() == "main" || F.isPresplitCoroutine() ||
        (F.hasFnAttribute(Attribute::NoInline) && !F.hasFnAttribute(Attribute::AlwaysInline)) ||
        F.hasFnAttribute(Attribute::NoReturn))
        return false;
    for (const BasicBlock &BB : F) {
        // With a placeholder after the call, a tail recursion could no longer become a loop.
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

bool isParallelRegion(const Function &F) {
    return F.getName().contains(".omp_outlined") || F.getName().contains("..omp_par");
}

bool isElsewhere(const Function &F, const TargetLibraryInfo &TLI) {
    LibFunc Known;
    const StringRef Name = F.getName();
    if (!F.isDeclaration() || F.isIntrinsic())
        return false;
    if (TLI.getLibFunc(F, Known))
        return Known == LibFunc_qsort;                                   // calls a function of the program
    if (Name.starts_with("__kmpc_") || Name.starts_with("_ZNSt6thread")) // start threads
        return true;
    if (Name.starts_with("_ZTH") || Name.starts_with("_ZTW")) // find a thread-local variable, and initialize it once
        return false;
    return !Name.starts_with("_ZSt") && !Name.starts_with("_ZNSt") && !Name.starts_with("_ZNKSt") &&
           !Name.starts_with("_ZN9__gnu_cxx") && !Name.starts_with("_Zn") && !Name.starts_with("_Zd") &&
           !Name.starts_with("_FortranA") && !Name.starts_with("__");
}

DenseMap<Function *, Worth> worthTiming(Module &M, FunctionAnalysisManager &FAM) {
    const WorkEstimate Estimate(M, FAM);
    DenseMap<Function *, Worth> Found;
    for (Function &F : M) {
        if (F.isDeclaration())
            continue;
        const bool Much = Estimate.isMuch(&F);
        Found[&F] = {Much || isParallelRegion(F), Much && takesPlaces(F)};
    }
    return Found;
}

} // namespace quipu

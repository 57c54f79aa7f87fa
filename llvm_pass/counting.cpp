#include "counting.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace quipu {

/// What a closed form may cost, in units of simple instructions (the default of loop passes is 4): it replaces an
/// addition per iteration.
constexpr unsigned ExpansionBudget = 16;

/// Where a block counts itself; its end if it has no place for an instruction (a block of a catchswitch).
static BasicBlock::iterator countingPoint(BasicBlock &BB) {
    return BB.isEntryBlock() ? BB.getFirstNonPHIOrDbgOrAlloca() : BB.getFirstInsertionPt();
}

void countNaively(Function &F, FunctionCallee Blocks) {
    SmallVector<BasicBlock *, 32> Own;
    for (BasicBlock &BB : F)
        Own.push_back(&BB);
    for (BasicBlock *BB : Own) {
        auto Where = countingPoint(*BB);
        if (Where == BB->end())
            continue;
        IRBuilder<> Builder(BB, Where);
        if (DISubprogram *Debug = F.getSubprogram())
            Builder.SetCurrentDebugLocation(DILocation::get(F.getContext(), Debug->getScopeLine(), 0, Debug));
        Builder.CreateCall(Blocks, {Builder.getInt64(1)});
    }
}

BlockCounter::BlockCounter(Function &F, bool InMemory) : F(F), InMemory(InMemory) {
    SmallVector<BasicBlock *, 32> Blocks;
    for (BasicBlock &BB : F)
        Blocks.push_back(&BB);
    IRBuilder<> Builder(&*F.getEntryBlock().begin());
    Slot = Builder.CreateAlloca(Builder.getInt64Ty(), nullptr, "quipu.blocks");
    for (BasicBlock *BB : Blocks) {
        auto Where = countingPoint(*BB);
        if (Where == BB->end())
            continue;
        Builder.SetInsertPoint(BB, Where);
        if (BB == &F.getEntryBlock())
            Builder.CreateStore(Builder.getInt64(0), Slot, InMemory);
        Value *Before = Builder.CreateLoad(Builder.getInt64Ty(), Slot, InMemory);
        Value *After = Builder.CreateAdd(Before, Builder.getInt64(1));
        Additions.push_back(After);
        Builder.CreateStore(After, Slot, InMemory);
    }
}

Value *BlockCounter::read(Instruction *Where) {
    IRBuilder<> Builder(Where);
    return Builder.CreateLoad(Builder.getInt64Ty(), Slot, InMemory);
}

void BlockCounter::restart(Instruction *Where) {
    IRBuilder<> Builder(Where);
    Builder.CreateStore(Builder.getInt64(0), Slot, InMemory);
}

/// The registers that hold the count after promotion: our additions and the phis between them.
SmallPtrSet<Value *, 32> BlockCounter::registers() const {
    SmallPtrSet<Value *, 32> Web;
    SmallVector<Value *, 32> Work;
    auto Visit = [&](Value *V) {
        if (Web.insert(V).second)
            Work.push_back(V);
    };
    for (const WeakTrackingVH &Addition : Additions)
        if (Addition)
            Visit(Addition);
    while (!Work.empty()) {
        auto *I = cast<Instruction>(Work.pop_back_val());
        for (Value *Operand : I->operands())
            if (isa<PHINode>(Operand))
                Visit(Operand);
        for (User *U : I->users())
            if (isa<PHINode>(U))
                Visit(U);
    }
    return Web;
}

/// Replaces what leaves `L` by its value after the last iteration, computed in front of the loop.
void BlockCounter::closeLoop(Loop &L, const SmallPtrSetImpl<Value *> &Web, ScalarEvolution &SE,
                             const TargetTransformInfo &TTI) {
    BasicBlock *Preheader = L.getLoopPreheader();
    if (!Preheader)
        return; // entered by an indirect branch
    Instruction *Front = Preheader->getTerminator();
    SmallVector<BasicBlock *, 4> Exits;
    L.getUniqueExitBlocks(Exits);
    for (BasicBlock *Exit : Exits) {
        for (PHINode &Phi : Exit->phis()) {
            if (!Web.contains(&Phi))
                continue;
            for (unsigned I = 0; I < Phi.getNumIncomingValues(); I++) {
                auto *Leaving = dyn_cast<Instruction>(Phi.getIncomingValue(I));
                if (!Leaving || !L.contains(Leaving))
                    continue;
                const SCEV *Last = SE.getSCEVAtScope(Leaving, L.getParentLoop());
                SCEVExpander Expander(SE, F.getParent()->getDataLayout(), "quipu");
                if (isa<SCEVCouldNotCompute>(Last) || !SE.isLoopInvariant(Last, &L) ||
                    !Expander.isSafeToExpandAt(Last, Front) ||
                    Expander.isHighCostExpansion(Last, &L, ExpansionBudget, &TTI, Front))
                    continue;
                Phi.setIncomingValue(I, Expander.expandCodeFor(Last, Phi.getType(), Front));
                SE.forgetValue(&Phi);
            }
        }
    }
}

void BlockCounter::finish(FunctionAnalysisManager &FAM) {
    if (InMemory)
        return;
    DominatorTree DT(F);
    AssumptionCache &AC = FAM.getResult<AssumptionAnalysis>(F);
    PromoteMemToReg({Slot}, DT, &AC);

    // The count at the exit of a loop is a closed form wherever scalar evolution knows the trip count; without that the
    // register is one more recurrence, and reductions that it accompanies do not vectorize as well.
    LoopInfo LI(DT);
    if (LI.empty())
        return;
    TargetLibraryInfo &TLI = FAM.getResult<TargetLibraryAnalysis>(F);
    TargetTransformInfo &TTI = FAM.getResult<TargetIRAnalysis>(F);
    ScalarEvolution SE(F, TLI, AC, DT, LI);
    for (Loop *L : LI) {
        simplifyLoop(L, &DT, &LI, &SE, &AC, nullptr, /*PreserveLCSSA=*/false);
        formLCSSARecursively(*L, DT, &LI, &SE);
    }
    SmallPtrSet<Value *, 32> Web = registers();
    SmallVector<Loop *, 16> Loops = LI.getLoopsInPreorder();
    for (Loop *L : reverse(Loops))
        closeLoop(*L, Web, SE, TTI);

    SmallVector<WeakTrackingVH, 32> Phis;
    for (Loop *L : Loops)
        for (PHINode &Phi : L->getHeader()->phis())
            if (Web.contains(&Phi))
                Phis.push_back(&Phi);
    for (WeakTrackingVH &Phi : Phis)
        if (auto *Alive = dyn_cast_or_null<PHINode>(Phi))
            RecursivelyDeleteDeadPHINode(Alive, &TLI);
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "paths.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace quipu {
namespace {

constexpr const char *ScopeName = "quipu.counters";

bool isOfCounter(const StoreInst &Store) {
    const MDNode *Scopes = Store.getMetadata(LLVMContext::MD_alias_scope);
    if (!Scopes || Scopes->getNumOperands() == 0)
        return false;
    const auto *Scope = dyn_cast<MDNode>(Scopes->getOperand(0));
    const auto *Name = Scope && Scope->getNumOperands() > 2 ? dyn_cast<MDString>(Scope->getOperand(2)) : nullptr;
    return Name && Name->getString() == ScopeName;
}

/// An addition of 1 to a counter whose index is a PHI node of the same block.
struct Addition {
    StoreInst *Store;
    BinaryOperator *Sum;
    LoadInst *Before;
    GetElementPtrInst *Place;
    PHINode *Number;

    /// Returns whether the store is such an addition, and nothing else uses its parts.
    bool match(StoreInst &Candidate) {
        Store = &Candidate;
        Place = dyn_cast<GetElementPtrInst>(Store->getPointerOperand());
        Sum = dyn_cast<BinaryOperator>(Store->getValueOperand());
        if (!isOfCounter(*Store) || !Place || !Sum || Place->getNumIndices() != 1 ||
            !PatternMatch::match(Sum, m_c_Add(m_Load(m_Specific(Place)), m_One())))
            return false;
        Before = cast<LoadInst>(Sum->getOperand(isa<Constant>(Sum->getOperand(0))));
        Number = dyn_cast<PHINode>(Place->getOperand(1));
        return Number && Number->hasOneUse() && Place->hasNUses(2) && Before->hasOneUse() && Sum->hasOneUse() &&
               Store->isSimple() && Before->isSimple() && Number->getParent() == Store->getParent() &&
               Place->getParent() == Store->getParent() && Before->getParent() == Store->getParent();
    }

    void erase() const {
        for (Instruction *Part : std::initializer_list<Instruction *>{Store, Sum, Before, Place, Number})
            Part->eraseFromParent();
    }
};

/// Returns whether code can be inserted on each edge into the block.
bool hasPlainEntries(const BasicBlock &BB) {
    return !BB.isEHPad() && all_of(predecessors(&BB), [](const BasicBlock *From) {
        return isa<BranchInst, SwitchInst>(From->getTerminator());
    });
}

/// Moves an addition to the edges into its block, and appends the new stores to `Made`.
void move(const Addition &Old, DominatorTree &DT, SmallVectorImpl<StoreInst *> &Made) {
    BasicBlock *BB = Old.Store->getParent();
    const SmallSetVector<BasicBlock *, 8> Entries(pred_begin(BB), pred_end(BB));
    for (BasicBlock *From : Entries) {
        Value *Number = Old.Number->getIncomingValueForBlock(From);
        Instruction *End = From->getTerminator();
        if (!From->getUniqueSuccessor()) {
            CriticalEdgeSplittingOptions Options(&DT);
            Options.setMergeIdenticalEdges();
            End = SplitCriticalEdge(End, GetSuccessorNumber(From, BB), Options)->getTerminator();
        }
        IRBuilder<> Builder(End);
        Builder.SetCurrentDebugLocation(Old.Store->getDebugLoc());
        auto *Place = cast<GetElementPtrInst>(Old.Place->clone());
        Place->setOperand(1, Number);
        Builder.Insert(Place);
        auto *Before = cast<LoadInst>(Old.Before->clone());
        Before->setOperand(0, Place);
        Builder.Insert(Before);
        auto *After = cast<StoreInst>(Old.Store->clone());
        After->setOperand(0, Builder.CreateAdd(Before, Builder.getInt64(1)));
        After->setOperand(1, Place);
        Made.push_back(Builder.Insert(After));
    }
    Old.erase();
}

} // namespace

MDNode *counterScope(LLVMContext &Context) {
    MDBuilder Metadata(Context);
    return MDNode::get(
        Context, Metadata.createAnonymousAliasScope(Metadata.createAnonymousAliasScopeDomain("quipu"), ScopeName));
}

bool isKnownOnEdges(const Value *Number) {
    SmallPtrSet<const Value *, 8> Seen;
    SmallVector<const Value *, 8> Left{Number};
    while (!Left.empty()) {
        const Value *Next = Left.pop_back_val();
        const auto *Phi = dyn_cast<PHINode>(Next);
        if (!Phi && !isa<ConstantInt>(Next))
            return false;
        if (Phi && Seen.insert(Phi).second)
            Left.append(Phi->value_op_begin(), Phi->value_op_end());
    }
    return true;
}

PreservedAnalyses PathEdgesPass::run(Function &F, FunctionAnalysisManager &FAM) {
    if (F.hasOptSize())
        return PreservedAnalyses::all();
    SmallVector<StoreInst *, 8> Left;
    for (BasicBlock &BB : F)
        for (Instruction &I : BB)
            if (auto *Store = dyn_cast<StoreInst>(&I))
                Left.push_back(Store);
    bool Changed = false;
    while (!Left.empty()) {
        Addition Found;
        StoreInst *Store = Left.pop_back_val();
        if (!Found.match(*Store) || !isKnownOnEdges(Found.Number) || !hasPlainEntries(*Store->getParent()))
            continue;
        auto &DT = FAM.getResult<DominatorTreeAnalysis>(F);
        const auto *Counters = dyn_cast<Instruction>(Found.Place->getPointerOperand());
        if (Counters && any_of(predecessors(Store->getParent()),
                               [&](const BasicBlock *From) { return !DT.dominates(Counters, From->getTerminator()); }))
            continue;
        move(Found, DT, Left);
        Changed = true;
    }
    if (!Changed)
        return PreservedAnalyses::all();
    PreservedAnalyses Kept;
    Kept.preserve<DominatorTreeAnalysis>();
    return Kept;
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "counting.h"

#include "paths.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/Analysis/BranchProbabilityInfo.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace quipu {

/// Largest cost of the closed form of a count, in simple instructions. (The default of LLVM's loop passes is 4.) A
/// closed form is computed once per loop, and replaces one addition per iteration.
constexpr unsigned ExpansionBudget = 16;

/// Largest number of path counters divided by the number of counters that they replace. Each counter takes memory in
/// profiles and in descriptors.
constexpr unsigned PathFactor = 3;

/// Largest number of counters in registers, for an innermost loop (RegisterBudget) and for a nest of loops
/// (NestBudget). The register allocator would spill more counters.
constexpr unsigned RegisterBudget = 16, NestBudget = 8;

void countNaively(Function &F, const Scopes &Within, GlobalVariable *Region, FunctionCallee Effort,
                  FunctionCallee Moved) {
    SmallVector<Instruction *, 8> Moving;
    for (BasicBlock &BB : F)
        for (Instruction &I : BB)
            if (isVariableTransfer(I))
                Moving.push_back(&I);
    IRBuilder<> Builder(F.getContext());
    auto Locate = [&] {
        if (DISubprogram *Debug = F.getSubprogram())
            Builder.SetCurrentDebugLocation(DILocation::get(F.getContext(), Debug->getScopeLine(), 0, Debug));
    };
    for (BasicBlock &BB : F) {
        auto Where = BB.isEntryBlock() ? BB.getFirstNonPHIOrDbgOrAlloca() : BB.getFirstInsertionPt();
        auto Found = Within.work().find(&BB);
        if (Where == BB.end() || Found == Within.work().end())
            continue;
        Builder.SetInsertPoint(&BB, Where);
        Locate();
        for (const auto &[Scope, Done] : Found->second) {
            SmallVector<uint64_t, QUIPU_WEIGHTED + 1> Row = {static_cast<uint64_t>(Done.Visits)};
            Row.append(Done.Code.begin(), Done.Code.end());
            Constant *Data = ConstantDataArray::get(F.getContext(), Row);
            auto *Global = new GlobalVariable(*F.getParent(), Data->getType(), true, GlobalValue::PrivateLinkage, Data,
                                              "quipu.effort");
            Builder.CreateCall(Effort, {Region, Builder.getInt64(Scope), Global});
        }
    }
    for (Instruction *I : Moving) {
        const Transfer Found = transferOf(*I);
        Builder.SetInsertPoint(I);
        Locate();
        Value *Length = Builder.CreateZExtOrTrunc(Found.Length, Builder.getInt64Ty());
        Builder.CreateCall(
            Moved, {Region, Builder.getInt64(Within.scopeOf(*I)), Found.Loads ? Length : Builder.getInt64(0), Length});
    }
}

Counting::Counting(Function &F, FunctionAnalysisManager &FAM, const Scopes &Within, const CarriedCalls &Callees,
                   PathUse Ways)
    : F(F), FAM(FAM), DT(F), LI(DT),
      SE(F, FAM.getResult<TargetLibraryAnalysis>(F), FAM.getResult<AssumptionAnalysis>(F), DT, LI), Within(Within),
      Callees(Callees), InMemory(!hasPlainEdges(F)) {
    SmallVector<Instruction *, 4> Transfers;
    for (BasicBlock &BB : F)
        for (Instruction &I : BB)
            if (isVariableTransfer(I))
                Transfers.push_back(&I);
    if (InMemory) {
        Plan = planBlocks(F, Within.work());
    } else {
        shapeLoops();
        const BlockSet Endless = endlessBlocks(F);
        for (Loop *L : LI.getLoopsInPreorder())
            if (L->isLoopSimplifyForm() &&
                none_of(L->blocks(), [&](BasicBlock *BB) { return Endless.contains(BB) || any_of(*BB, mayNotReturn); }))
                Transparent.insert(L);
        const BranchProbabilityInfo Probabilities(F, LI, &FAM.getResult<TargetLibraryAnalysis>(F), &DT);
        const BlockFrequencyInfo Frequencies(F, Probabilities, LI);
        auto Frequency = [&](const CountedEdge &Edge) {
            const BlockFrequency OfBlock = Frequencies.getBlockFreq(Edge.From ? Edge.From : Edge.To);
            return (Edge.From ? OfBlock * Probabilities.getEdgeProbability(Edge.From, Edge.To) : OfBlock)
                .getFrequency();
        };
        auto IsCheap = [&](const BasicBlock *BB) {
            const Loop *L = LI.getLoopFor(BB);
            return L && BB == L->getHeader() && isCheap(L);
        };
        Plan = planEdges(F, Within.work(), Endless, LI, IsCheap, Frequency);
        uint64_t Expected = 0; // additions per visit
        for (const CountedEdge &Edge : Plan.Edges)
            Expected += Frequency(Edge);
        if (Ways == PathUse::Usually ||
            (Ways == PathUse::IfManyBranches && Expected > Frequencies.getBlockFreq(&F.getEntryBlock()).getFrequency()))
            Paths = choosePaths();
        if (Paths)
            Plan = planPaths(F, Within.work(), *Paths);
    }
    planTransfers(Transfers);
    FirstOfCallees = counters();
    Plan.Weights.insert(Plan.Weights.end(), Callees.rows().begin(), Callees.rows().end());
}

/// Returns the numbers of the paths if paths shall be counted. Path counters need one addition per visit, instead of
/// one for the visit and one per branch. A path is counted at its end, so no earlier code may read the counters or
/// leave the function.
std::optional<PathNumbers> Counting::choosePaths() const {
    if (!LI.empty() || !Within.hooks().empty() || Plan.Edges.empty() ||
        any_of(F, [](const BasicBlock &BB) { return BB.isEHPad() || any_of(BB, mayNotReturn); }))
        return std::nullopt;
    return numberPaths(F, PathFactor * (Plan.Edges.size() + 1));
}

/// If paths are counted, inserts the code: a register adds up the number of the path, and the end of the function
/// increments the counter with this number.
void Counting::followPaths() {
    if (!Paths)
        return;
    Type *I64 = Type::getInt64Ty(F.getContext());
    DenseMap<const BasicBlock *, Value *> Number; // number of the path up to a block
    SmallVector<std::pair<const BasicBlock *, const Value *>, 4> Ends;
    const ReversePostOrderTraversal<Function *> Order(&F);
    for (BasicBlock *BB : Order) {
        auto Along = [&](BasicBlock *From) -> Value * {
            IRBuilder<> Builder(From->getTerminator());
            return Builder.CreateAdd(Number.lookup(From), ConstantInt::get(I64, Paths->OfEdge.lookup({From, BB})));
        };
        Value *&Here = Number[BB];
        if (BB->isEntryBlock()) {
            Here = ConstantInt::get(I64, 0);
        } else if (BasicBlock *Only = BB->getUniquePredecessor()) {
            Here = Along(Only);
        } else {
            PHINode *Phi = PHINode::Create(I64, 2, "quipu.path", &BB->front());
            DenseMap<BasicBlock *, Value *> Known;
            for (BasicBlock *From : predecessors(BB)) {
                auto [Entry, Fresh] = Known.try_emplace(From);
                if (Fresh)
                    Entry->second = Along(From);
                Phi->addIncoming(Entry->second, From);
            }
            Here = Phi;
        }
        if (succ_empty(BB)) {
            IRBuilder<> Builder(BB->getTerminator());
            add(Builder, Builder.CreateInBoundsGEP(I64, Counters, Here), Builder.getInt64(1), /*Volatile=*/false);
            Ends.emplace_back(BB, Here);
        }
    }
    for (const auto &[BB, Here] : Ends)
        PerBlock[BB] += isKnownOnEdges(Here) ? 1 : 2; // a number that is not constant needs an addition, too
}

/// Gives loops a preheader, one latch, and dedicated exits. LoopSimplify does more (it may remove blocks and move
/// instructions), which would change the counts.
void Counting::shapeLoops() {
    SmallVector<Loop *, 16> Loops = LI.getLoopsInPreorder();
    for (Loop *L : reverse(Loops)) {
        if (!L->getLoopPreheader())
            InsertPreheaderForLoop(L, &DT, &LI, nullptr, /*PreserveLCSSA=*/false);
        formDedicatedExitBlocks(L, &DT, &LI, nullptr, /*PreserveLCSSA=*/false);
        if (L->getLoopLatch())
            continue;
        SmallVector<BasicBlock *, 4> Latches;
        L->getLoopLatches(Latches);
        // The latch has the metadata of the loop (vectorization hints). The new latch gets this metadata.
        MDNode *Hints = nullptr;
        for (BasicBlock *Latch : Latches) {
            Instruction *Back = Latch->getTerminator();
            Hints = Hints ? Hints : Back->getMetadata(LLVMContext::MD_loop);
            Back->setMetadata(LLVMContext::MD_loop, nullptr);
        }
        BasicBlock *Latch = SplitBlockPredecessors(L->getHeader(), Latches, ".latch", &DT, &LI, nullptr, false);
        if (Latch && Hints)
            Latch->getTerminator()->setMetadata(LLVMContext::MD_loop, Hints);
    }
}

/// Plans counters of bytes for transfers of variable length. Each scope has one counter for copies and one for fills.
void Counting::planTransfers(ArrayRef<Instruction *> Transfers) {
    DenseMap<std::pair<unsigned, unsigned>, unsigned> Counter;
    for (Instruction *I : Transfers) {
        const Transfer Found = transferOf(*I);
        const unsigned Scope = Within.scopeOf(*I);
        auto [Entry, Fresh] = Counter.try_emplace({Scope, Found.Loads ? 1 : 0}, counters());
        Sites.push_back({Entry->second, I, Found.Length});
        if (!Fresh)
            continue;
        ScopedWork Row;
        Row[Scope].Code[QUIPU_COLUMN_BYTES_LOADED] = Found.Loads;
        Row[Scope].Code[QUIPU_COLUMN_BYTES_STORED] = 1;
        Row[Scope].Code[QUIPU_COLUMN_BYTES_IN_ORDER] = Found.Loads ? 2 : 1;
        Plan.Weights.push_back(std::move(Row));
    }
}

std::vector<CountClass> Counting::classes() const {
    ClassTable Table(F, Within, Plan, DT, LI);
    for (const Site &S : Sites) {
        const unsigned Scope = Within.scopeOf(*S.Where), Row = S.Counter + 1;
        Table.addTransfer(Row, *S.Where, Plan.Weights[Row].lookup(Scope).Code);
    }
    Callees.addClasses(Table, FirstOfCallees + 1);
    for (unsigned Row = 0; Row < Plan.Weights.size(); Row++)
        for (const auto &[Scope, Done] : Plan.Weights[Row])
            Table.complete(Row, Scope, Done.Code);
    return Table.take();
}

bool Counting::isCheap(const Loop *L) {
    const SCEV *Taken = SE.getBackedgeTakenCount(L);
    if (isa<SCEVCouldNotCompute>(Taken) || !L->getLoopPreheader())
        return false;
    SCEVExpander Expander(SE, F.getParent()->getDataLayout(), "quipu");
    return !Expander.isHighCostExpansion(Taken, const_cast<Loop *>(L), ExpansionBudget,
                                         &FAM.getResult<TargetIRAnalysis>(F), L->getLoopPreheader()->getTerminator());
}

/// Returns the outermost loop during which the counter of a block is in a register; its exits add the register to
/// memory. Null if the counter is always in memory. Used: number of counters in registers, for each loop.
///
/// The profile of a killed process must contain its counts, and an outer loop without calls may run long. A counter is
/// therefore in a register only during an innermost loop, or during a nest of loops that is inside of another loop
/// without calls, and only within the budget of registers.
Loop *Counting::registerLoop(const BasicBlock *BB, DenseMap<Loop *, unsigned> &Used) const {
    Loop *Found = nullptr;
    for (Loop *L = InMemory ? nullptr : LI.getLoopFor(BB); L && Transparent.contains(L); L = L->getParentLoop()) {
        const bool Inside = L->getParentLoop() && Transparent.contains(L->getParentLoop());
        if (L->isInnermost() ? Used[L] < RegisterBudget : Inside && Used[L] < NestBudget)
            Found = L;
    }
    if (Found)
        Used[Found]++;
    return Found;
}

/// Returns the instruction before which the counter of an edge is incremented. For a critical edge, it is in a new
/// block.
Instruction *Counting::placeOf(const CountedEdge &Edge) {
    BasicBlock *To = Edge.To;
    if (Edge.From && !To->getUniquePredecessor()) {
        if (Edge.From->getUniqueSuccessor())
            return Edge.From->getTerminator();
        // Does not pass LoopInfo: SplitCriticalEdge would then split further edges to keep loops simplified, but the
        // edges of the plan must not change.
        CriticalEdgeSplittingOptions Options(&DT);
        Options.setMergeIdenticalEdges();
        BasicBlock *Between = SplitCriticalEdge(Edge.From->getTerminator(), GetSuccessorNumber(Edge.From, To), Options);
        assert(Between && "hasPlainEdges() lets only edges through that can be split");
        Loop *Common = LI.getLoopFor(Edge.From);
        while (Common && !Common->contains(To))
            Common = Common->getParentLoop();
        if (Common)
            Common->addBasicBlockToLoop(Between, LI);
        return Between->getTerminator();
    }
    return &*To->getFirstInsertionPt();
}

void Counting::insert(Value *TheCounters) {
    Counters = TheCounters;
    Scope = counterScope(F.getContext());
    separateMemory();
    followPaths();
    PerCount.assign(Plan.Weights.size(), 0);
    for (size_t I = 0; I < Plan.Edges.size(); I++) {
        Instruction *Where = placeOf(Plan.Edges[I]);
        Sites.push_back({static_cast<unsigned>(I), Where, nullptr});
        if (Where->getParent() != Plan.Edges[I].From && Where->getParent() != Plan.Edges[I].To)
            CounterOf[Where->getParent()] = I;
    }
    for (const CarriedCalls::Visit &V : Callees.visits())
        Sites.push_back({FirstOfCallees + V.Row, V.Where, nullptr});
    SmallVector<Loop *, 16> Loops = LI.getLoopsInPreorder();
    for (Loop *L : reverse(Loops))
        formDedicatedExitBlocks(L, &DT, &LI, nullptr, /*PreserveLCSSA=*/false);
    DenseMap<Loop *, unsigned> Used;
    for (const Site &S : Sites) {
        if (Loop *L = registerLoop(S.Where->getParent(), Used))
            addToRegister(L, S);
        else
            addToMemory(S.Where, S.Counter, S.Amount);
    }
    promote();
    for (const auto &[Addition, Counter] : Additions)
        if (const auto *I = dyn_cast_or_null<Instruction>(Addition); I && I->getParent())
            noteAddition(I->getParent(), Counter);
}

void Counting::noteAddition(const BasicBlock *BB, int Counter) {
    if (auto Found = CounterOf.find(BB); Counter < 0 && Found != CounterOf.end())
        Counter = static_cast<int>(Found->second);
    if (Counter < 0)
        PerBlock[BB]++;
    else
        PerCount[Counter + 1]++;
}

std::vector<int64_t> Counting::additions() const {
    std::vector<int64_t> Sum = PerCount;
    Sum.resize(Plan.Weights.size());
    DenseMap<const BasicBlock *, int64_t> Here = PerBlock;
    Callees.addAdditions(Here, MutableArrayRef(Sum).drop_front(FirstOfCallees + 1));
    for (size_t Row = 0; Row < Plan.Shares.size(); Row++)
        for (const auto &[BB, Share] : Plan.Shares[Row])
            Sum[Row] += Share * Here.lookup(BB);
    return Sum;
}

void Counting::addToMemory(Instruction *Where, unsigned Counter, Value *Amount) {
    IRBuilder<> Builder(Where);
    Type *I64 = Builder.getInt64Ty();
    // In loops, the access is volatile. The optimizer could otherwise keep the counter in a register, and a signal
    // handler that leaves the loop (longjmp, exit) would lose the count.
    const bool InLoop = LI.getLoopFor(Where->getParent()) != nullptr;
    noteAddition(Where->getParent(), Amount ? -1 : static_cast<int>(Counter));
    add(Builder, Builder.CreateConstInBoundsGEP1_64(I64, Counters, Counter),
        Amount ? Builder.CreateZExtOrTrunc(Amount, I64) : Builder.getInt64(1), InLoop);
}

void Counting::add(IRBuilder<> &Builder, Value *Counter, Value *Amount, bool Volatile) {
    LoadInst *Before = Builder.CreateLoad(Builder.getInt64Ty(), Counter, Volatile);
    StoreInst *After = Builder.CreateStore(Builder.CreateAdd(Before, Amount), Counter, Volatile);
    Before->setMetadata(LLVMContext::MD_alias_scope, Scope);
    After->setMetadata(LLVMContext::MD_alias_scope, Scope);
}

void Counting::addToRegister(Loop *L, const Site &S) {
    AllocaInst *&Slot = Slots[{L, S.Counter}];
    IRBuilder<> Builder(F.getContext());
    Type *I64 = Builder.getInt64Ty();
    if (!Slot) {
        Builder.SetInsertPoint(&*F.getEntryBlock().begin());
        Slot = Builder.CreateAlloca(I64, nullptr, "quipu.count");
        Builder.SetInsertPoint(L->getLoopPreheader()->getTerminator());
        Builder.CreateStore(Builder.getInt64(0), Slot);
        flush(L, S.Counter, Slot);
    }
    Builder.SetInsertPoint(S.Where);
    Value *Added = S.Amount ? Builder.CreateZExtOrTrunc(S.Amount, I64) : Builder.getInt64(1);
    Value *After = Builder.CreateAdd(Builder.CreateLoad(I64, Slot), Added);
    Additions.emplace_back(After, S.Amount ? -1 : static_cast<int>(S.Counter));
    Builder.CreateStore(After, Slot);
}

void Counting::flush(Loop *L, unsigned Counter, AllocaInst *Slot) {
    SmallVector<BasicBlock *, 4> Exits;
    L->getUniqueExitBlocks(Exits);
    for (BasicBlock *Exit : Exits) {
        Instruction *Where = &*Exit->getFirstInsertionPt();
        IRBuilder<> Builder(Where);
        addToMemory(Where, Counter, Builder.CreateLoad(Builder.getInt64Ty(), Slot));
    }
}

/// Adds alias metadata to the loads, stores and memory intrinsics of the program: they do not access the counters.
/// Calls get none, because a callee may access the counters.
void Counting::separateMemory() {
    for (BasicBlock &BB : F) {
        for (Instruction &I : BB) {
            if (!isa<LoadInst, StoreInst, AnyMemIntrinsic>(I))
                continue;
            I.setMetadata(LLVMContext::MD_noalias, MDNode::concatenate(I.getMetadata(LLVMContext::MD_noalias), Scope));
        }
    }
}

/// Returns the registers that hold counts after promotion: the inserted additions and the phis between them.
SmallPtrSet<Value *, 32> Counting::registers() const {
    SmallPtrSet<Value *, 32> Web;
    SmallVector<Value *, 32> Work;
    auto Visit = [&](Value *V) {
        if (Web.insert(V).second)
            Work.push_back(V);
    };
    for (const auto &[Addition, Counter] : Additions)
        if (Addition)
            Visit(Addition);
    while (!Work.empty()) {
        auto *I = cast<Instruction>(Work.pop_back_val());
        // The second operand of an addition is the added value.
        for (unsigned Operand = 0; Operand < (isa<PHINode>(I) ? I->getNumOperands() : 1); Operand++)
            if (isa<PHINode>(I->getOperand(Operand)))
                Visit(I->getOperand(Operand));
        for (User *U : I->users())
            if (isa<PHINode>(U))
                Visit(U);
    }
    return Web;
}

/// Replaces each count that leaves `L` by a closed form of its value after the last iteration, computed in front of the
/// loop. Web: the result of registers().
void Counting::closeLoop(Loop &L, const SmallPtrSetImpl<Value *> &Web) {
    BasicBlock *Preheader = L.getLoopPreheader();
    if (!Preheader)
        return;
    const TargetTransformInfo &TTI = FAM.getResult<TargetIRAnalysis>(F);
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

/// Promotes the local variables of counts (`Slots`) to registers. Replaces counts by closed forms if scalar evolution
/// knows the trip count, because each remaining register is a further recurrence of the loop, with which LLVM
/// vectorizes reductions less well.
void Counting::promote() {
    if (Slots.empty())
        return;
    SmallVector<AllocaInst *, 16> Allocas;
    for (auto &Entry : Slots)
        Allocas.push_back(Entry.second);
    AssumptionCache &AC = FAM.getResult<AssumptionAnalysis>(F);
    PromoteMemToReg(Allocas, DT, &AC);
    for (Loop *L : LI)
        formLCSSARecursively(*L, DT, &LI, &SE);
    SmallPtrSet<Value *, 32> Web = registers();
    SmallVector<Loop *, 16> Loops = LI.getLoopsInPreorder();
    for (Loop *L : reverse(Loops))
        closeLoop(*L, Web);

    SmallVector<WeakTrackingVH, 32> Phis;
    for (Loop *L : Loops)
        for (PHINode &Phi : L->getHeader()->phis())
            if (Web.contains(&Phi))
                Phis.push_back(&Phi);
    for (WeakTrackingVH &Phi : Phis)
        if (auto *Alive = dyn_cast_or_null<PHINode>(Phi))
            RecursivelyDeleteDeadPHINode(Alive, &FAM.getResult<TargetLibraryAnalysis>(F));
}

} // namespace quipu

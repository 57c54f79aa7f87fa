// SPDX-License-Identifier: Apache-2.0
#include "scopes.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

#include <memory>

using namespace llvm;

namespace quipu {

/// The loops of a function, computed on demand.
struct Scopes::LoopsOf {
    struct Nest {
        explicit Nest(Function &F) : DT(F), Loops(DT) {}
        DominatorTree DT;
        LoopInfo Loops;
    };
    explicit LoopsOf(Function &F) : F(F) {}
    Nest &find() {
        if (!Known)
            Known = std::make_unique<Nest>(F);
        return *Known;
    }
    Function &F;
    std::unique_ptr<Nest> Known;
};

/// Largest number of scopes of one function. The work of further inlined functions belongs to the scope that they were
/// inlined into.
constexpr size_t MostScopes = 4096;

Scopes::Scopes(Function &F, FunctionAnalysisManager &FAM, const Identity &Self, const Marks &M,
               function_ref<bool(const Identity &)> IsShown)
    : M(M), Walking(streamsOf(F, FAM)), IsShown(IsShown), All{{&Self, 0}} {
    readHooks(F);
    LoopsOf Loops(F);
    findVanishing(F, Loops);
    for (const BasicBlock *BB : ReversePostOrderTraversal<Function *>(&F))
        readBlock(*BB);
    for (const BasicBlock &BB : F)
        if (!Work.count(&BB))
            readBlock(BB); // unreachable
    countUnmarked(Loops);
}

unsigned Scopes::below(unsigned Parent, const Identity *Function) {
    if (!Function || !IsShown(*Function))
        return Parent;
    for (unsigned Up = Parent;; Up = All[Up].Parent) {
        if (All[Up].Function->Name == Function->Name)
            return Up;
        if (Up == 0)
            break;
    }
    for (unsigned I = Parent + 1; I < All.size(); I++)
        if (All[I].Parent == Parent && All[I].Function->Name == Function->Name)
            return I;
    if (All.size() == MostScopes)
        return Parent;
    All.push_back({Function, Parent});
    return All.size() - 1;
}

unsigned Scopes::scopeAt(const DILocation *Place) {
    const DILocation *Call = Place->getInlinedAt();
    if (!Call)
        return 0;
    const Instance Here{Call, Place->getScope()->getSubprogram()};
    if (auto Found = Known.find(Here); Found != Known.end())
        return Found->second;
    const unsigned Found = below(scopeAt(Call), M.identityOf(Here.second));
    return Known[Here] = Found;
}

/// Reads the placeholders of hooks (marks.h) of inlined functions. Erases the placeholders that get no hook, and the
/// exits of calls whose enter the optimizer removed.
void Scopes::readHooks(Function &F) {
    std::vector<Hook> Found;
    for (BasicBlock &BB : F) {
        for (Instruction &I : make_early_inc_range(BB)) {
            if (!Marks::isEnter(I) && !Marks::isExit(I))
                continue;
            const DILocation *Place = I.getDebugLoc();
            const DISubprogram *Scope = Place ? Place->getScope()->getSubprogram() : nullptr;
            const Identity *Function = Scope ? M.identityOf(Scope) : nullptr;
            const unsigned At = Place ? scopeAt(Place) : 0;
            // No hook for the function itself (scope 0), for a function without a separate scope, and for a recursive
            // call, which shares the scope of an outer call.
            if (At == 0 || All[At].Function != Function || At == scopeAt(Place->getInlinedAt())) {
                I.eraseFromParent();
                continue;
            }
            Found.push_back({&I, {Place->getInlinedAt(), Scope}, At, Marks::isExit(I)});
            if (!Found.back().IsExit)
                Hooked.insert(Found.back().Of);
        }
    }
    for (const Hook &H : Found) {
        if (!Hooked.count(H.Of)) {
            H.Place->eraseFromParent();
            continue;
        }
        Hooks.push_back(H);
        All[H.Scope].Hooked = true;
    }
    for (const BasicBlock &BB : F) {
        const DILocation *Place =
            BB.isLandingPad() && !Hooks.empty() ? BB.getLandingPadInst()->getDebugLoc().get() : nullptr;
        for (; Place && Place->getInlinedAt() && !Around.count(&BB); Place = Place->getInlinedAt())
            if (const Instance Here{Place->getInlinedAt(), Place->getScope()->getSubprogram()}; Hooked.count(Here))
                Around[&BB] = Here;
    }
}

void Scopes::countMark(const BasicBlock &BB, const Instruction &I, const Identity &Function) {
    if (!IsShown(Function))
        return;
    const DILocation *Place = I.getDebugLoc();
    const DISubprogram *Scope = Place ? Place->getScope()->getSubprogram() : nullptr;
    if (Scope && M.identityOf(Scope) == &Function) {
        if (!Place->getInlinedAt())
            return; // the entry of the function itself
        Marked.insert({Place->getInlinedAt(), Scope});
        if (Hooked.count({Place->getInlinedAt(), Scope}))
            return;
        Work[&BB][scopeAt(Place)].Visits++;
        return;
    }
    // The location of the mark is not in `Function`. The optimizer has merged the marks of several inlined calls, for
    // example of both sides of a branch, and uses the nearest location around them. The visit counts below the scope of
    // that location.
    Merged.insert(&Function);
    Work[&BB][below(Place ? scopeAt(Place) : 0, &Function)].Visits++;
}

/// Returns whether SimplifyCFG would keep the block if it were empty (TryToSimplifyUncondBranchFromEmptyBlock of LLVM).
static bool isNeeded(const BasicBlock &BB, const SmallPtrSetImpl<const BasicBlock *> &Headers) {
    const BasicBlock *Next = BB.getSingleSuccessor();
    if (BB.isEntryBlock() || Next == &BB || (Headers.contains(Next) && BB.hasNPredecessorsOrMore(2)))
        return true;
    for (const PHINode &Phi : BB.phis())
        for (const User *U : Phi.users())
            if (const auto *There = dyn_cast<PHINode>(U); !There || There->getParent() != Next)
                return true;
    for (const PHINode &Phi : Next->phis())
        for (const BasicBlock *Before : predecessors(&BB)) {
            const Value *Now = Phi.getIncomingValueForBlock(&BB)->DoPHITranslation(&BB, Before);
            if (const int Way = Phi.getBasicBlockIndex(Before); Way >= 0 && Phi.getIncomingValue(Way) != Now)
                return true;
        }
    return false;
}

/// Returns whether later code needs a value of a loop that ends at this block. During loop optimizations, a PHI node of
/// the block passes on the value (LCSSA), and SimplifyCFG keeps the block. Only the last InstCombine removes the PHI
/// node. The block therefore exists without placeholders, too, and counts.
static bool passesOn(const BasicBlock &BB, const LoopInfo &Loops, const DominatorTree &DT) {
    SmallPtrSet<const Loop *, 4> Left;
    for (const BasicBlock *Before : predecessors(&BB))
        for (const Loop *L = Loops.getLoopFor(Before); L && !L->contains(&BB); L = L->getParentLoop())
            Left.insert(L);
    for (const Loop *L : Left)
        for (const BasicBlock *Inside : L->blocks())
            for (const Instruction &I : *Inside)
                for (const Use &U : I.uses()) {
                    const auto *Phi = dyn_cast<PHINode>(U.getUser());
                    const BasicBlock *There =
                        Phi ? Phi->getIncomingBlock(U) : cast<Instruction>(U.getUser())->getParent();
                    const bool Foldable = Phi && There == &BB && Phi->getParent() == BB.getSingleSuccessor();
                    if (!L->contains(There) && !Foldable && DT.dominates(&BB, There))
                        return true;
                }
    return false;
}

void Scopes::findVanishing(const Function &F, LoopsOf &Found) {
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 16> Back;
    FindFunctionBackedges(F, Back);
    SmallPtrSet<const BasicBlock *, 16> Headers;
    for (const auto &Edge : Back)
        Headers.insert(Edge.second);
    for (const BasicBlock &BB : F)
        if (Marks::hasOnlyPlaces(BB) && !isNeeded(BB, Headers) && !passesOn(BB, Found.find().Loops, Found.find().DT))
            Vanishing.insert(&BB);
}

void Scopes::readBlock(const BasicBlock &BB) {
    ScopedWork &Here = Work[&BB];
    MapVector<unsigned, unsigned> Instructions; // number of instructions by scope
    SmallVector<const Instruction *, 8> Unplaced;
    std::optional<unsigned> Latest;
    const bool Vanishes = vanishes(BB);
    auto Add = [&](const Instruction &I, unsigned At) {
        const Effort E = Vanishes ? Effort{} : effortOf(I);
        quipu::accumulate(Here[At].Code, E, 1);
        Instructions[At] += static_cast<unsigned>(E[QUIPU_COLUMN_INSTRUCTIONS]);
        if (At != 0)
            Placed[&I] = At;
    };
    for (const Instruction &I : BB) {
        if (const Identity *Function = M.markedBy(I)) {
            countMark(BB, I, *Function);
            continue;
        }
        if (!isWork(I))
            continue;
        if (const DILocation *Place = I.getDebugLoc()) {
            Latest = scopeAt(Place);
            for (const DILocation *At = Place; At->getInlinedAt(); At = At->getInlinedAt())
                Seen.insert({{At->getInlinedAt(), At->getScope()->getSubprogram()}, {scopeAt(At), &BB}});
        }
        if (!Latest) {
            Unplaced.push_back(&I);
            continue;
        }
        for (const Instruction *Before : Unplaced)
            Add(*Before, *Latest);
        Unplaced.clear();
        Add(I, *Latest);
    }
    for (const Instruction *Before : Unplaced)
        Add(*Before, 0);
    // The block counts for the scope with the most instructions. Among scopes with equally many, it counts for the
    // lowest number (parents come before children).
    unsigned Most = 0, Largest = Instructions.lookup(0);
    for (const auto &[At, Count] : Instructions) {
        if (Count > Largest || (Count == Largest && At < Most)) {
            Most = At;
            Largest = Count;
        }
    }
    if (!Vanishes)
        Work[&BB][Most].Code[QUIPU_COLUMN_BLOCKS]++;
}

Effort Scopes::effortOf(const Instruction &I) const {
    Effort E{};
    addEffort(E, I);
    E[QUIPU_COLUMN_BYTES_IN_ORDER] += Walking.lookup(&I);
    return E;
}

unsigned Scopes::scopeOf(const BasicBlock &BB) const {
    auto Found = Work.find(&BB);
    if (Found != Work.end())
        for (const auto &[At, Done] : Found->second)
            if (Done.Code[QUIPU_COLUMN_BLOCKS])
                return At;
    return 0;
}

/// Returns whether the loop belongs to the code that was inlined for this call: the terminators of all its latches do.
static bool isWithin(const Loop &L, const Scopes::Instance &Call) {
    SmallVector<BasicBlock *, 4> Latches;
    L.getLoopLatches(Latches);
    return all_of(Latches, [&](const BasicBlock *Latch) {
        const DILocation *At = Latch->getTerminator()->getDebugLoc();
        for (; At && At->getInlinedAt(); At = At->getInlinedAt())
            if (Scopes::Instance{At->getInlinedAt(), At->getScope()->getSubprogram()} == Call)
                return true;
        return false;
    });
}

/// Counts the visits of inlined calls without a mark. The optimizer drops the mark when it makes the code of an inlined
/// call unconditional (speculation). Such a visit counts in the block where the code of the call begins; if a loop of
/// the callee contains this block, it counts before the loop.
void Scopes::countUnmarked(LoopsOf &Found) {
    for (const auto &[Call, First] : Seen) {
        const Identity *Function = M.identityOf(Call.second);
        if (!Function || !IsShown(*Function) || Marked.count(Call) || Hooked.count(Call) || Merged.count(Function))
            continue;
        const BasicBlock *Begin = First.second;
        Loop *Own = nullptr;
        for (Loop *L = Found.find().Loops.getLoopFor(Begin); L && isWithin(*L, Call); L = L->getParentLoop())
            Own = L;
        if (Own) {
            const BasicBlock *Before = Own->getLoopPreheader();
            if (!Before) {
                LoopsOf::Nest &Nest = Found.find();
                Before = InsertPreheaderForLoop(Own, &Nest.DT, &Nest.Loops, nullptr, /*PreserveLCSSA=*/false);
                if (Before)
                    Vanishing.insert(Before);
            }
            Begin = Before ? Before : Begin;
        }
        Work[Begin][First.first].Visits++;
    }
}

} // namespace quipu

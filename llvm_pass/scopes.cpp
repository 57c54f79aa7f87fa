#include "scopes.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace quipu {

/// Scopes of one function; what would be more is part of its caller.
constexpr size_t MostScopes = 4096;

Scopes::Scopes(const Function &F, const Identity &Self, const Marks &M, function_ref<bool(const Identity &)> IsShown)
    : M(M), IsShown(IsShown), All{{&Self, 0}} {
    for (const BasicBlock *BB : ReversePostOrderTraversal<const Function *>(&F))
        readBlock(*BB);
    for (const BasicBlock &BB : F)
        if (!Work.count(&BB))
            readBlock(BB); // cannot be reached
    countUnmarked();
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
        if (All[I].Parent == Parent && All[I].Function == Function)
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

void Scopes::countMark(const BasicBlock &BB, const Instruction &I, const Identity &Function) {
    if (!IsShown(Function))
        return;
    const DILocation *Place = I.getDebugLoc();
    const DISubprogram *Scope = Place ? Place->getScope()->getSubprogram() : nullptr;
    if (Scope && M.identityOf(Scope) == &Function) {
        if (!Place->getInlinedAt())
            return; // the entry of the function itself
        Marked.insert({Place->getInlinedAt(), Scope});
        Work[&BB][scopeAt(Place)].Visits++;
        return;
    }
    // Both ways of a branch began with it: it is at the place that they have in common.
    Merged.insert(&Function);
    Work[&BB][below(Place ? scopeAt(Place) : 0, &Function)].Visits++;
}

void Scopes::readBlock(const BasicBlock &BB) {
    ScopedWork &Here = Work[&BB];
    MapVector<unsigned, unsigned> Instructions; // by scope
    SmallVector<const Instruction *, 8> Unplaced;
    std::optional<unsigned> Latest;
    auto Add = [&](const Instruction &I, unsigned At) {
        Effort E{};
        addEffort(E, I);
        quipu::accumulate(Here[At].Code, E, 1);
        Instructions[At] += static_cast<unsigned>(E[QUIPU_COLUMN_INSTRUCTIONS]);
        if (isVariableTransfer(I))
            Transfers[&I] = At;
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
    // The block itself is of the scope with the most instructions, and of the outer one of two.
    unsigned Most = 0;
    for (const auto &[At, Count] : Instructions)
        if (Count > Instructions[Most] || (Count == Instructions[Most] && At < Most))
            Most = At;
    Work[&BB][Most].Code[QUIPU_COLUMN_BLOCKS]++;
}

/// Where the optimizer made a call unconditional it dropped the mark: the call is counted where its code begins.
void Scopes::countUnmarked() {
    for (const auto &[Call, First] : Seen) {
        const Identity *Function = M.identityOf(Call.second);
        if (Function && IsShown(*Function) && !Marked.count(Call) && !Merged.count(Function))
            Work[First.second][First.first].Visits++;
    }
}

} // namespace quipu

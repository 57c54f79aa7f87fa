// SPDX-License-Identifier: Apache-2.0
#include "statements.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#include <set>
#include <utility>

using namespace llvm;

namespace quipu {
namespace {

/// Returns whether a return only passes on a value that each preceding block has stored.
bool onlyCollects(const ReturnInst &Return) {
    const auto *Value = dyn_cast_or_null<LoadInst>(Return.getReturnValue());
    const BasicBlock *BB = Return.getParent();
    if (!Value || Value->getParent() != BB || pred_size(BB) < 2)
        return false;
    for (const BasicBlock *Before : predecessors(BB)) {
        bool Stores = false;
        for (const Instruction &I : *Before)
            if (const auto *Store = dyn_cast<StoreInst>(&I))
                Stores |= Store->getPointerOperand() == Value->getPointerOperand();
        if (!Stores)
            return false;
    }
    return true;
}

bool isStatement(const Instruction &I) {
    if (const auto *Call = dyn_cast<CallBase>(&I)) {
        if (isa<MemIntrinsic>(I))
            return true;
        return Call->use_empty() && !isa<IntrinsicInst>(I) && !I.isDebugOrPseudoInst();
    }
    if (const auto *Branch = dyn_cast<BranchInst>(&I))
        return Branch->isConditional();
    if (const auto *Return = dyn_cast<ReturnInst>(&I))
        return Return->getReturnValue() && !onlyCollects(*Return);
    return isa<StoreInst, SwitchInst, IndirectBrInst, AtomicRMWInst, AtomicCmpXchgInst>(I);
}

} // namespace

unsigned countStatements(const Function &F) {
    const bool Described = F.getSubprogram() != nullptr;
    std::set<std::pair<const DIFile *, unsigned>> Lines;
    unsigned Instructions = 0;
    for (const BasicBlock &BB : F) {
        for (const Instruction &I : BB) {
            if (!isStatement(I))
                continue;
            Instructions++;
            // Stores of parameters have no location and do not count.
            if (const DILocation *Location = I.getDebugLoc().get(); Location && Location->getLine())
                Lines.emplace(Location->getFile(), Location->getLine());
        }
    }
    return Described ? static_cast<unsigned>(Lines.size()) : Instructions;
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "effort.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace quipu {
namespace {

int64_t &column(Effort &E, quipu_metric Metric) { return E[Metric - QUIPU_BLOCKS]; }

int64_t elementsOf(const Type *T) {
    if (const auto *Vector = dyn_cast<FixedVectorType>(T))
        return Vector->getNumElements();
    return 1;
}

int64_t bytesOf(Type *T, const DataLayout &Layout) {
    TypeSize Size = Layout.getTypeStoreSize(T);
    return Size.isScalable() ? static_cast<int64_t>(Size.getKnownMinValue())
                             : static_cast<int64_t>(Size.getFixedValue());
}

void addFlops(Effort &E, const Type *T, int64_t Each) {
    const int64_t Operations = Each * elementsOf(T);
    column(E, QUIPU_FLOPS) += Operations;
    if (T->getScalarType()->isFloatTy())
        column(E, QUIPU_FLOPS_SINGLE) += Operations;
    if (T->getScalarType()->isDoubleTy())
        column(E, QUIPU_FLOPS_DOUBLE) += Operations;
}

void addLoad(Effort &E, int64_t Bytes) {
    column(E, QUIPU_LOADS)++;
    column(E, QUIPU_BYTES_LOADED) += Bytes;
}

void addStore(Effort &E, int64_t Bytes) {
    column(E, QUIPU_STORES)++;
    column(E, QUIPU_BYTES_STORED) += Bytes;
}

void addIntrinsic(Effort &E, const IntrinsicInst &Call, const DataLayout &Layout) {
    Type *T = Call.getType();
    switch (Call.getIntrinsicID()) {
    case Intrinsic::fma:
    case Intrinsic::fmuladd:
    case Intrinsic::experimental_constrained_fma:
    case Intrinsic::experimental_constrained_fmuladd:
        return addFlops(E, T, 2);
    case Intrinsic::sqrt:
    case Intrinsic::minnum:
    case Intrinsic::maxnum:
    case Intrinsic::minimum:
    case Intrinsic::maximum:
    case Intrinsic::experimental_constrained_fadd:
    case Intrinsic::experimental_constrained_fsub:
    case Intrinsic::experimental_constrained_fmul:
    case Intrinsic::experimental_constrained_fdiv:
    case Intrinsic::experimental_constrained_frem:
    case Intrinsic::experimental_constrained_sqrt:
        return addFlops(E, T, 1);
    case Intrinsic::vector_reduce_fadd:
    case Intrinsic::vector_reduce_fmul:
        return addFlops(E, Call.getArgOperand(1)->getType(), 1);
    case Intrinsic::vector_reduce_fmin:
    case Intrinsic::vector_reduce_fmax:
        return addFlops(E, Call.getArgOperand(0)->getType(), 1);
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather:
        return addLoad(E, bytesOf(T, Layout));
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
        return addStore(E, bytesOf(Call.getArgOperand(0)->getType(), Layout));
    default:
        break;
    }
    if (const auto *Memory = dyn_cast<AnyMemIntrinsic>(&Call)) {
        const auto *Length = dyn_cast<ConstantInt>(Memory->getLength());
        const int64_t Bytes = Length ? static_cast<int64_t>(Length->getZExtValue()) : 0;
        if (isa<AnyMemTransferInst>(Memory))
            addLoad(E, Bytes);
        addStore(E, Bytes);
    }
}

} // namespace

bool isWork(const Instruction &I) {
    if (isa<PHINode>(I) || I.isDebugOrPseudoInst() || I.isLifetimeStartOrEnd())
        return false;
    const auto *Call = dyn_cast<IntrinsicInst>(&I);
    return !Call || !Call->isAssumeLikeIntrinsic() || isa<AnyMemIntrinsic>(Call);
}

void accumulate(Effort &Target, const Effort &Other, int64_t Factor) {
    for (size_t I = 0; I < Target.size(); I++)
        Target[I] += Factor * Other[I];
}

void accumulate(ScopedWork &Target, const ScopedWork &Other, int64_t Factor) {
    for (const auto &[Scope, Done] : Other) {
        Work &Sum = Target[Scope];
        Sum.Visits += Factor * Done.Visits;
        quipu::accumulate(Sum.Code, Done.Code, Factor);
    }
}

bool isNothing(const Work &Done) { return !Done.Visits && Done.Code == Effort{}; }

bool isNothing(const ScopedWork &Done) {
    return all_of(Done, [](const auto &Entry) { return isNothing(Entry.second); });
}

void addEffort(Effort &E, const Instruction &I) {
    if (!isWork(I))
        return;
    const DataLayout &Layout = I.getModule()->getDataLayout();
    column(E, QUIPU_INSTRUCTIONS)++;
    if (const auto *Call = dyn_cast<IntrinsicInst>(&I))
        return addIntrinsic(E, *Call, Layout);
    switch (I.getOpcode()) {
    case Instruction::FAdd:
    case Instruction::FSub:
    case Instruction::FMul:
    case Instruction::FDiv:
    case Instruction::FRem:
        addFlops(E, I.getType(), 1);
        break;
    case Instruction::Load:
        addLoad(E, bytesOf(I.getType(), Layout));
        break;
    case Instruction::Store:
        addStore(E, bytesOf(cast<StoreInst>(I).getValueOperand()->getType(), Layout));
        break;
    case Instruction::AtomicRMW: {
        const auto &Update = cast<AtomicRMWInst>(I);
        addLoad(E, bytesOf(I.getType(), Layout));
        addStore(E, bytesOf(I.getType(), Layout));
        if (Update.isFloatingPointOperation())
            addFlops(E, I.getType(), 1);
        break;
    }
    case Instruction::AtomicCmpXchg: {
        const int64_t Bytes = bytesOf(cast<AtomicCmpXchgInst>(I).getCompareOperand()->getType(), Layout);
        addLoad(E, Bytes);
        addStore(E, Bytes);
        break;
    }
    default:
        break;
    }
}

bool isVariableTransfer(const Instruction &I) {
    const auto *Memory = dyn_cast<AnyMemIntrinsic>(&I);
    return Memory && !isa<ConstantInt>(Memory->getLength());
}

Transfer transferOf(Instruction &I) { return {cast<AnyMemIntrinsic>(I).getLength(), isa<AnyMemTransferInst>(I)}; }

bool isRealCall(const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    return Call && !isa<IntrinsicInst>(Call) && !Call->isInlineAsm();
}

bool mayNotReturn(const Instruction &I) {
    if (!isRealCall(I))
        return false;
    const auto &Call = cast<CallBase>(I);
    return !Call.hasFnAttr(Attribute::WillReturn) || !Call.doesNotThrow() || Call.hasFnAttr(Attribute::ReturnsTwice);
}

} // namespace quipu

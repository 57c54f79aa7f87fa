// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

using namespace llvm;

namespace quipu {
namespace {

/// Bytes of a cache line, on x86 and most Arm processors.
constexpr int64_t Line = 64;
/// Longest stride in bytes that prefetchers follow (Intel 64 and IA-32 Architectures Optimization Reference Manual,
/// "Data Prefetch to L1 Data Cache": strides of up to 2 KiB).
constexpr int64_t LongestStride = 2048;

class Walks {
  public:
    Walks(Function &F, FunctionAnalysisManager &FAM)
        : F(F), DT(F), Loops(DT),
          SE(F, FAM.getResult<TargetLibraryAnalysis>(F), FAM.getResult<AssumptionAnalysis>(F), DT, Loops) {}

    Streams find() {
        if (Loops.empty())
            return Streams();
        for (BasicBlock *BB : ReversePostOrderTraversal<Function *>(&F))
            if (const Loop *L = Loops.getLoopFor(BB))
                for (Instruction &I : *BB)
                    read(*L, I);
        return std::move(Found);
    }

  private:
    void read(const Loop &L, Instruction &I) {
        if (Value *Address = getLoadStorePointerOperand(&I))
            return add(L, I, Address, Line);
        if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
            return add(L, I, Update->getPointerOperand(), Line);
        if (auto *Update = dyn_cast<AtomicCmpXchgInst>(&I))
            return add(L, I, Update->getPointerOperand(), Line);
        auto *Memory = dyn_cast<AnyMemIntrinsic>(&I);
        const auto *Length = Memory ? dyn_cast<ConstantInt>(Memory->getLength()) : nullptr;
        if (!Length)
            return;
        const auto Bytes = static_cast<int64_t>(Length->getLimitedValue(LongestStride));
        add(L, I, Memory->getRawDest(), Bytes);
        if (auto *Copy = dyn_cast<AnyMemTransferInst>(Memory))
            add(L, I, Copy->getRawSource(), Bytes);
    }

    /// Adds an access, unless an access that is always executed before is on the same cache line. Most: largest number
    /// of bytes of one execution.
    void add(const Loop &L, const Instruction &I, Value *Address, int64_t Most) {
        if (!SE.isSCEVable(Address->getType()))
            return;
        const SCEV *Place = SE.getSCEV(Address);
        const std::optional<int64_t> Stride = strideIn(L, Place);
        if (!Stride || *Stride == 0 || std::abs(*Stride) > LongestStride)
            return;
        const auto [Offset, Base] = apart(Place);
        auto &Beside = Known[{&L, Base}];
        for (const auto &[Other, Where] : Beside)
            if (std::abs(Other - Offset) < Line && DT.dominates(Where, I.getParent()))
                return;
        Beside.push_back({Offset, I.getParent()});
        Found[&I] += std::min(std::abs(*Stride), Most);
    }

    /// Returns the growth of an expression per iteration; none if it is unknown or varies.
    std::optional<int64_t> strideIn(const Loop &L, const SCEV *S) {
        if (SE.isLoopInvariant(S, &L))
            return 0;
        if (const auto *Growing = dyn_cast<SCEVAddRecExpr>(S))
            return Growing->getLoop() == &L && Growing->isAffine() ? numberOf(Growing->getStepRecurrence(SE))
                                                                   : std::nullopt;
        if (const auto *Cast = dyn_cast<SCEVIntegralCastExpr>(S))
            return strideIn(L, Cast->getOperand()); // correct if the cast does not overflow
        if (const auto *Product = dyn_cast<SCEVMulExpr>(S)) {
            const std::optional<int64_t> Factor = numberOf(Product->getOperand(0));
            const std::optional<int64_t> Of =
                Product->getNumOperands() == 2 ? strideIn(L, Product->getOperand(1)) : std::nullopt;
            return Factor && Of && std::abs(*Of) <= LongestStride ? std::optional(*Factor * *Of) : std::nullopt;
        }
        const auto *Terms = dyn_cast<SCEVAddExpr>(S);
        if (!Terms)
            return std::nullopt;
        int64_t Sum = 0;
        for (const SCEV *Operand : Terms->operands()) {
            const std::optional<int64_t> Of = strideIn(L, Operand);
            if (!Of)
                return std::nullopt;
            Sum += *Of;
        }
        return Sum;
    }

    static std::optional<int64_t> numberOf(const SCEV *S) {
        const auto *Constant = dyn_cast<SCEVConstant>(S);
        if (!Constant || !Constant->getAPInt().isSignedIntN(32))
            return std::nullopt;
        return Constant->getAPInt().getSExtValue();
    }

    /// Splits an expression into a constant and the rest. Expressions that differ by a constant have the same rest.
    std::pair<int64_t, const SCEV *> apart(const SCEV *S) {
        if (const auto *Growing = dyn_cast<SCEVAddRecExpr>(S); Growing && Growing->isAffine()) {
            const auto [Offset, Start] = apart(Growing->getStart());
            const SCEV *Step = Growing->getStepRecurrence(SE);
            return {Offset, SE.getAddRecExpr(Start, Step, Growing->getLoop(), SCEV::FlagAnyWrap)};
        }
        const auto *Sum = dyn_cast<SCEVAddExpr>(S);
        if (!Sum)
            return {0, S};
        int64_t Total = 0;
        SmallVector<const SCEV *, 4> Rest;
        for (const SCEV *Operand : Sum->operands()) {
            if (const std::optional<int64_t> Number = numberOf(Operand)) {
                Total += *Number;
                continue;
            }
            const auto [Offset, Base] = apart(Operand);
            Total += Offset;
            Rest.push_back(Base);
        }
        return {Total, Rest.empty() ? S : SE.getAddExpr(Rest)};
    }

    Function &F;
    DominatorTree DT;
    LoopInfo Loops;
    ScalarEvolution SE;
    using Places = SmallVector<std::pair<int64_t, const BasicBlock *>, 4>;
    DenseMap<std::pair<const Loop *, const SCEV *>, Places> Known;
    Streams Found;
};

} // namespace

Streams streamsOf(Function &F, FunctionAnalysisManager &FAM) { return Walks(F, FAM).find(); }

} // namespace quipu

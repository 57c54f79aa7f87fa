// SPDX-License-Identifier: Apache-2.0
#include "carried.h"

#include "llvm/ADT/SCCIterator.h"
#include "llvm/Analysis/CallGraph.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace quipu {
namespace {

/// Limits for one carried function (MostCounters, MostScopesCarried), and for all carried functions of one caller
/// (MostOfCaller counters and scopes). Each counter takes memory in every call path of the caller.
constexpr size_t MostCounters = 32, MostScopesCarried = 64, MostOfCaller = 256;

/// Returns whether the caller can have MostOfCaller additional counters, whatever its counting plan is.
bool hasRoom(const Function &F) {
    size_t Most = 0;
    for (const BasicBlock &BB : F) {
        Most += 1 + succ_size(&BB);
        for (const Instruction &I : BB)
            Most += isVariableTransfer(I);
    }
    return Most + MostOfCaller <= QUIPU_MOST_COUNTERS;
}

} // namespace

bool isFewToCarry(size_t Counters, size_t Scopes) { return Counters <= MostCounters && Scopes <= MostScopesCarried; }

CarriedCalls::CarriedCalls(Function &F, Scopes &Within, const CarriedFunctions &Known) : Within(&Within) {
    if (Known.empty() || !hasRoom(F))
        return;
    for (BasicBlock &BB : F) {
        bool MayHaveEnded = false;
        for (Instruction &I : BB) {
            bool Returns = false;
            if (auto *Call = dyn_cast<CallBase>(&I); Call && Call->getCalledFunction())
                if (auto Entry = Known.find(Call->getCalledFunction());
                    Entry != Known.end() && takes(*Call, Entry->second)) {
                    add(*Call, Entry->second, MayHaveEnded);
                    Returns = Entry->second.Returns;
                }
            MayHaveEnded |= !Returns && mayNotReturn(I);
        }
    }
}

void CarriedCalls::add(CallBase &Call, const Carried &What, bool MayHaveEnded) {
    const unsigned Scope = Within->scopeOf(Call);
    Group &G = groupOf(What, Scope);
    Sites[&Call] = Index.lookup({&What, Scope});
    Found.insert(&Call);
    ScopedWork Visit = mapped(G, 0);
    if (!MayHaveEnded) {
        G.Blocks.push_back(Call.getParent());
        Within->add(*Call.getParent(), Visit);
    } else if (!isNothing(Visit)) {
        if (!G.VisitRow) {
            G.VisitRow = Rows.size();
            Rows.push_back(std::move(Visit));
        }
        Visits.push_back({&Call, *G.VisitRow});
    }
}

void CarriedCalls::markReturning() const {
    for (const auto &[Call, Number] : Sites)
        if (Groups[Number].What->Returns) {
            Call->setDoesNotThrow();
            Call->addFnAttr(Attribute::WillReturn);
        }
}

bool CarriedCalls::takes(const CallBase &Call, const Carried &What) {
    const Function *Callee = Call.getCalledFunction();
    return Call.getFunctionType() == Callee->getFunctionType() && Call.getCallingConv() == Callee->getCallingConv() &&
           !Call.isMustTailCall() && !isa<CallBrInst>(Call) &&
           (Index.count({&What, Within->scopeOf(Call)}) ||
            (Rows.size() + What.counters() + 1 <= MostOfCaller &&
             Within->scopes().size() + What.Inner.size() <= MostOfCaller));
}

CarriedCalls::Group &CarriedCalls::groupOf(const Carried &What, unsigned Scope) {
    auto [Entry, Fresh] = Index.try_emplace({&What, Scope}, Groups.size());
    if (!Fresh)
        return Groups[Entry->second];
    Groups.push_back({&What, {}, static_cast<unsigned>(Rows.size()), std::nullopt, {}});
    Group &G = Groups.back();
    G.ScopeOf.push_back(Within->below(Scope, What.Self));
    if (What.IsShown)
        Within->setCalled(G.ScopeOf.front());
    for (const auto &Inner : drop_begin(What.Inner)) {
        G.ScopeOf.push_back(Within->below(G.ScopeOf[Inner.Parent], Inner.Function));
        if (Inner.Called)
            Within->setCalled(G.ScopeOf.back());
    }
    for (unsigned Row = 1; Row < What.Weights.size(); Row++)
        Rows.push_back(mapped(G, Row));
    return G;
}

/// Returns a row of weights of the callee, with the indexes of the scopes in the caller.
ScopedWork CarriedCalls::mapped(const Group &G, unsigned Row) const {
    ScopedWork Sum;
    for (const auto &[Scope, Done] : G.What->Weights[Row]) {
        Work &Here = Sum[G.ScopeOf[Scope]];
        Here.Visits += Scope == 0 && !G.What->IsShown ? 0 : Done.Visits;
        quipu::accumulate(Here.Code, Done.Code, 1);
    }
    return Sum;
}

void CarriedCalls::addClasses(ClassTable &Table, unsigned First) const {
    for (const Group &G : Groups) {
        std::optional<unsigned> VisitRow;
        if (G.VisitRow)
            VisitRow = First + *G.VisitRow;
        Table.addCallee(G.What->Classes, G.ScopeOf, G.Blocks, VisitRow, First + G.First);
    }
}

void CarriedCalls::addAdditions(DenseMap<const BasicBlock *, int64_t> &PerBlock,
                                MutableArrayRef<int64_t> PerRow) const {
    for (const Group &G : Groups) {
        const ArrayRef<int64_t> Own = G.What->Additions;
        const int64_t OfCall = Own[0] + (G.What->counters() > 0); // the call passes the address of the counters
        for (const BasicBlock *BB : G.Blocks)
            PerBlock[BB] += OfCall;
        if (G.VisitRow)
            PerRow[*G.VisitRow] += OfCall;
        for (size_t Row = 1; Row < Own.size(); Row++)
            PerRow[G.First + Row - 1] += Own[Row];
    }
}

void CarriedCalls::redirect(Value *Counters, unsigned First) {
    for (auto &[Call, Number] : Sites) {
        const Group &G = Groups[Number];
        Function *Target = G.What->Counted;
        if (!G.What->counters()) {
            Call->setCalledFunction(Target);
            continue;
        }
        IRBuilder<> Builder(Call);
        SmallVector<Value *, 8> Arguments(Call->args());
        Arguments.push_back(Builder.CreateConstInBoundsGEP1_64(Builder.getInt64Ty(), Counters, First + G.First));
        SmallVector<OperandBundleDef, 2> Bundles;
        Call->getOperandBundlesAsDefs(Bundles);
        CallBase *Made;
        if (auto *Invoke = dyn_cast<InvokeInst>(Call)) {
            Made = Builder.CreateInvoke(Target, Invoke->getNormalDest(), Invoke->getUnwindDest(), Arguments, Bundles);
        } else {
            CallInst *Plain = Builder.CreateCall(Target, Arguments, Bundles);
            Plain->setTailCallKind(cast<CallInst>(Call)->getTailCallKind());
            Made = Plain;
        }
        Made->setCallingConv(Call->getCallingConv());
        Made->setAttributes(Call->getAttributes());
        Made->addParamAttr(Arguments.size() - 1, Attribute::Nest);
        Made->copyMetadata(*Call);
        Made->setDebugLoc(Call->getDebugLoc());
        if (isa<FPMathOperator>(Made))
            Made->copyFastMathFlags(Call);
        Made->takeName(Call);
        Call->replaceAllUsesWith(Made);
        Call->eraseFromParent();
    }
    Sites.clear();
    Found.clear();
}

Function *withCounters(Function &F) {
    Type *Pointer = PointerType::getUnqual(F.getContext());
    SmallVector<Type *, 8> Parameters(F.getFunctionType()->params());
    Parameters.push_back(Pointer);
    auto *Type = FunctionType::get(F.getReturnType(), Parameters, /*isVarArg=*/false);
    Function *Made = Function::Create(Type, F.getLinkage(), F.getAddressSpace());
    F.getParent()->getFunctionList().insert(F.getIterator(), Made);
    Made->copyAttributesFrom(&F);
    Made->setComdat(F.getComdat());
    Made->copyMetadata(&F, 0);
    Made->splice(Made->begin(), &F);
    for (auto [Old, New] : zip(F.args(), Made->args())) {
        Old.replaceAllUsesWith(&New);
        New.takeName(&Old);
    }
    Made->addParamAttr(Parameters.size() - 1, Attribute::Nest);
    Made->getArg(Parameters.size() - 1)->setName("quipu.counters");
    Made->takeName(&F);
    F.replaceAllUsesWith(Made);
    return Made;
}

bool alwaysReturns(const Function &F) {
    return !hasCycle(F) && all_of(F, [](const BasicBlock &BB) {
        return (!succ_empty(&BB) || isa<ReturnInst>(BB.getTerminator())) && none_of(BB, mayNotReturn);
    });
}

uint64_t numberOf(ArrayRef<Scope> Inner, ArrayRef<ScopedWork> Weights, bool Returns) {
    std::string Text;
    raw_string_ostream Stream(Text);
    Stream << Returns << '\n';
    for (const Scope &S : Inner)
        Stream << S.Function->Name << ' ' << S.Parent << '\n';
    for (const ScopedWork &Row : Weights) {
        for (const auto &[Scope, Done] : Row) {
            Stream << Scope << ' ' << Done.Visits;
            for (const int64_t Number : Done.Code)
                Stream << ' ' << Number;
            Stream << ';';
        }
        Stream << '\n';
    }
    Stream.flush();
    return xxHash64(Text);
}

std::vector<std::pair<Function *, bool>> calleesFirst(Module &M) {
    CallGraph Calls(M);
    std::vector<std::pair<Function *, bool>> Order;
    SmallPtrSet<const Function *, 32> Seen;
    auto Add = [&](Function *F, bool CallsItself) {
        if (F && !F->isDeclaration() && Seen.insert(F).second)
            Order.emplace_back(F, CallsItself);
    };
    for (auto Group = scc_begin(&Calls); !Group.isAtEnd(); ++Group)
        for (const CallGraphNode *Node : *Group)
            Add(Node->getFunction(), Group.hasCycle());
    for (Function &F : M)
        Add(&F, true);
    return Order;
}

} // namespace quipu

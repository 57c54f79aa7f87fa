// SPDX-License-Identifier: Apache-2.0
#include "classes.h"

#include "names.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace quipu {

ClassTable::ClassTable(const Function &F, const Scopes &Within, const CountingPlan &Plan, const DominatorTree &DT,
                       const LoopInfo &LI)
    : F(F), Within(Within) {
    DenseMap<const BasicBlock *, Terms> Shares;
    for (size_t Row = 0; Row < Plan.Shares.size(); Row++) {
        for (const auto &[BB, Share] : Plan.Shares[Row]) {
            if (!Within.work().count(BB))
                continue;
            Terms &Of = Shares[BB];
            if (!Of.empty() && Of.back().first == Row)
                Of.back().second += Share;
            else
                Of.push_back({static_cast<unsigned>(Row), Share});
        }
    }
    std::map<Terms, unsigned> Known;
    for (const BasicBlock &BB : F) {
        auto Found = Shares.find(&BB); // NOLINT(llvm-qualified-auto): a pointer in some LLVMs only
        if (Found == Shares.end())
            continue;
        Terms &Of = Found->second;
        erase_if(Of, [](const auto &Term) { return Term.second == 0; });
        auto [Entry, Fresh] = Known.try_emplace(Of, Groups.size());
        if (Fresh)
            Groups.push_back({Of, &BB, LI.getLoopDepth(&BB)});
        Group &G = Groups[Entry->second];
        // `First` becomes the block that dominates the others, if there is one.
        if (DT.isReachableFromEntry(&BB) && DT.dominates(&BB, G.First))
            G.First = &BB;
        G.Depth = std::max(G.Depth, LI.getLoopDepth(&BB));
        GroupOf[&BB] = Entry->second;
    }
    for (const BasicBlock &BB : F)
        if (auto Found = GroupOf.find(&BB); Found != GroupOf.end())
            addBlock(BB, Found->second);
    nest(DT);
}

CountClass &ClassTable::classOf(unsigned Group, unsigned Scope) {
    auto [Entry, Fresh] = Index.try_emplace({Group, Scope}, All.size());
    if (Fresh) {
        CountClass C{};
        C.Scope = Scope;
        C.Depth = Groups[Group].Depth;
        C.Within = -1;
        C.Terms = Groups[Group].Shares;
        All.push_back(std::move(C));
    }
    return All[Entry->second];
}

/// Adds the effort of a block to the classes of its group. The block itself (metric blocks) counts at the first line of
/// the scope that it counts for.
void ClassTable::addBlock(const BasicBlock &BB, unsigned Group) {
    if (Within.vanishes(BB))
        return;
    bool Counted = false;
    for (const Instruction &I : BB) {
        Effort E = Within.effortOf(I);
        if (E == Effort{})
            continue;
        const unsigned Scope = Within.scopeOf(I);
        if (!Counted && Scope == Within.scopeOf(BB)) {
            Counted = true;
            E[QUIPU_COLUMN_BLOCKS] = 1;
        }
        CountClass &C = classOf(Group, Scope);
        quipu::accumulate(placeOf(C, I).Code, E, 1);
        if (isRealCall(I))
            if (const auto *Callee = dyn_cast<Function>(cast<CallBase>(I).getCalledOperand()->stripPointerCasts()))
                C.Calls.insert(Callee);
    }
    if (!Counted) {
        CountClass &C = classOf(Group, Within.scopeOf(*BB.getTerminator()));
        placeOf(C, *BB.getTerminator()).Code[QUIPU_COLUMN_BLOCKS]++;
    }
}

/// Sets the enclosing class of each class: the class of the nearest dominator in the same scope that is in another
/// group.
void ClassTable::nest(const DominatorTree &DT) {
    for (auto &[Key, Number] : Index) {
        const auto *Node = DT.getNode(Groups[Key.first].First);
        for (Node = Node ? Node->getIDom() : nullptr; Node; Node = Node->getIDom()) {
            auto Above = GroupOf.find(Node->getBlock()); // NOLINT(llvm-qualified-auto)
            if (Above == GroupOf.end() || Above->second == Key.first)
                continue;
            if (auto Found = Index.find({Above->second, Key.second}); Found != Index.end()) {
                All[Number].Within = static_cast<int>(Found->second);
                break;
            }
        }
    }
}

PlaceEffort &ClassTable::place(CountClass &C, const DISubprogram *From, unsigned Line) {
    for (PlaceEffort &P : C.Places)
        if (P.Function == From && P.Line == Line)
            return P;
    C.Places.push_back({From, "", Line, {}});
    if (From)
        C.Places.back().Display = From == F.getSubprogram() ? displayName(F) : displayName(*From);
    return C.Places.back();
}

PlaceEffort &ClassTable::placeOf(CountClass &C, const Instruction &I) {
    if (const DILocation *Location = I.getDebugLoc().get(); Location && Location->getLine())
        return place(C, Location->getScope()->getSubprogram(), Location->getLine());
    const DISubprogram *Own = F.getSubprogram();
    return place(C, Own, Own ? Own->getLine() : 0);
}

CountClass &ClassTable::ofRow(unsigned Row, unsigned Scope) {
    auto [Entry, Fresh] = RowIndex.try_emplace({Row, Scope}, All.size());
    if (Fresh) {
        CountClass C{};
        C.Scope = Scope;
        C.Within = -1;
        C.Terms = {{Row, 1}};
        All.push_back(std::move(C));
    }
    return All[Entry->second];
}

void ClassTable::addTransfer(unsigned Row, const Instruction &I, const Effort &Weight) {
    // Transfers with a common counter cannot be separated. The line of the first transfer gets all bytes.
    CountClass &C = ofRow(Row, Within.scopeOf(I));
    if (!C.Places.empty())
        return;
    if (auto Found = GroupOf.find(I.getParent()); Found != GroupOf.end()) {
        C.Depth = Groups[Found->second].Depth;
        if (auto Around = Index.find({Found->second, C.Scope}); Around != Index.end())
            C.Within = static_cast<int>(Around->second);
    }
    placeOf(C, I).Code = Weight;
}

void ClassTable::addCallee(ArrayRef<CountClass> Classes, ArrayRef<unsigned> ScopeOf,
                           ArrayRef<const BasicBlock *> Blocks, std::optional<unsigned> VisitRow, unsigned First) {
    std::map<unsigned, int64_t> Visits;
    unsigned Depth = 0;
    for (const BasicBlock *BB : Blocks) {
        auto Found = GroupOf.find(BB); // NOLINT(llvm-qualified-auto): a pointer in some LLVMs only
        if (Found == GroupOf.end())
            continue;
        Depth = std::max(Depth, Groups[Found->second].Depth);
        for (const auto &[Row, Share] : Groups[Found->second].Shares)
            Visits[Row] += Share;
    }
    if (VisitRow)
        Visits[*VisitRow]++;
    const int Base = static_cast<int>(All.size());
    for (const CountClass &Given : Classes) {
        CountClass C = Given;
        C.Scope = ScopeOf[Given.Scope];
        C.Depth += Depth;
        if (Given.Within >= 0)
            C.Within = ScopeOf[Classes[Given.Within].Scope] == C.Scope ? Base + Given.Within : -1;
        std::map<unsigned, int64_t> Sum;
        for (const auto &[Row, Share] : Given.Terms) {
            if (Row > 0)
                Sum[First + Row - 1] += Share;
            for (const auto &[Of, Times] : Visits)
                if (Row == 0)
                    Sum[Of] += Share * Times;
        }
        C.Terms.clear();
        for (const auto &[Row, Share] : Sum)
            if (Share)
                C.Terms.emplace_back(Row, Share);
        All.push_back(std::move(C));
    }
}

void ClassTable::complete(unsigned Row, unsigned Scope, const Effort &Weight) {
    Effort Missing = Weight;
    const DISubprogram *Own = Scope == 0 ? F.getSubprogram() : nullptr;
    for (const CountClass &C : All) {
        if (C.Scope != Scope)
            continue;
        for (const PlaceEffort &P : C.Places) {
            Own = Own ? Own : P.Function;
            for (const auto &[Of, Share] : C.Terms)
                if (Of == Row)
                    quipu::accumulate(Missing, P.Code, -Share);
        }
    }
    if (Missing != Effort{}) {
        CountClass &C = ofRow(Row, Scope);
        quipu::accumulate(place(C, Own, Own ? Own->getLine() : 0).Code, Missing, 1);
    }
}

static std::string pathOf(const DISubprogram &Function) {
    SmallString<256> Path = Function.getFilename();
    if (!sys::path::is_absolute(Path)) {
        Path = Function.getDirectory();
        sys::path::append(Path, Function.getFilename());
    }
    sys::path::remove_dots(Path, true);
    return Path.str().str();
}

unsigned PlaceFunctions::numberOf(const PlaceEffort &Place) {
    auto [Entry, Fresh] = Number.try_emplace({Place.Function, Place.Display}, Written.size());
    if (Fresh) {
        const StringRef Name = Place.Function ? linkerName(*Place.Function) : "";
        const bool Known = Place.Function && Place.Display == readableName(Name);
        raw_string_ostream Stream(Written.emplace_back());
        json::OStream Json(Stream);
        Json.array([&] {
            Json.value(Known ? "" : json::fixUTF8(Place.Display));
            Json.value(json::fixUTF8(Name));
            Json.value(Place.Function ? json::fixUTF8(pathOf(*Place.Function)) : "");
        });
    }
    return Entry->second;
}

void writeClasses(json::OStream &Json, ArrayRef<CountClass> Classes, unsigned Scope, unsigned Shift,
                  PlaceFunctions &Functions) {
    DenseMap<int, unsigned> Number; // numbers of the classes of this scope
    for (const CountClass &C : Classes)
        if (C.Scope == Scope)
            Number[static_cast<int>(&C - Classes.begin())] = Number.size();
    Json.attributeArray("classes", [&] {
        for (const CountClass &C : Classes) {
            if (C.Scope != Scope)
                continue;
            Json.array([&] {
                auto Around = Number.find(C.Within); // NOLINT(llvm-qualified-auto)
                Json.value(Around == Number.end() ? -1 : static_cast<int64_t>(Around->second));
                Json.value(C.Depth);
                Json.array([&] {
                    for (const auto &[Row, Share] : C.Terms) {
                        Json.value(Row + Shift);
                        Json.value(Share);
                    }
                });
                Json.array([&] {
                    for (const Function *Callee : C.Calls)
                        Json.value(json::fixUTF8(linkerName(*Callee)));
                });
                Json.array([&] {
                    for (const PlaceEffort &P : C.Places) {
                        Json.array([&] {
                            Json.value(Functions.numberOf(P));
                            Json.value(P.Line);
                            size_t Last = P.Code.size();
                            while (Last > 0 && P.Code[Last - 1] == 0)
                                Last--;
                            for (size_t I = 0; I < Last; I++)
                                Json.value(P.Code[I]);
                        });
                    }
                });
            });
        }
    });
}

} // namespace quipu

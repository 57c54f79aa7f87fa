// SPDX-License-Identifier: Apache-2.0
#include "callgraph.h"

#include "libraries.h"
#include "names.h"
#include "sections.h"
#include "selection.h"
#include "statements.h"
#include "worth.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Process.h"

#include <map>
#include <optional>

using namespace llvm;

namespace quipu {
namespace {

/// Number of call sites with the same callee or type, and the largest loop depth of these call sites.
struct Sites {
    unsigned Count = 0;
    unsigned Depth = 0;

    void add(unsigned LoopDepth) {
        Count++;
        Depth = std::max(Depth, LoopDepth);
    }
};

std::string typeText(const FunctionType *Type) {
    std::string Text;
    raw_string_ostream Stream(Text);
    Type->print(Stream);
    Stream.flush();
    return Text;
}

bool isVirtualTable(const GlobalVariable &Global) {
    return Global.getName().starts_with("_ZTV") || Global.getName().starts_with("_ZTC");
}

/// Collects the functions that a constant refers to, except through other globals.
void collectFunctions(const Constant *Value, SmallPtrSetImpl<const Constant *> &Seen,
                      SetVector<const GlobalValue *> &Found) {
    if (isa<Function, GlobalAlias>(Value)) {
        if (Value->stripPointerCasts()->getType()->isPointerTy() &&
            cast<GlobalValue>(Value)->getValueType()->isFunctionTy())
            Found.insert(cast<GlobalValue>(Value));
        return;
    }
    if (isa<GlobalValue, BlockAddress, ConstantData>(Value) || !Seen.insert(Value).second)
        return;
    for (const Use &Operand : Value->operands())
        if (const auto *Part = dyn_cast<Constant>(Operand.get()))
            collectFunctions(Part, Seen, Found);
}

SetVector<const GlobalValue *> functionsIn(const Value *Operand) {
    SetVector<const GlobalValue *> Found;
    SmallPtrSet<const Constant *, 16> Seen;
    if (const auto *Value = dyn_cast<Constant>(Operand))
        collectFunctions(Value, Seen, Found);
    return Found;
}

/// Returns the index of the entry of the virtual table that a call uses; none if the call is not virtual. Above -O0,
/// clang marks the load of the table's address with the TBAA type "vtable pointer". At -O0, a call counts as virtual if
/// its target is loaded from a constant offset in a table, whose address is loaded from an object that is also an
/// argument.
std::optional<uint64_t> virtualRow(const CallBase &Call, const DataLayout &Layout) {
    const auto *Target = dyn_cast<LoadInst>(Call.getCalledOperand());
    if (!Target)
        return std::nullopt;
    const Value *Row = Target->getPointerOperand();
    APInt Offset(Layout.getIndexTypeSizeInBits(Row->getType()), 0);
    if (const auto *Step = dyn_cast<GEPOperator>(Row)) {
        if (!Step->accumulateConstantOffset(Layout, Offset))
            return std::nullopt;
        Row = Step->getPointerOperand();
    }
    const auto *Table = dyn_cast<LoadInst>(Row);
    if (!Table || Offset.isNegative())
        return std::nullopt;
    if (const MDNode *Type = Table->getMetadata(LLVMContext::MD_tbaa)) {
        const auto *Access = Type->getNumOperands() > 1 ? dyn_cast<MDNode>(Type->getOperand(1)) : nullptr;
        const auto *Name = Access && Access->getNumOperands() ? dyn_cast<MDString>(Access->getOperand(0)) : nullptr;
        if (Name && Name->getString() != "vtable pointer")
            return std::nullopt;
    } else if (none_of(Call.args(),
                       [&](const Use &Argument) { return Argument.get() == Table->getPointerOperand(); })) {
        return std::nullopt;
    }
    return Offset.getZExtValue() / Layout.getPointerSize();
}

/// The calls of one function, and the functions whose address it takes.
class Calls {
  public:
    Calls(const Function &F, const LoopInfo &Loops, SetVector<const GlobalValue *> &Taken) {
        for (const BasicBlock &BB : F)
            for (const Instruction &I : BB)
                if (!I.isDebugOrPseudoInst())
                    look(I, Loops.getLoopDepth(&BB), Taken);
    }

    /// Returns whether all callees are known by name, and no address of a function is used.
    bool areByName() const { return Indirect.empty() && Virtual.empty() && !UsesAddresses; }
    const SmallSetVector<const GlobalValue *, 8> &callees() const { return Callees; }

    /// Writes the calls as members of a JSON object. LeftOut: callees that it omits.
    void write(json::OStream &Json, const SmallPtrSetImpl<const GlobalValue *> &LeftOut) const {
        Named Written;
        for (const GlobalValue *Callee : Callees)
            if (!LeftOut.contains(Callee->getAliaseeObject()))
                Written.insert(*Direct.find(Callee->getName().str()));
        writeSites(Json, "calls", Written);
        writeSites(Json, "indirect", Indirect);
        if (!Virtual.empty())
            Json.attributeArray("virtual", [&] {
                for (const auto &[Key, Found] : Virtual)
                    Json.array([&, &Key = Key, &Found = Found] {
                        Json.value(static_cast<int64_t>(Key.first));
                        Json.value(json::fixUTF8(Key.second));
                        Json.value(Found.Count);
                        Json.value(Found.Depth);
                    });
            });
        if (!Handed.empty())
            Json.attributeArray("handed", [&] {
                for (const auto &[Key, Found] : Handed)
                    Json.array([&, &Key = Key, &Found = Found] {
                        Json.value(json::fixUTF8(Key.first));
                        Json.value(json::fixUTF8(Key.second));
                        Json.value(Found.Count);
                        Json.value(Found.Depth);
                    });
            });
    }

  private:
    using Named = MapVector<std::string, Sites, std::map<std::string, unsigned>>;

    static void writeSites(json::OStream &Json, StringRef Key, const Named &All) {
        if (All.empty())
            return;
        Json.attributeArray(Key, [&] {
            for (const auto &[Name, Found] : All)
                Json.array([&, &Name = Name, &Found = Found] {
                    Json.value(json::fixUTF8(Name));
                    Json.value(Found.Count);
                    Json.value(Found.Depth);
                });
        });
    }

    void look(const Instruction &I, unsigned Depth, SetVector<const GlobalValue *> &Taken) {
        const auto *Call = dyn_cast<CallBase>(&I);
        const GlobalValue *Callee = nullptr;
        if (Call && !Call->isInlineAsm() && !isa<IntrinsicInst>(Call)) {
            const Value *Operand = Call->getCalledOperand()->stripPointerCasts();
            Callee = dyn_cast<GlobalValue>(Operand);
            if (Callee && !Callee->getName().starts_with("__clang_call_terminate")) {
                Direct[Callee->getName().str()].add(Depth);
                Callees.insert(Callee);
            } else if (!Callee)
                lookAtIndirect(*Call, Depth);
        }
        for (const Use &Operand : I.operands()) {
            if (Call && Call->isCallee(&Operand))
                continue;
            for (const GlobalValue *Function : functionsIn(Operand.get())) {
                Taken.insert(Function);
                UsesAddresses = true;
                if (Callee && Call->isArgOperand(&Operand))
                    Handed[{Callee->getName().str(), Function->getName().str()}].add(Depth);
            }
        }
    }

    void lookAtIndirect(const CallBase &Call, unsigned Depth) {
        const std::string Type = typeText(Call.getFunctionType());
        if (std::optional<uint64_t> Row = virtualRow(Call, Call.getModule()->getDataLayout()))
            Virtual[{*Row, Type}].add(Depth);
        else
            Indirect[Type].add(Depth);
    }

    Named Direct, Indirect;
    SmallSetVector<const GlobalValue *, 8> Callees;
    bool UsesAddresses = false;
    std::map<std::pair<uint64_t, std::string>, Sites> Virtual;
    std::map<std::pair<std::string, std::string>, Sites> Handed; ///< key: callee, and the function that is passed to it
};

/// Writes one line of JSON per function, alias and virtual table.
class Description {
  public:
    Description(Module &M, FunctionAnalysisManager &FAM) : M(M), FAM(FAM), Fortran(isFortran(M)) {}

    std::vector<std::string> lines() {
        lookAtGlobals();
        // All functions have to be read before the functions with a taken address are known.
        std::map<const Function *, Calls> Found;
        for (Function &F : M)
            if (isDescribed(F))
                Found.emplace(&F, Calls(F, FAM.getResult<LoopAnalysis>(F), Taken));
        leaveOut(Found);
        for (Function &F : M)
            if (auto Own = Found.find(&F); Own != Found.end()) {
                if (!LeftOut.contains(&F))
                    describe(F, Own->second);
            } else if (Taken.count(&F) && !F.isIntrinsic())
                line([&](json::OStream &Json) { describeOutside(F, Json); });
        for (const GlobalAlias &Alias : M.aliases())
            if (const auto *Target = dyn_cast<Function>(Alias.getAliasee()->stripPointerCasts()))
                line([&](json::OStream &Json) {
                    Json.attribute("kind", "alias");
                    Json.attribute("name", json::fixUTF8(Alias.getName()));
                    Json.attribute("of", json::fixUTF8(Target->getName()));
                    if (Taken.count(&Alias))
                        Json.attribute("taken", true);
                });
        return std::move(Lines);
    }

  private:
    static bool isDescribed(const Function &F) {
        return !isCounted(F) && !F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
               !F.getName().starts_with("quipu_") && !F.getName().starts_with("__clang_call_terminate");
    }

    /// Finds functions to omit: functions of the C++ library that have no loop and call no function of the program,
    /// directly or indirectly. A small program consists mostly of these functions, and nobody selects them for
    /// measurement. Readers apply the same rule (agent/source/callgraph.py).
    void leaveOut(const std::map<const Function *, Calls> &Found) {
        std::vector<const Function *> Candidates;
        for (const auto &[F, Own] : Found)
            if (isOfCxxLibrary(F->getName()) && F->isWeakForLinker() && Own.areByName() && !Taken.count(F) &&
                !Rows.count(F) && FAM.getResult<LoopAnalysis>(const_cast<Function &>(*F)).empty())
                Candidates.push_back(F);
        auto IsHarmless = [&](const GlobalValue *Callee) {
            const auto *F = dyn_cast_or_null<Function>(Callee->getAliaseeObject());
            if (!F || LeftOut.contains(F))
                return F != nullptr;
            if (F->isDeclaration())
                return !isElsewhere(*F, FAM.getResult<TargetLibraryAnalysis>(const_cast<Function &>(*F)));
            return !Found.count(F) && isOfCxxLibrary(F->getName());
        };
        // Repeat while functions are found, because a callee may come after its callers.
        for (size_t Before = Candidates.size() + 1; Candidates.size() < Before;) {
            Before = Candidates.size();
            llvm::erase_if(Candidates, [&](const Function *F) {
                return all_of(Found.at(F).callees(), IsHarmless) && LeftOut.insert(F).second;
            });
        }
    }

    template <typename Writer> void line(Writer Write) {
        std::string Line;
        raw_string_ostream Stream(Line);
        json::OStream Json(Stream);
        Json.object([&] { Write(Json); });
        Stream.flush();
        Lines.push_back(std::move(Line));
    }

    void lookAtGlobals() {
        for (const GlobalVariable &Global : M.globals()) {
            if (!Global.hasInitializer() || Global.hasAvailableExternallyLinkage())
                continue;
            if (isVirtualTable(Global)) {
                describeTable(Global);
            } else if (Global.getName() == "llvm.global_ctors" || Global.getName() == "llvm.global_dtors") {
                for (const GlobalValue *Function : functionsIn(Global.getInitializer()))
                    Starting.insert(Function);
            } else if (!Global.getName().starts_with("llvm.")) {
                for (const GlobalValue *Function : functionsIn(Global.getInitializer()))
                    Taken.insert(Function);
            }
        }
    }

    void describe(Function &F, const Calls &Found) {
        const LoopInfo &Loops = FAM.getResult<LoopAnalysis>(F);
        unsigned Number = 0, Depth = 0;
        for (const Loop *Each : Loops.getLoopsInPreorder()) {
            Number++;
            Depth = std::max(Depth, Each->getLoopDepth());
        }
        const Identity Known = identify(F);
        line([&](json::OStream &Json) {
            Json.attribute("kind", "function");
            Json.attribute("name", json::fixUTF8(Known.Name));
            if (Known.Display != readableName(Known.Name))
                Json.attribute("display", json::fixUTF8(Known.Display));
            Json.attribute("file", json::fixUTF8(Known.File));
            Json.attribute("line", Known.Line);
            Json.attribute("statements", countStatements(F));
            if (Number) {
                Json.attribute("loops", Number);
                Json.attribute("depth", Depth);
            }
            flag(Json, "local", F.hasLocalLinkage());
            flag(Json, "weak", F.isWeakForLinker());
            flag(Json, "inline", F.hasFnAttribute(Attribute::InlineHint) || F.hasFnAttribute(Attribute::AlwaysInline));
            flag(Json, "fortran", Fortran);
            flag(Json, "start", Starting.count(&F) > 0);
            flag(Json, "taken", Taken.count(&F) > 0);
            if (Taken.count(&F) || Rows.count(&F))
                Json.attribute("type", json::fixUTF8(typeText(F.getFunctionType())));
            Found.write(Json, LeftOut);
        });
    }

    /// Describes a function of another module whose address is taken here.
    static void describeOutside(const Function &F, json::OStream &Json) {
        Json.attribute("kind", "taken");
        Json.attribute("name", json::fixUTF8(F.getName()));
        Json.attribute("type", json::fixUTF8(typeText(F.getFunctionType())));
    }

    static void flag(json::OStream &Json, StringRef Key, bool Value) {
        if (Value)
            Json.attribute(Key, true);
    }

    /// Describes a virtual table from the first function on, because the objects point there. The entries before it are
    /// no functions: offsets of virtual bases, offset to the start of the object, and type.
    void describeTable(const GlobalVariable &Global) {
        line([&](json::OStream &Json) {
            Json.attribute("kind", "table");
            Json.attribute("name", json::fixUTF8(Global.getName()));
            Json.attributeArray("rows", [&] {
                for (const Use &Part : Global.getInitializer()->operands())
                    if (const auto *Table = dyn_cast<ConstantArray>(Part.get()))
                        Json.array([&] { describeRows(*Table, Json); });
            });
            const std::string Type = "_ZTI" + Global.getName().drop_front(4).str();
            if (const GlobalVariable *Information = M.getNamedGlobal(Type))
                describeBases(*Information, Json);
        });
    }

    void describeRows(const ConstantArray &Table, json::OStream &Json) {
        bool Begun = false;
        for (const Use &Entry : Table.operands()) {
            const SetVector<const GlobalValue *> Found = functionsIn(Entry.get());
            Begun |= !Found.empty();
            if (!Begun)
                continue;
            if (Found.empty()) {
                Json.array([] {});
                continue;
            }
            const GlobalValue *Function = Found.front();
            Rows.insert(Function);
            Json.array([&] {
                Json.value(json::fixUTF8(Function->getName()));
                Json.value(json::fixUTF8(typeText(cast<FunctionType>(Function->getValueType()))));
            });
        }
    }

    static void describeBases(const GlobalVariable &Information, json::OStream &Json) {
        if (!Information.hasInitializer())
            return;
        Json.attributeArray("bases", [&] {
            for (const Use &Part : Information.getInitializer()->operands())
                if (const auto *Base = dyn_cast<GlobalVariable>(Part->stripPointerCasts());
                    Base && Base->getName().starts_with("_ZTI"))
                    Json.value(json::fixUTF8(Base->getName()));
        });
    }

    Module &M;
    FunctionAnalysisManager &FAM;
    bool Fortran;
    std::vector<std::string> Lines;
    SetVector<const GlobalValue *> Taken;
    SmallPtrSet<const GlobalValue *, 16> Starting;
    SmallPtrSet<const GlobalValue *, 16> Rows; ///< functions in a virtual table
    SmallPtrSet<const GlobalValue *, 32> LeftOut;
};

} // namespace

PreservedAnalyses CallGraphPass::run(Module &M, ModuleAnalysisManager &AM) {
    if (sys::Process::GetEnv("QUIPU_CALLGRAPH").value_or("on") == "off")
        return PreservedAnalyses::all();
    auto &FAM = AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    // A module from bitcode that a compiler wrapper wrote already contains its description.
    if (any_of(M, isCounted) && none_of(M, isCountable))
        return PreservedAnalyses::all();
    const std::vector<std::string> Lines = Description(M, FAM).lines();
    if (!Lines.empty())
        keepLines(M, Lines);
    return PreservedAnalyses::all();
}

} // namespace quipu

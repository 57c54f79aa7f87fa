// SPDX-License-Identifier: Apache-2.0
#include "regions.h"

#include "names.h"
#include "sections.h"
#include "worth.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace quipu {
namespace {

/// Functions that nothing is known of before optimization (--quipu-inlined=off), with fewer instructions and without
/// loops, are not worth the two time stamps of a hook, which take as long as some hundred instructions.
constexpr size_t SmallFunction = 64;

bool isMain(const Function &F) { return F.getName() == "main" || F.getName() == "_QQmain"; }

Constant *stringConstant(Module &M, StringRef Text, const Twine &Name) {
    if (Text.empty())
        return ConstantPointerNull::get(PointerType::getUnqual(M.getContext()));
    Constant *Bytes = ConstantDataArray::getString(M.getContext(), Text);
    auto *String = new GlobalVariable(M, Bytes->getType(), true, GlobalValue::PrivateLinkage, Bytes, Name);
    String->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return String;
}

} // namespace

RegionFacts describe(const Function &F, const Identity &Self, const TargetLibraryInfo &TLI,
                     const CarriedCalls &Callees) {
    RegionFacts Facts;
    static_cast<Identity &>(Facts) = Self;
    Facts.Blocks = F.size();
    for (const BasicBlock &BB : F) {
        for (const Instruction &I : BB) {
            Facts.Instructions += !I.isDebugOrPseudoInst();
            if (!isRealCall(I))
                continue;
            const auto *Callee = dyn_cast<Function>(cast<CallBase>(I).getCalledOperand()->stripPointerCasts());
            if (Callee)
                Facts.Calls.insert(Callee);
            else
                Facts.IndirectCalls++;
            Facts.HasCallees |= !Callees.carries(cast<CallBase>(I)) &&
                                (!Callee || !Callee->isDeclaration() || isElsewhere(*Callee, TLI));
        }
    }
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 4> BackEdges;
    FindFunctionBackedges(F, BackEdges);
    const bool IsMuch = Self.MuchWork.value_or(!BackEdges.empty() || Facts.Instructions >= SmallFunction);
    Facts.IsSmall = !IsMuch && !Facts.HasCallees && !isMain(F);
    return Facts;
}

quipu_hook hookOf(const RegionFacts &Facts, const Filter &Selection, bool All) {
    if (isLeftOut(Facts, Selection))
        return QUIPU_LEFT_OUT;
    if (All || !Facts.IsSmall || Selection.asks_for(Facts.Name.c_str(), Facts.Display.c_str()))
        return QUIPU_HOOKED;
    return QUIPU_QUIET;
}

/// Rows of weights, packed as in quipu.h.
class PackedRows {
  public:
    void add(ArrayRef<int64_t> Row) {
        uint64_t Columns = 0;
        for (size_t I = 0; I < Row.size(); I++)
            Columns |= uint64_t{Row[I] != 0} << I;
        encodeULEB128(Columns, Stream);
        for (const int64_t Value : Row)
            if (Value)
                encodeSLEB128(Value, Stream);
    }
    void addNumbered(size_t Number, int64_t Visits, ArrayRef<int64_t> Row) {
        encodeULEB128(Number, Stream);
        encodeSLEB128(Visits, Stream);
        add(Row);
        Count++;
    }
    StringRef bytes() const { return {Bytes.data(), Bytes.size()}; }
    size_t count() const { return Count; }

  private:
    SmallString<256> Bytes;
    raw_svector_ostream Stream{Bytes};
    size_t Count = 0; ///< of those with a number
};

static Constant *bytesConstant(Module &M, StringRef Bytes, const Twine &Name) {
    if (Bytes.empty())
        return ConstantPointerNull::get(PointerType::getUnqual(M.getContext()));
    Constant *Data = ConstantDataArray::getString(M.getContext(), Bytes, /*AddNull=*/false);
    auto *Global = new GlobalVariable(M, Data->getType(), true, GlobalValue::PrivateLinkage, Data, Name);
    Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return Global;
}

namespace {

/// What call paths are looked up by. That of a function in another differs from its own: both may be called at once.
uint64_t hashOf(const Identity &Known) { return xxHash64(Known.Name); }

/// Constants of the structs in quipu.h.
class DescriptorMaker {
  public:
    explicit DescriptorMaker(Module &M)
        : M(M), Pointer(PointerType::getUnqual(M.getContext())), I32(Type::getInt32Ty(M.getContext())),
          I64(Type::getInt64Ty(M.getContext())),
          Region(StructType::get(M.getContext(),
                                 {Pointer, Pointer, Pointer, I32, I32, I64, Pointer, I32, I32, I64, Pointer, I64})),
          Inner(StructType::get(M.getContext(), {Region, I32, I32, Pointer})) {}

    Constant *region(const Identity &Known, quipu_hook Hook, Constant *Weights, size_t Counters, Constant *Within,
                     size_t Count, uint64_t Hash) {
        const bool Packed = !isa<ConstantPointerNull>(Weights);
        Constant *Fields[] = {stringConstant(M, Known.Name, "quipu.name"),
                              stringConstant(M, Known.Display == Known.Name ? "" : Known.Display, "quipu.display"),
                              stringConstant(M, Known.File, "quipu.file"),
                              number(I32, Known.Line),
                              number(I32, QUIPU_FUNCTION + (Packed ? QUIPU_PACKED : 0)),
                              number(I64, 0),
                              Weights,
                              number(I32, Counters),
                              number(I32, Hook),
                              number(I64, Hash | 1),
                              Within,
                              number(I64, Count)};
        return ConstantStruct::get(Region, Fields);
    }

    /// The array of struct quipu_scope, and how many there are: none if nothing is in them. Counters: the last row that
    /// readers need of each, whatever is in it; 0: none.
    std::pair<Constant *, size_t> scopes(ArrayRef<Scope> All, ArrayRef<ScopedWork> Weights,
                                         ArrayRef<unsigned> Counters) {
        std::vector<Constant *> Entries;
        bool Any = All.size() > 1;
        for (unsigned I = 0; I < All.size(); I++) {
            PackedRows Rows;
            for (size_t Row = 0; Row < Weights.size(); Row++) {
                const Work Done = Weights[Row].lookup(I);
                const bool IsLast = I > 0 && I < Counters.size() && Counters[I] == Row + 1;
                if (!Done.Visits && (I == 0 || Done.Code == Effort{}) && !IsLast)
                    continue;
                // What the function does by itself is in its weights.
                Rows.addNumbered(Row, Done.Visits, I > 0 ? Done.Code : Effort{});
            }
            Any |= Rows.count() > 0;
            Constant *None = ConstantPointerNull::get(cast<PointerType>(Pointer));
            Constant *Head = I > 0 ? region(*All[I].Function, All[I].Hooked ? QUIPU_HOOKED : QUIPU_INLINED, None, 0,
                                            None, 0, hashOf(*All[I].Function) + (2 * I + 1) * hashOf(*All[0].Function))
                                   : static_cast<Constant *>(ConstantAggregateZero::get(Region));
            Entries.push_back(ConstantStruct::get(Inner, {Head, number(I32, All[I].Parent), number(I32, Rows.count()),
                                                          bytesConstant(M, Rows.bytes(), "quipu.rows")}));
        }
        if (!Any)
            return {ConstantPointerNull::get(cast<PointerType>(Pointer)), 0};
        auto *Array = ArrayType::get(Inner, Entries.size());
        auto *Global = new GlobalVariable(M, Array, false, GlobalValue::PrivateLinkage,
                                          ConstantArray::get(Array, Entries), "quipu.scopes");
        Global->setAlignment(Align(8));
        return {Global, Entries.size()};
    }

  private:
    static Constant *number(Type *T, uint64_t Value) { return ConstantInt::get(T, Value); }

    Module &M;
    Type *Pointer, *I32, *I64;
    StructType *Region, *Inner;
};

} // namespace

Descriptors createDescriptors(Function &F, const RegionFacts &Self, quipu_hook Hook, const Scopes &Within,
                              ArrayRef<ScopedWork> Weights) {
    Module &M = *F.getParent();
    DescriptorMaker Maker(M);
    auto [Inner, Count] = Maker.scopes(Within.scopes(), Weights, Self.Counters);
    PackedRows Rows;
    for (const ScopedWork &Row : Weights) {
        auto Found = Row.find(0); // NOLINT(llvm-qualified-auto): a pointer in some LLVMs only
        Rows.add(Found == Row.end() ? Effort{} : Found->second.Code);
    }
    Constant *Whole = Maker.region(Self, Hook, bytesConstant(M, Rows.bytes(), "quipu.weights"),
                                   Weights.empty() ? 0 : Weights.size() - 1, Inner, Count, hashOf(Self));
    auto *Descriptor =
        new GlobalVariable(M, Whole->getType(), false, GlobalValue::PrivateLinkage, Whole, "quipu.region." + Self.Name);
    Descriptor->setAlignment(Align(8));
    return {Descriptor, dyn_cast<GlobalVariable>(Inner)};
}

static void writeIdentity(json::OStream &Json, const Identity &Known) {
    Json.attribute("name", json::fixUTF8(Known.Name));
    Json.attribute("display", json::fixUTF8(Known.Display));
    Json.attribute("file", json::fixUTF8(Known.File));
    Json.attribute("line", Known.Line);
}

static std::string jsonLine(function_ref<void(json::OStream &)> Write) {
    std::string Line;
    raw_string_ostream Stream(Line);
    json::OStream Json(Stream);
    Json.object([&] { Write(Json); });
    Stream.flush();
    return Line;
}

void addFacts(std::vector<std::string> &Lines, const RegionFacts &Facts, bool Hook, const Scopes &Within) {
    Lines.push_back(jsonLine([&](json::OStream &Json) {
        writeIdentity(Json, Facts);
        Json.attribute("blocks", static_cast<int64_t>(Facts.Blocks));
        Json.attribute("instructions", static_cast<int64_t>(Facts.Instructions));
        Json.attribute("hook", Hook);
        Json.attributeArray("calls", [&] {
            for (const Function *Callee : Facts.Calls)
                Json.value(json::fixUTF8(linkerName(*Callee)));
        });
        Json.attribute("indirect_calls", static_cast<int64_t>(Facts.IndirectCalls));
        if (!Facts.Classes.empty()) {
            Json.attribute("counters", Facts.Counters[0]);
            writeClasses(Json, Facts.Classes, 0, 0);
        }
    }));
    for (unsigned Scope = 1; !Facts.Classes.empty() && Scope < Within.scopes().size(); Scope++)
        Lines.push_back(jsonLine([&](json::OStream &Json) {
            writeIdentity(Json, *Within.scopes()[Scope].Function);
            Json.attribute("inlined", true);
            // The visits of the whole function are its first counter.
            Json.attribute("counters", Facts.Counters[Scope]);
            writeClasses(Json, Facts.Classes, Scope, 1);
        }));
}

void emitFacts(Module &M, ArrayRef<std::string> Lines) { emitPacked(M, ".quipu.facts", Lines); }

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "regions.h"

#include "names.h"
#include "worth.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LEB128.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace quipu {
namespace {

/// Functions with fewer instructions and without loops and calls get no hook, even if they were larger before
/// optimization. The two time stamps of a visit take as long as about 100 instructions.
constexpr size_t SmallFunction = 64;

/// Details with fewer bytes are not compressed.
constexpr size_t ShortDetails = 512;

} // namespace

bool isMain(const Function &F) { return F.getName() == "main" || F.getName() == "_QQmain"; }

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
    const bool MayBeMuch = hasCycle(F) || Facts.Instructions >= SmallFunction;
    const bool IsMuch = Self.MuchWork ? *Self.MuchWork && (MayBeMuch || isParallelRegion(F)) : MayBeMuch;
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
    /// Additions: value of a further column, which only rows of functions have; 0: no such column.
    void add(ArrayRef<int64_t> Row, int64_t Additions = 0) {
        uint64_t Columns = uint64_t{Additions != 0} << QUIPU_WEIGHTED;
        for (size_t I = 0; I < Row.size(); I++)
            Columns |= uint64_t{Row[I] != 0} << I;
        encodeULEB128(Columns, Stream);
        for (const int64_t Value : Row)
            if (Value)
                encodeSLEB128(Value, Stream);
        if (Additions)
            encodeSLEB128(Additions, Stream);
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
    size_t Count = 0; ///< number of rows that addNumbered() added
};

namespace {

void addText(raw_ostream &Out, StringRef Text) { Out << Text << '\0'; }

/// Writes a function in the format that agent/runtime/details.cpp reads.
void addFunction(raw_ostream &Out, const Identity &Known) {
    addText(Out, Known.Name);
    addText(Out, Known.Display == Known.Name ? "" : StringRef(Known.Display));
    addText(Out, Known.File);
    encodeULEB128(Known.Line, Out);
}

void addBytes(raw_ostream &Out, StringRef Bytes) {
    encodeULEB128(Bytes.size(), Out);
    Out << Bytes;
}

/// Writes the scopes of a function; no scope if all are empty. Counters: for each scope except 0, the last row that
/// readers need even if it is empty, + 1; 0: none.
void addScopes(raw_ostream &Out, ArrayRef<Scope> All, ArrayRef<ScopedWork> Weights, ArrayRef<unsigned> Counters) {
    std::vector<PackedRows> Rows(All.size());
    bool Any = All.size() > 1;
    for (unsigned I = 0; I < All.size(); I++) {
        for (size_t Row = 0; Row < Weights.size(); Row++) {
            const Work Done = Weights[Row].lookup(I);
            const bool IsLast = I > 0 && I < Counters.size() && Counters[I] == Row + 1;
            if (!Done.Visits && (I == 0 || Done.Code == Effort{}) && !IsLast)
                continue;
            // The weights of the function already contain its own work.
            Rows[I].addNumbered(Row, Done.Visits, I > 0 ? Done.Code : Effort{});
        }
        Any |= Rows[I].count() > 0;
    }
    encodeULEB128(Any ? All.size() : 0, Out);
    for (unsigned I = 0; Any && I < All.size(); I++) {
        if (I > 0) {
            addFunction(Out, *All[I].Function);
            encodeULEB128(All[I].Hooked ? QUIPU_HOOKED : All[I].Called ? QUIPU_QUIET : QUIPU_INLINED, Out);
        }
        encodeULEB128(All[I].Parent, Out);
        encodeULEB128(Rows[I].count(), Out);
        addBytes(Out, Rows[I].bytes());
    }
}

/// Returns the hash of a function, by which the runtime looks up links to it.
uint64_t hashOf(const Identity &Known) { return xxHash64(Known.Name); }

} // namespace

Details::Details(Module &M)
    : M(M), Place(new GlobalVariable(M, Type::getInt8Ty(M.getContext()), true, GlobalValue::ExternalLinkage, nullptr,
                                     "quipu.details")) {}

size_t Details::add(StringRef Entry) {
    Begins.push_back(static_cast<uint32_t>(Entries.size()));
    Entries += Entry;
    return Begins.size() - 1;
}

void Details::emit() {
    std::string Text;
    raw_string_ostream Stream(Text);
    for (const uint32_t Begin : Begins) {
        char Bytes[sizeof(uint32_t)];
        support::endian::write32le(Bytes, Begin + static_cast<uint32_t>(sizeof(uint32_t) * Begins.size()));
        Stream.write(Bytes, sizeof Bytes);
    }
    Stream << Entries;
    Stream.flush();
    SmallVector<uint8_t, 0> Packed;
    if (compression::zlib::isAvailable() && Text.size() > ShortDetails)
        compression::zlib::compress(arrayRefFromStringRef(Text), Packed, compression::zlib::BestSizeCompression);
    if (Packed.empty() || Packed.size() >= Text.size())
        Packed.assign(Text.begin(), Text.end());
    LLVMContext &Context = M.getContext();
    Type *I32 = Type::getInt32Ty(Context);
    auto Number = [&](uint64_t Value) { return ConstantInt::get(I32, Value); };
    Constant *Whole = ConstantStruct::getAnon(
        {Number(Text.size()), Number(Packed.size()), Number(Begins.size()), ConstantDataArray::get(Context, Packed)});
    auto *Made = new GlobalVariable(M, Whole->getType(), true, GlobalValue::PrivateLinkage, Whole);
    Made->setAlignment(Align(4));
    Made->takeName(Place);
    Place->replaceAllUsesWith(Made);
    Place->eraseFromParent();
}

Descriptors createDescriptors(Function &F, const RegionFacts &Self, quipu_hook Hook, const Scopes &Within,
                              ArrayRef<ScopedWork> Weights, ArrayRef<int64_t> Additions, Details &Into) {
    Module &M = *F.getParent();
    LLVMContext &Context = M.getContext();
    PackedRows Rows;
    for (auto [Row, Added] : zip_equal(Weights, Additions))
        Rows.add(Row.lookup(0).Code, Added);
    std::string Entry;
    raw_string_ostream Stream(Entry);
    addFunction(Stream, Self);
    addBytes(Stream, Rows.bytes());
    addScopes(Stream, Within.scopes(), Weights, Self.Counters);
    Stream.flush();
    const size_t Number = Into.add(Entry);

    Type *I32 = Type::getInt32Ty(Context), *I64 = Type::getInt64Ty(Context);
    auto *Region = StructType::get(Context, {I64, I64, I64, I32, I32, I32, I32, I32, I32});
    Descriptors Made;
    Made.PlaceOf.assign(Within.scopes().size(), 0);
    unsigned Count = 1;
    for (unsigned I = 1; I < Within.scopes().size(); I++)
        if (Within.scopes()[I].Hooked)
            Made.PlaceOf[I] = Count++;
    auto *Array = ArrayType::get(Region, Count);
    Made.Whole = new GlobalVariable(M, Array, false, GlobalValue::PrivateLinkage, ConstantAggregateZero::get(Array),
                                    "quipu.region." + Self.Name);
    Made.Whole->setAlignment(Align(8));
    std::vector<Constant *> All;
    for (unsigned I = 0; I < Within.scopes().size(); I++) {
        if (I > 0 && !Made.PlaceOf[I])
            continue;
        auto *Here =
            cast<Constant>(IRBuilder<>(Context).CreateConstInBoundsGEP2_64(Array, Made.Whole, 0, Made.PlaceOf[I]));
        Constant *Away =
            ConstantExpr::getSub(ConstantExpr::getPtrToInt(Into.place(), I64), ConstantExpr::getPtrToInt(Here, I64));
        const Identity &First = *Within.scopes()[0].Function;
        // A scope has another hash than the same function outside, because one node may have links to both.
        const uint64_t Hash = I ? hashOf(*Within.scopes()[I].Function) + (2 * I + 1) * hashOf(First) : hashOf(Self);
        const size_t Counters = I || Weights.empty() ? 0 : Weights.size() - 1;
        All.push_back(ConstantStruct::get(Region, {ConstantInt::get(I64, 0), ConstantInt::get(I64, Hash | 1), Away,
                                                   ConstantInt::get(I32, Number), ConstantInt::get(I32, I),
                                                   ConstantInt::get(I32, Counters),
                                                   ConstantInt::get(I32, I ? QUIPU_HOOKED : Hook),
                                                   ConstantInt::get(I32, 0), ConstantInt::get(I32, QUIPU_FUNCTION)}));
    }
    Made.Whole->setInitializer(ConstantArray::get(Array, All));
    return Made;
}

static void writeIdentity(json::OStream &Json, const Identity &Known) {
    Json.attribute("name", json::fixUTF8(Known.Name));
    if (Known.Display != readableName(Known.Name))
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

void addFacts(std::vector<std::string> &Lines, const RegionFacts &Facts, bool Hook, const Scopes &Within,
              PlaceFunctions &Places) {
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
            writeClasses(Json, Facts.Classes, 0, 0, Places);
        }
    }));
    for (unsigned Scope = 1; !Facts.Classes.empty() && Scope < Within.scopes().size(); Scope++)
        Lines.push_back(jsonLine([&](json::OStream &Json) {
            writeIdentity(Json, *Within.scopes()[Scope].Function);
            Json.attribute("inlined", true);
            // Row 0 of a scope is the visits of the scope. The rows of the function follow, so their numbers increase
            // by 1.
            Json.attribute("counters", Facts.Counters[Scope]);
            writeClasses(Json, Facts.Classes, Scope, 1, Places);
        }));
}

} // namespace quipu

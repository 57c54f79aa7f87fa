#include "regions.h"

#include "names.h"
#include "sections.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace quipu {
namespace {

/// Functions with fewer instructions, and without loops and calls, are not worth the two time stamps of a hook, which
/// take as long as some hundred instructions.
constexpr size_t SmallFunction = 64;

bool isMain(const Function &F) { return F.getName() == "main" || F.getName() == "_QQmain"; }

Constant *stringConstant(Function &F, StringRef Text, const Twine &Name) {
    if (Text.empty())
        return ConstantPointerNull::get(PointerType::getUnqual(F.getContext()));
    Module &M = *F.getParent();
    Constant *Bytes = ConstantDataArray::getString(F.getContext(), Text);
    auto *String = new GlobalVariable(M, Bytes->getType(), true, GlobalValue::PrivateLinkage, Bytes, Name);
    String->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return String;
}

} // namespace

RegionFacts describe(const Function &F) {
    RegionFacts Facts;
    static_cast<Identity &>(Facts) = identify(F);
    Facts.Blocks = F.size();
    for (const BasicBlock &BB : F) {
        for (const Instruction &I : BB) {
            Facts.Instructions += !I.isDebugOrPseudoInst();
            if (!isRealCall(I))
                continue;
            if (const auto *Callee = dyn_cast<Function>(cast<CallBase>(I).getCalledOperand()->stripPointerCasts()))
                Facts.Calls.insert(Callee);
            else
                Facts.IndirectCalls++;
        }
    }
    const bool Calls = !Facts.Calls.empty() || Facts.IndirectCalls > 0;
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 4> BackEdges;
    FindFunctionBackedges(F, BackEdges);
    Facts.IsSmall = !Calls && BackEdges.empty() && Facts.Instructions < SmallFunction && !isMain(F);
    return Facts;
}

bool isCountable(const Function &F) {
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || F.hasFnAttribute(Attribute::Naked) ||
        F.isPresplitCoroutine())
        return false;
    // Code that runs before the runtime is ready, or inside of it.
    if (F.getSection().contains("text.startup") && F.getName() != "main")
        return false;
    // A resolver runs while the program is being relocated: it cannot call other libraries yet.
    for (const GlobalIFunc &IFunc : F.getParent()->ifuncs())
        if (IFunc.getResolverFunction() == &F)
            return false;
    return !F.getName().starts_with("quipu_") && !F.getName().starts_with("__clang_call_terminate");
}

bool isRegion(const RegionFacts &Facts, const Filter &Selection, bool All) {
    if (!Selection.includes(Facts.File.c_str(), Facts.Name.c_str(), Facts.Display.c_str()))
        return false;
    return All || !Facts.IsSmall || Selection.asks_for(Facts.Name.c_str(), Facts.Display.c_str());
}

static Constant *weightsConstant(Module &M, ArrayRef<Effort> Weights) {
    LLVMContext &Context = M.getContext();
    if (Weights.empty())
        return ConstantPointerNull::get(PointerType::getUnqual(Context));
    SmallVector<uint64_t, 64> Numbers;
    for (const Effort &Row : Weights)
        Numbers.append(Row.begin(), Row.end());
    Constant *Data = ConstantDataArray::get(Context, Numbers);
    auto *Global = new GlobalVariable(M, Data->getType(), true, GlobalValue::PrivateLinkage, Data, "quipu.weights");
    Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
    return Global;
}

GlobalVariable *createDescriptor(Function &F, const RegionFacts &Facts, bool Quiet, ArrayRef<Effort> Weights) {
    Module &M = *F.getParent();
    LLVMContext &Context = F.getContext();
    Type *Pointer = PointerType::getUnqual(Context);
    Type *I32 = Type::getInt32Ty(Context);
    Type *I64 = Type::getInt64Ty(Context);
    StructType *Region = StructType::get(Context, {Pointer, Pointer, Pointer, I32, I32, I64, Pointer, I32, I32, I64});
    Constant *Display =
        Facts.Display == Facts.Name ? stringConstant(F, "", "") : stringConstant(F, Facts.Display, "quipu.display");
    Constant *Fields[] = {stringConstant(F, Facts.Name, "quipu.name"),
                          Display,
                          stringConstant(F, Facts.File, "quipu.file"),
                          ConstantInt::get(I32, Facts.Line),
                          ConstantInt::get(I32, QUIPU_FUNCTION),
                          ConstantInt::get(I64, 0),
                          weightsConstant(M, Weights),
                          ConstantInt::get(I32, Weights.empty() ? 0 : Weights.size() - 1),
                          ConstantInt::get(I32, Quiet),
                          ConstantInt::get(I64, xxHash64(Facts.Name) | 1)};
    auto *Descriptor = new GlobalVariable(M, Region, false, GlobalValue::PrivateLinkage,
                                          ConstantStruct::get(Region, Fields), "quipu.region." + Facts.Name);
    Descriptor->setAlignment(Align(8));
    return Descriptor;
}

std::string factsLine(const RegionFacts &Facts, bool Hook) {
    std::string Line;
    raw_string_ostream Stream(Line);
    json::OStream Json(Stream);
    Json.object([&] {
        Json.attribute("name", json::fixUTF8(Facts.Name));
        Json.attribute("display", json::fixUTF8(Facts.Display));
        Json.attribute("file", json::fixUTF8(Facts.File));
        Json.attribute("line", Facts.Line);
        Json.attribute("blocks", static_cast<int64_t>(Facts.Blocks));
        Json.attribute("instructions", static_cast<int64_t>(Facts.Instructions));
        Json.attribute("hook", Hook);
        Json.attributeArray("calls", [&] {
            for (const Function *Callee : Facts.Calls)
                Json.value(json::fixUTF8(Callee->getName()));
        });
        Json.attribute("indirect_calls", static_cast<int64_t>(Facts.IndirectCalls));
        if (!Facts.Lines.empty()) {
            Json.attribute("counters", Facts.Counters);
            writeLines(Json, Facts.Lines);
        }
    });
    Stream.flush();
    return Line;
}

void emitFacts(Module &M, ArrayRef<std::string> Lines) { emitLines(M, ".quipu.facts", Lines); }

} // namespace quipu

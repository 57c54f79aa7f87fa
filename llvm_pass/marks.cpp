// SPDX-License-Identifier: Apache-2.0
#include "marks.h"

#include "effort.h"
#include "libraries.h"
#include "selection.h"
#include "worth.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/xxhash.h"

#include <array>

using namespace llvm;

namespace quipu {
namespace {

constexpr const char *MarkedFunctions = "quipu.functions";
/// Producer of the compile unit of all debug information for marks. The debug information of the program has another
/// producer.
constexpr const char *Producer = "quipu";

bool isOurs(const DISubprogram *Scope) {
    return Scope && Scope->getUnit() && Scope->getUnit()->getProducer() == Producer;
}

/// The placeholder of a hook is a call of llvm.var.annotation with a null pointer as annotated value, and with one of
/// these arbitrary numbers as line.
enum Place : uint32_t { EnterPlace = 0x71757001, ExitPlace = 0x71757002 };

bool isPlace(const Instruction &I, Place Kind) {
    const auto *Call = dyn_cast<IntrinsicInst>(&I);
    if (!Call || Call->getIntrinsicID() != Intrinsic::var_annotation)
        return false;
    const auto *Number = dyn_cast<ConstantInt>(Call->getArgOperand(3));
    return Number && Number->getZExtValue() == Kind && isa<ConstantPointerNull>(Call->getArgOperand(0));
}

uint64_t numberOf(StringRef Name) { return xxHash64(Name); }

/// Adds debug information, so that the inliner records the origin of inlined code.
class ScopeMaker {
  public:
    explicit ScopeMaker(Module &M) : M(M), Fortran(isFortran(M)) {}
    ~ScopeMaker() {
        if (Builder)
            Builder->finalize();
    }
    ScopeMaker(const ScopeMaker &) = delete;
    ScopeMaker &operator=(const ScopeMaker &) = delete;

    void describe(Function &F) {
        if (!Builder) {
            Builder = std::make_unique<DIBuilder>(M);
            File = Builder->createFile(M.getSourceFileName(), "");
            Builder->createCompileUnit(Fortran ? dwarf::DW_LANG_Fortran90 : dwarf::DW_LANG_C, File, Producer, true, "",
                                       0, "", DICompileUnit::NoDebug);
        }
        auto *Type = Builder->createSubroutineType(Builder->getOrCreateTypeArray({}));
        DISubprogram *Scope = Builder->createFunction(File, F.getName(), F.getName(), File, 0, Type, 0,
                                                      DINode::FlagArtificial, DISubprogram::SPFlagDefinition);
        F.setSubprogram(Scope);
        DILocation *Place = DILocation::get(M.getContext(), 0, 0, Scope);
        for (BasicBlock &BB : F)
            for (Instruction &I : BB)
                I.setDebugLoc(Place);
    }

  private:
    Module &M;
    bool Fortran;
    std::unique_ptr<DIBuilder> Builder;
    DIFile *File = nullptr;
};

/// Adds debug locations to calls, because a call without location cannot be inlined into a function with debug
/// information.
void locateCalls(Function &F) {
    for (BasicBlock &BB : F)
        for (Instruction &I : BB)
            if (isRealCall(I) && !I.getDebugLoc())
                I.setDebugLoc(DILocation::get(F.getContext(), 0, 0, F.getSubprogram()));
}

/// Follows `Place` and its inlined-at locations. Returns the innermost location such that neither it nor a location
/// around it was added for marks; null if the outermost location was added for marks.
DILocation *ownLocation(const DILocation *Place) {
    DILocation *Kept = nullptr;
    for (; Place; Place = Place->getInlinedAt()) {
        if (isOurs(Place->getScope()->getSubprogram()))
            Kept = nullptr;
        else if (!Kept)
            Kept = const_cast<DILocation *>(Place);
    }
    return Kept;
}

void removeScopes(Module &M) {
    for (Function &F : M) {
        const bool Drop = isOurs(F.getSubprogram());
        if (Drop)
            F.setSubprogram(nullptr);
        DenseMap<const DILocation *, DILocation *> Known;
        for (BasicBlock &BB : F) {
            for (Instruction &I : BB) {
                const DILocation *Place = I.getDebugLoc();
                if (!Place)
                    continue;
                auto [Entry, Fresh] = Known.try_emplace(Place, nullptr);
                if (Fresh)
                    Entry->second = Drop ? nullptr : ownLocation(Place);
                if (Entry->second != Place)
                    I.setDebugLoc(Entry->second);
            }
        }
    }
    NamedMDNode *Units = M.getNamedMetadata("llvm.dbg.cu");
    if (!Units)
        return;
    SmallVector<MDNode *, 4> Own;
    for (MDNode *Unit : Units->operands())
        if (cast<DICompileUnit>(Unit)->getProducer() != Producer)
            Own.push_back(Unit);
    if (Own.size() == Units->getNumOperands())
        return;
    Units->clearOperands();
    for (MDNode *Unit : Own)
        Units->addOperand(Unit);
    if (Own.empty())
        Units->eraseFromParent();
}

} // namespace

static void placeHooks(Function &F, Instruction *Entry) {
    Type *Pointer = PointerType::getUnqual(F.getContext());
    Function *Annotation = Intrinsic::getDeclaration(F.getParent(), Intrinsic::var_annotation, {Pointer, Pointer});
    Constant *None = ConstantPointerNull::get(cast<PointerType>(Pointer));
    auto Put = [&](Instruction *Where, Place Kind) {
        IRBuilder<> Builder(Where);
        Builder.SetCurrentDebugLocation(Entry->getDebugLoc());
        CallInst *Call = Builder.CreateCall(Annotation, {None, None, None, Builder.getInt32(Kind), None});
        Call->addFnAttr(Attribute::NoMerge); // a merged exit loses the location of its inlined call
    };
    Put(Entry, EnterPlace);
    for (BasicBlock &BB : F)
        if (isa<ReturnInst, ResumeInst>(BB.getTerminator()))
            Put(BB.getTerminator(), ExitPlace);
}

PreservedAnalyses MarkPass::run(Module &M, ModuleAnalysisManager &AM) {
    PreservedAnalyses Untouched = keepCountedApart(M) ? PreservedAnalyses::none() : PreservedAnalyses::all();
    const std::string Kept = sys::Process::GetEnv("QUIPU_INLINED").value_or("time");
    if (Kept == "off")
        return Untouched;
    Filter Selection; // InstrumentPass reports errors in the filter
    readSelection(Selection);
    LLVMContext &Context = M.getContext();
    Function *Probe = Intrinsic::getDeclaration(&M, Intrinsic::pseudoprobe);
    Type *I64 = Type::getInt64Ty(Context);
    std::vector<std::pair<Function *, Identity>> Functions;
    for (Function &F : M)
        if (isCountable(F))
            Functions.emplace_back(&F, identify(F));
    if (Functions.empty())
        return Untouched;
    SmallPtrSet<const Function *, 32> Library;
    for (const auto &[F, Known] : Functions)
        if (isLibrary(Known))
            Library.insert(F);
    const Libraries Headers(M);
    NamedMDNode *Marked = M.getOrInsertNamedMetadata(MarkedFunctions);
    ScopeMaker Scopes(M);
    DenseMap<Function *, Worth> Timed =
        worthTiming(M, AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager());
    for (auto &[F, Known] : Functions) {
        const Worth Worthy = Timed.lookup(F);
        Known.By = Library.contains(F) ? Owner::Program : Headers.ownerOf(*F);
        // MuchWork is false for a function of the C++ library that only this library calls, because it is not an
        // algorithm that the program uses. The same holds for the implementation namespaces of other libraries.
        Known.MuchWork = Worthy.IsMuch && (Known.By != Owner::LibraryInside || Headers.isCalledFromOutside(*F)) &&
                         (!Library.contains(F) || any_of(F->users(), [&](const User *U) {
                             const auto *Call = dyn_cast<CallBase>(U);
                             return Call && !Library.contains(Call->getFunction());
                         }));
        if (!F->getSubprogram())
            Scopes.describe(*F);
        locateCalls(*F);
        Marked->addOperand(MDNode::get(
            Context, {F->getSubprogram(), MDString::get(Context, Known.Name), MDString::get(Context, Known.Display),
                      MDString::get(Context, Known.File), ConstantAsMetadata::get(ConstantInt::get(I64, Known.Line)),
                      ConstantAsMetadata::get(ConstantInt::get(I64, *Known.MuchWork)),
                      ConstantAsMetadata::get(ConstantInt::get(I64, static_cast<uint64_t>(Known.By)))}));
        IRBuilder<> Builder(&*F->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        Builder.SetCurrentDebugLocation(DILocation::get(Context, Known.Line, 0, F->getSubprogram()));
        Instruction *Mark = Builder.CreateCall(Probe, {Builder.getInt64(numberOf(Known.Name)), Builder.getInt64(1),
                                                       Builder.getInt32(0), Builder.getInt64(~uint64_t{0})});
        if (Kept == "time" && Worthy.TakesPlaces && isShown(Known, Selection))
            placeHooks(*F, Mark);
    }
    Selection.clear();
    return PreservedAnalyses::none();
}

Marks::Marks(Module &M) {
    const NamedMDNode *Marked = M.getNamedMetadata(MarkedFunctions);
    for (unsigned I = 0; Marked && I < Marked->getNumOperands(); I++) {
        const MDNode *Entry = Marked->getOperand(I);
        auto Text = [&](unsigned Operand) { return cast<MDString>(Entry->getOperand(Operand))->getString().str(); };
        auto Number = [&](unsigned Operand) {
            return static_cast<unsigned>(mdconst::extract<ConstantInt>(Entry->getOperand(Operand))->getZExtValue());
        };
        Identity Known{Text(1), Text(2), Text(3), Number(4), Number(5) != 0, static_cast<Owner>(Number(6))};
        const Identity *Kept = &ByName.try_emplace(Known.Name, Known).first->second;
        if (const auto *Scope = dyn_cast_or_null<DISubprogram>(Entry->getOperand(0)))
            ByScope[Scope] = Kept;
        ByNumber[numberOf(Kept->Name)] = Kept;
    }
}

const Identity *Marks::identityOf(const DISubprogram *Scope) const {
    if (auto Found = ByScope.find(Scope); Found != ByScope.end())
        return Found->second;
    auto [Entry, Fresh] = Copies.try_emplace(Scope, nullptr);
    if (!Fresh)
        return Entry->second;
    for (const auto &[Original, Known] : ByScope)
        if (Original->getName() == Scope->getName() && Original->getLinkageName() == Scope->getLinkageName() &&
            Original->getLine() == Scope->getLine() && Original->getFile() == Scope->getFile())
            Entry->second = Known;
    return Entry->second;
}

Identity Marks::identityOf(const Function &F) const {
    const Identity *Known = F.getSubprogram() ? identityOf(F.getSubprogram()) : nullptr;
    // An optimization may add a suffix to the name, for example if it specializes the function for an argument. The
    // function keeps its identity. The parts of a coroutine also differ in a suffix, but they are different functions.
    const bool IsPart = any_of(std::array{".resume", ".destroy", ".cleanup"},
                               [&](const char *End) { return F.getName().ends_with(End); });
    if (Known && !IsPart && (F.getName() == Known->Name || F.getName().starts_with(Known->Name + ".")))
        return *Known;
    return identify(F);
}

const Identity *Marks::markedBy(const Instruction &I) const {
    const auto *Probe = dyn_cast<PseudoProbeInst>(&I);
    return Probe ? ByNumber.lookup(Probe->getFuncGuid()->getZExtValue()) : nullptr;
}

bool Marks::isEnter(const Instruction &I) { return isPlace(I, EnterPlace); }
bool Marks::isExit(const Instruction &I) { return isPlace(I, ExitPlace); }

bool Marks::hasOnlyPlaces(const BasicBlock &BB) {
    const auto *Branch = dyn_cast<BranchInst>(BB.getTerminator());
    bool Found = false;
    for (const Instruction &I : BB) {
        if (isEnter(I) || isExit(I))
            Found = true;
        else if (&I != Branch && isWork(I))
            return false;
    }
    return Found && Branch && Branch->isUnconditional();
}

void Marks::removePlaces(Module &M) {
    for (Function &F : M)
        for (BasicBlock &BB : F)
            for (Instruction &I : make_early_inc_range(BB))
                if (isEnter(I) || isExit(I))
                    I.eraseFromParent();
}

void Marks::remove(Module &M) {
    for (Function &F : M)
        for (BasicBlock &BB : F)
            for (Instruction &I : make_early_inc_range(BB))
                if (markedBy(I))
                    I.eraseFromParent();
    if (NamedMDNode *Marked = M.getNamedMetadata(MarkedFunctions))
        Marked->eraseFromParent();
    removeScopes(M);
}

} // namespace quipu

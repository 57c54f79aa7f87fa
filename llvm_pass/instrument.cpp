#include "instrument.h"

#include "counting.h"
#include "hooks.h"
#include "modules.h"
#include "names.h"
#include "regions.h"

#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"
#include "llvm/Transforms/Utils/EscapeEnumerator.h"

#include <vector>

using namespace llvm;

namespace quipu {
namespace {

/// A function that now counts writes memory: what the optimizer had found out about it no longer holds.
void forgetMemoryFacts(Function &F) {
    F.removeFnAttr(Attribute::Memory);
    F.removeFnAttr(Attribute::NoSync);
    F.removeFnAttr(Attribute::NoFree);
    F.removeFnAttr(Attribute::Speculatable);
    for (User *U : F.users()) {
        auto *Call = dyn_cast<CallBase>(U);
        if (!Call || Call->getCalledOperand() != &F)
            continue;
        Call->removeFnAttr(Attribute::Memory);
        Call->removeFnAttr(Attribute::NoSync);
        Call->removeFnAttr(Attribute::NoFree);
        Call->removeFnAttr(Attribute::Speculatable);
    }
}

/// Inserts counting, and enter and exit if it is a region, into one function.
class FunctionInstrumenter {
  public:
    FunctionInstrumenter(Function &F, Runtime &RT, RegionFacts &Facts, bool Region, bool HandleExceptions)
        : F(F), RT(RT), Facts(Facts), Region(Region), HandleExceptions(HandleExceptions) {}

    /// The reference: the effort of every block is added to the active call path.
    void runNaively(const BlockEfforts &Efforts) {
        std::vector<Instruction *> Twice = returningTwice();
        countNaively(F, Efforts, RT.Effort, RT.Moved);
        Value *Frame = nullptr;
        if (Region)
            Frame = atEntry(RT.Enter, {createDescriptor(F, Facts, false, {})}, "quipu.frame");
        finish(Twice, Frame);
    }

    void run(FunctionAnalysisManager &FAM, bool PerLine) {
        std::vector<Instruction *> Twice = returningTwice();
        Counting Counters(F, FAM);
        if (Counters.counters() > QUIPU_MOST_COUNTERS)
            return runNaively(Counters.efforts());
        if (PerLine) {
            Facts.Counters = Counters.counters();
            Facts.Lines = Counters.lines();
        }
        GlobalVariable *Descriptor = createDescriptor(F, Facts, !Region, Counters.weights());
        CallInst *Begin =
            atEntry(Region ? RT.Enter : RT.Count, {Descriptor}, Region ? "quipu.frame" : "quipu.counters");
        Hooks.push_back(Begin);
        if (Counters.counters() > 0) {
            IRBuilder<> Builder(Begin->getNextNode());
            Counters.insert(
                Region ? static_cast<Value *>(Builder.CreateLoad(Builder.getPtrTy(), Begin, "quipu.counters")) : Begin);
        }
        finish(Twice, Region ? Begin : nullptr);
    }

  private:
    std::vector<Instruction *> returningTwice() {
        std::vector<Instruction *> Twice;
        for (BasicBlock &BB : F)
            for (Instruction &I : BB)
                if (isRealCall(I) && cast<CallBase>(I).hasFnAttr(Attribute::ReturnsTwice))
                    Twice.push_back(&I);
        return Twice;
    }

    CallInst *atEntry(FunctionCallee Callee, ArrayRef<Value *> Arguments, const char *Name) {
        IRBuilder<> Builder(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        setLocation(Builder);
        return Builder.CreateCall(Callee, Arguments, Name);
    }

    /// What follows the counting: the exits of the region, and the ends of frames that control came back over.
    void finish(const std::vector<Instruction *> &Twice, Value *Frame) {
        if (!Twice.empty())
            resume(Twice, Frame ? Frame : atEntry(RT.Top, {}, "quipu.frame"));
        if (Frame) {
            EscapeEnumerator Escapes(F, "quipu.cleanup", HandleExceptions);
            while (IRBuilder<> *Exit = Escapes.Next()) {
                setLocation(*Exit);
                CallInst *Call = Exit->CreateCall(RT.Exit, {Frame});
                if (!isa<ResumeInst>(Call->getParent()->getTerminator()))
                    Hooks.push_back(Call);
            }
        }
        RT.inlineHooks(F, Hooks);
        forgetMemoryFacts(F);
    }

    /// Where control may come back a second time, the frames above end.
    void resume(const std::vector<Instruction *> &Twice, Value *Frame) {
        for (Instruction *Call : Twice) {
            Instruction *After = isa<InvokeInst>(Call)
                                     ? &*cast<InvokeInst>(Call)->getNormalDest()->getFirstInsertionPt()
                                     : Call->getNextNode();
            IRBuilder<> Resumed(After);
            Resumed.SetCurrentDebugLocation(Call->getDebugLoc());
            Resumed.CreateCall(RT.Unwind, {Frame});
        }
    }

    /// Calls in functions with debug information must have a location.
    void setLocation(IRBuilder<> &Builder) {
        if (DISubprogram *Debug = F.getSubprogram())
            Builder.SetCurrentDebugLocation(DILocation::get(F.getContext(), Debug->getScopeLine(), 0, Debug));
    }

    Function &F;
    Runtime &RT;
    RegionFacts &Facts;
    bool Region;
    bool HandleExceptions;
    SmallVector<CallInst *, 4> Hooks;
};

/// The filter that the compiler wrapper passes on, if there is one; a mistake in it is an error of the compilation.
bool readSelection(Module &M, Filter &Selection) {
    std::optional<std::string> Path = sys::Process::GetEnv("QUIPU_FILTER");
    if (!Path || Path->empty())
        return true;
    FilterError Error;
    if (read_filter(Path->c_str(), Selection, Error))
        return true;
    std::string Where = Error.line ? *Path + ":" + std::to_string(Error.line) : *Path;
    M.getContext().emitError("quipu: " + Where + ": " + Error.message + " (from QUIPU_FILTER)");
    return false;
}

} // namespace

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &AM) {
    Filter Selection;
    if (!readSelection(M, Selection))
        return PreservedAnalyses::all();
    auto &FAM = AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    // Fortran has no exceptions; the functions of flang do not say so.
    bool HandleExceptions = !isFortran(M);
    bool Naive = sys::Process::GetEnv("QUIPU_NAIVE").has_value();
    bool PerLine = sys::Process::GetEnv("QUIPU_PER_BLOCK").has_value();
    bool All = sys::Process::GetEnv("QUIPU_ALL").has_value();
    bool OnlySelected = sys::Process::GetEnv("QUIPU_ONLY_SELECTED").has_value();

    std::vector<Function *> Functions;
    for (Function &F : M)
        if (isCountable(F))
            Functions.push_back(&F);
    if (Functions.empty())
        return PreservedAnalyses::all();

    Runtime RT(M);
    std::vector<std::string> Lines;
    for (Function *F : Functions) {
        RegionFacts Facts = describe(*F);
        bool Region = isRegion(Facts, Selection, All);
        if (OnlySelected && !Region)
            continue;
        FunctionInstrumenter Instrumenter(*F, RT, Facts, Region, HandleExceptions);
        if (Naive)
            Instrumenter.runNaively(effortsOf(*F));
        else
            Instrumenter.run(FAM, PerLine);
        Lines.push_back(factsLine(Facts, Region));
        FAM.invalidate(*F, PreservedAnalyses::none());
    }
    emitFacts(M, Lines);
    emitCheck(M);
    Selection.clear();

    PreservedAnalyses PA = PreservedAnalyses::none();
    PA.abandon<GlobalsAA>();
    return PA;
}

} // namespace quipu

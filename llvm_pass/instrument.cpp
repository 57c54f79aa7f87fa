// SPDX-License-Identifier: Apache-2.0
#include "instrument.h"

#include "counting.h"
#include "hooks.h"
#include "marks.h"
#include "modules.h"
#include "names.h"
#include "regions.h"
#include "scopes.h"
#include "selection.h"
#include "versions.h"

#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"
#include "llvm/Transforms/Utils/EscapeEnumerator.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

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

/// Hooks of functions inside of another that each have their own code; more share one copy, which is slower by a call.
constexpr size_t FewHooks = 4;

/// Inserts counting, and enter and exit if it is a region, into one function.
class FunctionInstrumenter {
  public:
    FunctionInstrumenter(Function &F, Runtime &RT, RegionFacts &Facts, quipu_hook Hook, const Scopes &Within,
                         bool HandleExceptions)
        : F(F), RT(RT), Facts(Facts), Hook(Hook), Within(Within), HandleExceptions(HandleExceptions) {}

    /// The reference: what every block does is added to its call path.
    void runNaively() {
        std::vector<Instruction *> Twice = returningTwice();
        const Descriptors Descriptor = createDescriptors(F, Facts, Hook, Within, {});
        countNaively(F, Within, Descriptor.Whole, RT.Effort, RT.Moved);
        CallInst *Begin = atEntry(isRegion() ? RT.Enter : RT.Count, {Descriptor.Whole}, "quipu.frame");
        finish(Twice, isRegion() ? Begin : nullptr, Descriptor.Inner);
    }

    void run(FunctionAnalysisManager &FAM) {
        std::vector<Instruction *> Twice = returningTwice();
        Counting Counters(F, FAM, Within, !isRegion() && RT.inlines(F));
        if (Counters.counters() > QUIPU_MOST_COUNTERS)
            return runNaively();
        Facts.Counters.assign(Within.scopes().size(), 0);
        Facts.Counters[0] = Counters.counters();
        for (unsigned Row = 0; Row < Counters.weights().size(); Row++)
            for (const auto &Entry : Counters.weights()[Row])
                if (Entry.first > 0 && !isNothing(Entry.second))
                    Facts.Counters[Entry.first] = Row + 1;
        Facts.Classes = Counters.classes();
        const Descriptors Descriptor = createDescriptors(F, Facts, Hook, Within, Counters.weights());
        CallInst *Begin = atEntry(isRegion() ? RT.Enter : RT.Count, {Descriptor.Whole},
                                  isRegion() ? "quipu.frame" : "quipu.counters");
        Hooks.push_back(Begin);
        if (Counters.counters() > 0) {
            IRBuilder<> Builder(Begin->getNextNode());
            Counters.insert(isRegion()
                                ? static_cast<Value *>(Builder.CreateLoad(Builder.getPtrTy(), Begin, "quipu.counters"))
                                : Begin);
        }
        CountsVisits = Counters.countsVisits();
        finish(Twice, isRegion() ? Begin : nullptr, Descriptor.Inner);
    }

  private:
    bool isRegion() const { return Hook == QUIPU_HOOKED; }

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
    void finish(const std::vector<Instruction *> &Twice, Value *Frame, GlobalVariable *Inner) {
        placeHooks(Frame, Inner);
        if (!Twice.empty())
            resume(Twice, Frame ? Frame : atEntry(RT.Top, {}, "quipu.frame"));
        if (Frame) {
            // An exception that no clause of a landing pad catches passes by where there is no cleanup.
            for (BasicBlock &BB : F)
                if (BB.isLandingPad())
                    BB.getLandingPadInst()->setCleanup(true);
            EscapeEnumerator Escapes(F, "quipu.cleanup", HandleExceptions);
            while (IRBuilder<> *Exit = Escapes.Next()) {
                setLocation(*Exit);
                CallInst *Call = Exit->CreateCall(RT.Exit, {Frame});
                if (!isa<ResumeInst>(Call->getParent()->getTerminator()))
                    Hooks.push_back(Call);
            }
        }
        const size_t Own = Hooks.size() + (InnerHooks.size() <= FewHooks ? InnerHooks.size() : 0);
        Hooks.append(InnerHooks);
        RT.inlineHooks(F, Hooks, Own, CountsVisits);
        forgetMemoryFacts(F);
    }

    /// The hooks of functions that were inlined, where they were placed before optimization.
    void placeHooks(Value *Frame, GlobalVariable *Inner) {
        if (Within.hooks().empty())
            return;
        IRBuilder<> Builder(&F.getEntryBlock(), F.getEntryBlock().begin());
        DenseMap<Scopes::Instance, AllocaInst *> Slots;
        for (const Scopes::Hook &H : Within.hooks()) {
            AllocaInst *&Slot = Slots[H.Of];
            if (Slot)
                continue;
            Slot = Builder.CreateAlloca(Builder.getPtrTy(), nullptr, "quipu.frame");
            Builder.CreateStore(ConstantPointerNull::get(Builder.getPtrTy()), Slot);
        }
        for (const Scopes::Hook &H : Within.hooks()) {
            IRBuilder<> Here(H.Place);
            Here.SetCurrentDebugLocation(H.Place->getDebugLoc());
            setLocation(Here);
            AllocaInst *Slot = Slots.lookup(H.Of);
            if (H.IsExit) {
                InnerHooks.push_back(Here.CreateCall(RT.Exit, {Here.CreateLoad(Here.getPtrTy(), Slot)}));
            } else {
                Value *Zero = Here.getInt32(0);
                Value *Region =
                    Here.CreateInBoundsGEP(Inner->getValueType(), Inner, {Zero, Here.getInt32(H.Scope), Zero});
                CallInst *Enter = Here.CreateCall(RT.Enter, {Region});
                Here.CreateStore(Enter, Slot);
                InnerHooks.push_back(Enter);
            }
            H.Place->eraseFromParent();
        }
        // What an exception ended does not come to its exit.
        for (BasicBlock &BB : F) {
            if (!BB.isLandingPad())
                continue;
            IRBuilder<> Here(BB.getLandingPadInst()->getNextNode());
            setLocation(Here);
            Value *Left = Frame;
            if (std::optional<Scopes::Instance> Around = Within.hookedAround(BB))
                Left = Here.CreateLoad(Here.getPtrTy(), Slots.lookup(*Around));
            else if (!Left)
                Left = Frame = atEntry(RT.Top, {}, "quipu.frame");
            Here.CreateCall(RT.Unwind, {Left});
        }
        SmallVector<AllocaInst *, 8> Frames;
        for (const auto &Entry : Slots)
            Frames.push_back(Entry.second);
        DominatorTree DT(F);
        PromoteMemToReg(Frames, DT);
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
    quipu_hook Hook;
    const Scopes &Within;
    bool HandleExceptions;
    SmallVector<CallInst *, 4> Hooks;      ///< of the function
    SmallVector<CallInst *, 4> InnerHooks; ///< of what was inlined into it
    bool CountsVisits = false;             ///< by its counters
};

} // namespace

// Says that a module waits for the end of the pipeline.
static const char *const Waiting = "quipu.waiting";

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &AM) {
    PreservedAnalyses Preserved = instrument(M, AM);
    // Lines that the user did not ask for are in the descriptors now, and are not wanted elsewhere.
    if (sys::Process::GetEnv("QUIPU_DEBUG_LINES").value_or("on") == "off" && !M.getNamedMetadata(Waiting) &&
        StripDebugInfo(M))
        return PreservedAnalyses::none();
    return Preserved;
}

PreservedAnalyses InstrumentPass::instrument(Module &M, ModuleAnalysisManager &AM) {
    if (Now == Early && any_of(M, [](const Function &F) { return F.isPresplitCoroutine(); })) {
        M.getOrInsertNamedMetadata(Waiting);
        return PreservedAnalyses::all();
    }
    if (Now == Late) {
        NamedMDNode *Waits = M.getNamedMetadata(Waiting);
        if (!Waits)
            return PreservedAnalyses::all();
        Waits->eraseFromParent();
    }
    Filter Selection;
    if (std::string Problem = readSelection(Selection); !Problem.empty()) {
        M.getContext().emitError("quipu: " + Problem);
        return PreservedAnalyses::all();
    }
    auto &FAM = AM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    // Fortran has no exceptions; the functions of flang do not say so.
    bool HandleExceptions = !isFortran(M);
    bool Naive = sys::Process::GetEnv("QUIPU_NAIVE").has_value();
    bool All = sys::Process::GetEnv("QUIPU_ALL").has_value();
    bool OnlySelected = sys::Process::GetEnv("QUIPU_ONLY_SELECTED").has_value();

    std::vector<Function *> Functions;
    for (Function &F : M)
        if (isCountable(F) && !F.isPresplitCoroutine())
            Functions.push_back(&F);
    Marks Marked(M);
    std::vector<Identity> Selves;
    Selves.reserve(Functions.size());
    std::vector<Scopes> Within;
    for (Function *F : Functions) {
        Selves.push_back(Marked.identityOf(*F));
        Within.emplace_back(*F, FAM, Selves.back(), Marked,
                            [&](const Identity &Function) { return isShown(Function, Selection); });
    }
    Marked.remove(M);
    if (Functions.empty()) {
        Marks::removePlaces(M);
        return Marked.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
    }

    Runtime RT(M);
    DenseMap<Function *, Function *> CountedOf;
    std::vector<std::string> Lines;
    for (size_t I = 0; I < Functions.size(); I++) {
        Function *F = Functions[I];
        markCounted(*F);
        RegionFacts Facts = describe(*F, Selves[I], FAM.getResult<TargetLibraryAnalysis>(*F));
        const quipu_hook Hook = hookOf(Facts, Selection, All);
        // What is inlined into it may be timed.
        if (OnlySelected && Hook != QUIPU_HOOKED && Within[I].hooks().empty())
            continue;
        if (Function *Plain = Naive ? nullptr : separateCounted(*F)) {
            forgetMemoryFacts(*Plain); // it calls what counts
            CountedOf[Plain] = F;
        }
        FunctionInstrumenter Instrumenter(*F, RT, Facts, Hook, Within[I], HandleExceptions);
        if (Naive)
            Instrumenter.runNaively();
        else
            Instrumenter.run(FAM);
        addFacts(Lines, Facts, Hook == QUIPU_HOOKED, Within[I]);
        FAM.invalidate(*F, PreservedAnalyses::none());
    }
    callCounted(CountedOf);
    Marks::removePlaces(M);
    emitFacts(M, Lines);
    emitCheck(M);
    Selection.clear();

    PreservedAnalyses PA = PreservedAnalyses::none();
    PA.abandon<GlobalsAA>();
    return PA;
}

} // namespace quipu

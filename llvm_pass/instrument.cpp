// SPDX-License-Identifier: Apache-2.0
#include "instrument.h"

#include "carried.h"
#include "counting.h"
#include "hooks.h"
#include "marks.h"
#include "modules.h"
#include "names.h"
#include "regions.h"
#include "scopes.h"
#include "sections.h"
#include "selection.h"
#include "versions.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/LoopInfo.h"
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

/// Removes attributes of a function, and of its calls, that are wrong because counting writes memory.
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

/// How the version with the public name calls the counted version (decideAtEntry).
struct Decision {
    Function *Plain, *Counted;
    GlobalVariable *Region; ///< null: the counted version looks up its counters
    bool CountsVisits;
};

/// Inserts counters into one function, and also enter and exit if the function is a region.
class FunctionInstrumenter {
  public:
    FunctionInstrumenter(Function &F, Runtime &RT, RegionFacts &Facts, quipu_hook Hook, const Scopes &Within,
                         CarriedCalls &Callees, Details &Into, bool HandleExceptions)
        : F(F), RT(RT), Facts(Facts), Hook(Hook), Within(Within), Callees(Callees), Into(Into),
          HandleExceptions(HandleExceptions), Inlines(RT.inlines(F)) {}

    /// Inserts the reference implementation: every block adds its work to the call path.
    void runNaively() {
        std::vector<Instruction *> Twice = returningTwice();
        const Descriptors Descriptor = createDescriptors(F, Facts, Hook, Within, {}, {}, Into);
        Inlines = false;
        countNaively(F, Within, Descriptor.Whole, RT.Effort, RT.Moved);
        CallInst *Begin = atEntry(isRegion() ? RT.Enter : RT.Count, {Descriptor.Whole}, "quipu.frame");
        finish(Twice, isRegion() ? Begin : nullptr, Descriptor);
    }

    /// Inserts counters and hooks. Plain: the version without counters (versions.h); null if there is none.
    /// MayBeCarried: whether callers in this file may count for the function (carried.h). Returns the data for these
    /// callers; none if they do not count for it.
    std::optional<Carried> run(FunctionAnalysisManager &FAM, Function *Plain, bool MayBeCarried) {
        std::vector<Instruction *> Twice = returningTwice();
        const StringRef Name = Plain ? Plain->getName() : F.getName();
        Inlines &= Twice.empty() && Name != "main"; // quipu_exit of main also ends regions that the program left open
        MayBeCarried &= Plain && !Plain->isInterposable() && Twice.empty() && Within.hooks().empty();
        PathUse Ways = isRegion() || !Inlines ? PathUse::Never : PathUse::Usually;
        if (MayBeCarried && Ways == PathUse::Usually && isCalledHereOnly(*Plain))
            Ways = PathUse::IfManyBranches;
        Counting Counters(F, FAM, Within, Callees, Ways);
        if (Counters.counters() > QUIPU_MOST_COUNTERS) {
            runNaively();
            enterFrom(Plain);
            return std::nullopt;
        }
        Facts.Counters.assign(Within.scopes().size(), 0);
        Facts.Counters[0] = Counters.counters();
        for (unsigned Row = 0; Row < Counters.weights().size(); Row++)
            for (const auto &Entry : Counters.weights()[Row])
                if (Entry.first > 0 && !isNothing(Entry.second))
                    Facts.Counters[Entry.first] = Row + 1;
        Facts.Classes = Counters.classes();
        // Include rows that are empty because the work of several classes cancels out. The classes refer to these rows.
        for (const CountClass &C : Facts.Classes)
            if (C.Scope > 0 && !C.Terms.empty())
                Facts.Counters[C.Scope] = std::max(Facts.Counters[C.Scope], C.Terms.back().first + 1);
        Instruction *Own = nullptr; // stands for the address of the counters until it is known
        if (Counters.counters() > 0) {
            IRBuilder<> Builder(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
            setLocation(Builder);
            Own = cast<Instruction>(Builder.CreateFreeze(PoisonValue::get(Builder.getPtrTy())));
            Counters.insert(Own);
        }
        const std::vector<int64_t> Additions = Counters.additions();
        Callees.redirect(Own, Counters.firstOfCallees());
        const Descriptors Descriptor = createDescriptors(F, Facts, Hook, Within, Counters.weights(), Additions, Into);
        CountsVisits = Counters.countsVisits();
        if (MayBeCarried && isFewToCarry(Counters.counters(), Within.scopes().size()))
            return carry(FAM, *Plain, Counters, Additions, Own, Descriptor);
        CallInst *Begin = atEntry(isRegion() ? RT.Enter : RT.Count, {Descriptor.Whole},
                                  isRegion() ? "quipu.frame" : "quipu.counters");
        if (Inlines && isRegion())
            Visit = RT.newVisit(F);
        if (Own) {
            IRBuilder<> Builder(Begin->getNextNode());
            Value *Found = Begin;
            if (isRegion())
                Found = Builder.CreateLoad(Builder.getPtrTy(), Begin, "quipu.counters");
            Own->replaceAllUsesWith(Found);
            Own->eraseFromParent();
        }
        finish(Twice, isRegion() ? Begin : nullptr, Descriptor);
        if (Visit)
            RT.inlineHook(Begin, Visit, GoesOn);
        else if (Inlines && !isRegion())
            RT.inlineCount(Begin, CountsVisits);
        enterFrom(Plain);
        return std::nullopt;
    }

    std::optional<Decision> decision() const { return Decides; }

  private:
    bool isRegion() const { return Hook == QUIPU_HOOKED; }

    /// Makes the plain version call the counted version, which looks up its counters.
    void enterFrom(Function *Plain) {
        if (Plain)
            Decides = Decision{Plain, &F, nullptr, false};
    }

    static bool isCalledHereOnly(const Function &Plain) {
        return !Plain.use_empty() && all_of(Plain.uses(), [](const Use &U) {
            const auto *Call = dyn_cast<CallBase>(U.getUser());
            return Call && Call->isCallee(&U);
        });
    }

    /// Makes the counters a parameter of the counted version. Callers in this file pass a part of their counters. The
    /// plain version passes the counters of the call path.
    Carried carry(FunctionAnalysisManager &FAM, Function &Plain, const Counting &Counters,
                  const std::vector<int64_t> &Additions, Instruction *Own, const Descriptors &Descriptor) {
        Carried Made{&F,
                     Within.scopes().front().Function,
                     Hook != QUIPU_LEFT_OUT,
                     Within.scopes().vec(),
                     Counters.weights(),
                     Facts.Classes,
                     Additions,
                     alwaysReturns(F)};
        if (!CountsVisits)
            Made.Weights[0][0].Visits++;
        if (Own) {
            forgetMemoryFacts(F);
            Made.Counted = withCounters(F);
            Own->replaceAllUsesWith(Made.Counted->getArg(Made.Counted->arg_size() - 1));
            Own->eraseFromParent();
        }
        if (!Made.Counted->hasLocalLinkage()) {
            // Another file may contain the same function, optimized differently. The linker must merge only versions
            // whose counters have the same meaning, so the name contains a hash of this meaning.
            Made.Counted->setName(Plain.getName() + ".quipu." +
                                  utohexstr(numberOf(Made.Inner, Made.Weights, Made.Returns), true));
            if (Made.Counted->hasComdat())
                Made.Counted->setComdat(F.getParent()->getOrInsertComdat(Made.Counted->getName()));
        }
        Decides = Decision{&Plain, Made.Counted, Descriptor.Whole, CountsVisits};
        if (Made.Counted != &F) {
            FAM.clear(F, F.getName());
            F.eraseFromParent();
        }
        return Made;
    }

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

    /// Inserts the exits of the region, and ends frames if control comes back a second time (setjmp).
    void finish(const std::vector<Instruction *> &Twice, Value *Frame, const Descriptors &Descriptor) {
        placeHooks(Frame, Descriptor);
        if (!Twice.empty())
            resume(Twice, Frame ? Frame : atEntry(RT.Top, {}, "quipu.frame"));
        if (Frame) {
            // Without a cleanup, an exception that matches no clause skips the landing pad.
            for (BasicBlock &BB : F)
                if (BB.isLandingPad())
                    BB.getLandingPadInst()->setCleanup(true);
            EscapeEnumerator Escapes(F, "quipu.cleanup", HandleExceptions);
            while (IRBuilder<> *Exit = Escapes.Next()) {
                setLocation(*Exit);
                if (!Visit)
                    Exit->CreateCall(RT.Exit, {Frame});
                else if (isa<ResumeInst>(Exit->GetInsertBlock()->getTerminator()))
                    Exit->CreateCall(RT.ExitVisit, {Visit});
                else
                    Hooks.push_back({Exit->CreateCall(RT.Exit, {Visit}), Visit, false});
            }
        }
        for (const auto &[Call, Of, IsShared] : Hooks)
            if (IsShared)
                RT.shareHook(Call, Of);
            else
                RT.inlineHook(Call, Of, GoesOn);
        forgetMemoryFacts(F);
    }

    /// Returns the inlined calls whose exit or landing pad can be reached without their enter.
    DenseSet<Scopes::Instance> maybeNotBegun(const DominatorTree &DT) const {
        DenseMap<Scopes::Instance, SmallVector<const Instruction *, 2>> Begins;
        for (const Scopes::Hook &H : Within.hooks())
            if (!H.IsExit)
                Begins[H.Of].push_back(H.Place);
        DenseSet<Scopes::Instance> Found;
        auto Use = [&](Scopes::Instance Of, const Instruction *Place) {
            if (none_of(Begins[Of], [&](const Instruction *Begin) { return DT.dominates(Begin, Place); }))
                Found.insert(Of);
        };
        for (const Scopes::Hook &H : Within.hooks())
            if (H.IsExit)
                Use(H.Of, H.Place);
        for (const BasicBlock &BB : F)
            if (std::optional<Scopes::Instance> Of = BB.isLandingPad() ? Within.hookedAround(BB) : std::nullopt)
                Use(*Of, BB.getLandingPadInst());
        return Found;
    }

    /// Replaces the placeholders of hooks in inlined functions by hooks.
    void placeHooks(Value *Frame, const Descriptors &Descriptor) {
        if (Within.hooks().empty())
            return;
        DominatorTree DT(F);
        const LoopInfo Loops(DT);
        const DenseSet<Scopes::Instance> MaybeNotBegun = maybeNotBegun(DT);
        IRBuilder<> Builder(&F.getEntryBlock(), F.getEntryBlock().begin());
        DenseMap<Scopes::Instance, AllocaInst *> Slots;
        for (const Scopes::Hook &H : Within.hooks()) {
            AllocaInst *&Slot = Slots[H.Of];
            if (Slot)
                continue;
            if (Inlines) {
                Slot = RT.newVisit(F);
                if (MaybeNotBegun.count(H.Of))
                    Builder.CreateStore(Builder.getInt64(QUIPU_FRAMED), Slot); // not entered: its frame is null
                continue;
            }
            Slot = Builder.CreateAlloca(Builder.getPtrTy(), nullptr, "quipu.frame");
            Builder.CreateStore(ConstantPointerNull::get(Builder.getPtrTy()), Slot);
        }
        for (const Scopes::Hook &H : Within.hooks()) {
            IRBuilder<> Here(H.Place);
            Here.SetCurrentDebugLocation(H.Place->getDebugLoc());
            setLocation(Here);
            AllocaInst *Slot = Slots.lookup(H.Of);
            // Outside of loops, a hook runs at most once per visit of the function. A call of a shared function is fast
            // enough, and makes the code shorter.
            const bool IsShared = !Loops.getLoopFor(H.Place->getParent());
            if (H.IsExit) {
                Value *Frame = Inlines ? static_cast<Value *>(Slot) : Here.CreateLoad(Here.getPtrTy(), Slot);
                CallInst *Exit = Here.CreateCall(RT.Exit, {Frame});
                if (Inlines)
                    Hooks.push_back({Exit, Slot, IsShared});
            } else {
                GlobalVariable *All = Descriptor.Whole;
                Value *Region = Here.CreateInBoundsGEP(All->getValueType(), All,
                                                       {Here.getInt32(0), Here.getInt32(Descriptor.PlaceOf[H.Scope])});
                CallInst *Enter = Here.CreateCall(RT.Enter, {Region});
                if (Inlines)
                    Hooks.push_back({Enter, Slot, IsShared});
                else
                    Here.CreateStore(Enter, Slot);
            }
            H.Place->eraseFromParent();
        }
        // Inlined functions that an exception leaves do not reach their exit. The landing pad ends their visits.
        for (BasicBlock &BB : F) {
            if (!BB.isLandingPad())
                continue;
            IRBuilder<> Here(BB.getLandingPadInst()->getNextNode());
            setLocation(Here);
            std::optional<Scopes::Instance> Around = Within.hookedAround(BB);
            if (Inlines && (Around || Visit)) {
                GoesOn = true;
                Here.CreateCall(RT.UnwindVisit, {Around ? Slots.lookup(*Around) : Visit});
                continue;
            }
            Value *Left = Frame;
            if (Around)
                Left = Here.CreateLoad(Here.getPtrTy(), Slots.lookup(*Around));
            else if (!Left)
                Left = Frame = atEntry(RT.Top, {}, "quipu.frame");
            Here.CreateCall(RT.Unwind, {Left});
        }
        if (Inlines)
            return;
        SmallVector<AllocaInst *, 8> Frames;
        for (const auto &Entry : Slots)
            Frames.push_back(Entry.second);
        PromoteMemToReg(Frames, DT);
    }

    /// Ends the frames above this function after calls that may return a second time (setjmp).
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

    /// Sets a location, because calls in functions with debug information must have one.
    void setLocation(IRBuilder<> &Builder) {
        if (DISubprogram *Debug = F.getSubprogram())
            Builder.SetCurrentDebugLocation(DILocation::get(F.getContext(), Debug->getScopeLine(), 0, Debug));
    }

    Function &F;
    Runtime &RT;
    RegionFacts &Facts;
    quipu_hook Hook;
    const Scopes &Within;
    CarriedCalls &Callees;
    Details &Into;
    bool HandleExceptions;
    bool Inlines;        ///< whether hooks are inline
    bool GoesOn = false; ///< whether the function continues after an exception that may have left an inlined function
    AllocaInst *Visit = nullptr; ///< visit of the function, if its hooks are inline
    struct Hooked {
        CallInst *Call;
        AllocaInst *Visit;
        bool IsShared; ///< whether the code of the hook is shared in the module
    };
    /// Hooks to be replaced by inline code or by calls of shared functions, except the enter of `F` itself.
    SmallVector<Hooked, 4> Hooks;
    bool CountsVisits = false; ///< whether the counters contain the visits
    std::optional<Decision> Decides;
};

} // namespace

// Metadata that marks a module for instrumentation at the end of the pipeline.
static const char *const Waiting = "quipu.waiting";

PreservedAnalyses InstrumentPass::run(Module &M, ModuleAnalysisManager &AM) {
    PreservedAnalyses Preserved = instrument(M, AM);
    if (!M.getNamedMetadata(Waiting))
        emitKept(M);
    // Removes line information that the user did not request. The descriptors already contain the lines.
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
    // Fortran has no exceptions, but flang does not mark its functions nounwind.
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
    DenseMap<const Function *, size_t> Index;
    auto Shown = [&](const Identity &Known) { return isShown(Known, Selection); };
    for (Function *F : Functions) {
        Index[F] = Selves.size();
        Selves.push_back(Marked.identityOf(*F));
        Within.emplace_back(*F, FAM, Selves.back(), Marked, Shown);
    }
    Marked.remove(M);
    if (Functions.empty()) {
        Marks::removePlaces(M);
        return Marked.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
    }

    Runtime RT(M);
    Details Into(M);
    DenseMap<Function *, Function *> CountedOf;
    CarriedFunctions Carries;
    SmallPtrSet<const Function *, 32> Copies;
    std::vector<Decision> Decisions;
    std::vector<std::vector<std::string>> Lines(Functions.size());
    PlaceFunctions Places;
    for (auto [F, CallsItself] : calleesFirst(M)) {
        auto Found = Index.find(F); // NOLINT(llvm-qualified-auto): a pointer in some LLVMs only
        if (Found == Index.end())
            continue;
        const size_t I = Found->second;
        markCounted(*F);
        // A plain version of code that runs at most once would save no time.
        const bool RunsOnce = isMain(*F) && !hasCycle(*F);
        const bool MayCarry = !Naive && !OnlySelected && RT.inlines(*F) && !RunsOnce;
        CarriedCalls Callees = MayCarry ? CarriedCalls(*F, Within[I], Carries) : CarriedCalls();
        RegionFacts Facts = describe(*F, Selves[I], FAM.getResult<TargetLibraryAnalysis>(*F), Callees);
        const quipu_hook Hook = hookOf(Facts, Selection, All);
        // A function without a hook needs instrumentation if a function that was inlined into it has hooks.
        if (OnlySelected && Hook != QUIPU_HOOKED && Within[I].hooks().empty())
            continue;
        Function *Plain = Naive || RunsOnce ? nullptr : separateCounted(*F);
        if (Plain) {
            forgetMemoryFacts(*Plain); // it calls a function that counts
            Copies.insert(Plain);
        }
        Callees.markReturning();
        FunctionInstrumenter Instrumenter(*F, RT, Facts, Hook, Within[I], Callees, Into, HandleExceptions);
        std::optional<Carried> Made;
        if (Naive)
            Instrumenter.runNaively();
        else
            Made = Instrumenter.run(FAM, Plain,
                                    MayCarry && !CallsItself && Hook != QUIPU_HOOKED && !Facts.HasCallees &&
                                        (Hook == QUIPU_LEFT_OUT || Shown(Selves[I])));
        if (std::optional<Decision> Entry = Instrumenter.decision())
            Decisions.push_back(*Entry);
        addFacts(Lines[I], Facts, Hook == QUIPU_HOOKED, Within[I], Places);
        FAM.invalidate(Made ? *Made->Counted : *F, PreservedAnalyses::none());
        if (Made)
            Carries.try_emplace(Plain, std::move(*Made));
        else if (Plain)
            CountedOf[Plain] = F;
    }
    callCounted(CountedOf);
    for (const Decision &D : Decisions) {
        const bool IsBody = D.Region && D.Counted->arg_size() == D.Plain->arg_size();
        Function *Entry = separateEntry(*D.Plain, IsBody ? *D.Counted : *D.Plain, Copies);
        const Lookup Found = decideAtEntry(*Entry, *D.Counted, RT.Measuring, RT.Count, D.Region);
        if (Found.Near && RT.inlines(*Entry))
            RT.inlineCount(Found.Near, D.CountsVisits, Found.Far);
    }
    RT.finish();
    Marks::removePlaces(M);
    std::vector<std::string> AllLines;
    for (std::vector<std::string> &Of : Lines)
        std::move(Of.begin(), Of.end(), std::back_inserter(AllLines));
    if (!AllLines.empty())
        AllLines.front().insert(1, Places.member() + ",");
    keepLines(M, AllLines);
    Into.emit();
    emitCheck(M, RT.Program);
    Selection.clear();

    PreservedAnalyses PA = PreservedAnalyses::none();
    PA.abandon<GlobalsAA>();
    return PA;
}

} // namespace quipu

#include "instrument.h"

#include "counting.h"
#include "regions.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/BinaryFormat/Dwarf.h"
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

/// The functions of quipu.h that the pass calls.
struct Runtime {
    FunctionCallee Enter, Exit, Unwind, Top, Blocks;

    explicit Runtime(Module &M) {
        LLVMContext &Context = M.getContext();
        Type *Pointer = PointerType::getUnqual(Context);
        Type *Void = Type::getVoidTy(Context);
        AttributeList NoUnwind = AttributeList().addFnAttribute(Context, Attribute::NoUnwind);
        Enter = M.getOrInsertFunction("quipu_enter", NoUnwind, Pointer, Pointer);
        Exit = M.getOrInsertFunction("quipu_exit", NoUnwind, Void, Pointer);
        Unwind = M.getOrInsertFunction("quipu_unwind", NoUnwind, Void, Pointer);
        Top = M.getOrInsertFunction("quipu_top", NoUnwind, Pointer);
        Blocks = M.getOrInsertFunction("quipu_blocks", NoUnwind, Void, Type::getInt64Ty(Context));
    }
};

/// Calls after which counted code may run, end or be left: not intrinsics and not assembly.
bool isRealCall(const Instruction &I) {
    const auto *Call = dyn_cast<CallBase>(&I);
    return Call && !isa<IntrinsicInst>(Call) && !Call->isInlineAsm();
}

bool callsSetjmp(const Function &F) {
    for (const BasicBlock &BB : F)
        for (const Instruction &I : BB)
            if (const auto *Call = dyn_cast<CallBase>(&I); Call && Call->hasFnAttr(Attribute::ReturnsTwice))
                return true;
    return false;
}

/// Fortran has no exceptions; the functions of flang do not say so. Its modules name no compiler, but have debug
/// information (the wrapper asks for line tables) or call its runtime.
bool isFortran(const Module &M) {
    for (const DICompileUnit *Unit : M.debug_compile_units())
        return dwarf::isFortran(static_cast<dwarf::SourceLanguage>(Unit->getSourceLanguage()));
    return any_of(M, [](const Function &F) { return F.getName().starts_with("_FortranA"); });
}

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

/// Inserts counting, and enter and exit if `Descriptor` is given, into one function.
class FunctionInstrumenter {
  public:
    FunctionInstrumenter(Function &F, const Runtime &RT, GlobalVariable *Descriptor, bool HandleExceptions)
        : F(F), RT(RT), Descriptor(Descriptor), HandleExceptions(HandleExceptions) {}

    /// The reference: the active call path is told of every block.
    void runNaively() {
        bool Setjmp = callsSetjmp(F);
        std::vector<Instruction *> Twice = returningTwice();
        countNaively(F, RT.Blocks);
        Value *Frame = enter(Setjmp);
        resume(Twice, Frame);
        if (Descriptor) {
            EscapeEnumerator Escapes(F, "quipu.cleanup", HandleExceptions);
            while (IRBuilder<> *Exit = Escapes.Next()) {
                setLocation(*Exit);
                Exit->CreateCall(RT.Exit, {Frame});
            }
        }
        forgetMemoryFacts(F);
    }

    void run(FunctionAnalysisManager &FAM) {
        bool Setjmp = callsSetjmp(F);
        std::vector<Instruction *> Calls;
        SmallPtrSet<BasicBlock *, 32> Own;
        for (BasicBlock &BB : F) {
            Own.insert(&BB);
            for (Instruction &I : BB)
                if (isRealCall(I))
                    Calls.push_back(&I);
        }
        std::vector<Instruction *> Twice = returningTwice();
        BlockCounter Counter(F, Setjmp);
        Value *Frame = enter(Setjmp);

        // The runtime can end the frame at any call (exit, longjmp, an exception): it must know the count there.
        for (Instruction *Call : Calls) {
            if (Descriptor)
                store(Counter, Frame, Call);
            else if (cast<CallBase>(Call)->doesNotReturn())
                flush(Counter, Call);
        }
        resume(Twice, Frame);
        EscapeEnumerator Escapes(F, "quipu.cleanup", HandleExceptions);
        while (IRBuilder<> *Exit = Escapes.Next()) {
            Instruction *Where = &*Exit->GetInsertPoint();
            if (!Descriptor) {
                flush(Counter, Where);
                continue;
            }
            // In a block that the enumerator made for unwinding, the count is the one stored before the call.
            if (Own.contains(Where->getParent()))
                store(Counter, Frame, Where);
            setLocation(*Exit);
            Exit->SetInsertPoint(Where);
            Exit->CreateCall(RT.Exit, {Frame});
        }
        Counter.finish(FAM);
        forgetMemoryFacts(F);
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

    /// The frame of the region, or, in a function without one that calls setjmp, the frame that is active.
    Value *enter(bool Setjmp) {
        IRBuilder<> Builder(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        setLocation(Builder);
        if (Descriptor)
            return Builder.CreateCall(RT.Enter, {Descriptor}, "quipu.frame");
        return Setjmp ? Builder.CreateCall(RT.Top, {}, "quipu.frame") : nullptr;
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

    void store(BlockCounter &Counter, Value *Frame, Instruction *Where) {
        IRBuilder<> Builder(Where);
        Builder.CreateStore(Counter.read(Where), Frame);
    }

    void flush(BlockCounter &Counter, Instruction *Where) {
        IRBuilder<> Builder(Where);
        setLocation(Builder);
        Builder.CreateCall(RT.Blocks, {Counter.read(Where)});
        Counter.restart(Where); // a call that does not return may throw, and the cleanup flushes again
    }

    Function &F;
    const Runtime &RT;
    GlobalVariable *Descriptor;
    bool HandleExceptions;
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
    bool HandleExceptions = !isFortran(M);
    bool Naive = sys::Process::GetEnv("QUIPU_NAIVE").has_value();

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
        bool Region = isRegion(Facts, Selection);
        Lines.push_back(factsLine(*F, Facts, Region));
        GlobalVariable *Descriptor = Region ? createDescriptor(*F, Facts) : nullptr;
        FunctionInstrumenter Instrumenter(*F, RT, Descriptor, HandleExceptions);
        if (Naive)
            Instrumenter.runNaively();
        else
            Instrumenter.run(FAM);
        FAM.invalidate(*F, PreservedAnalyses::none());
    }
    emitFacts(M, Lines);
    Selection.clear();

    PreservedAnalyses PA = PreservedAnalyses::none();
    PA.abandon<GlobalsAA>();
    return PA;
}

} // namespace quipu

#include "hooks.h"

#include "inlined.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <cstddef>

using namespace llvm;

namespace quipu {
namespace {

/// A field of a struct of the runtime.
Value *field(IRBuilder<> &Builder, Value *Struct, size_t Offset) {
    return Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Struct, Offset);
}

Value *load(IRBuilder<> &Builder, Type *T, Value *Struct, size_t Offset) {
    return Builder.CreateAlignedLoad(T, field(Builder, Struct, Offset), Align(8));
}

void store(IRBuilder<> &Builder, Value *What, Value *Struct, size_t Offset) {
    Builder.CreateAlignedStore(What, field(Builder, Struct, Offset), Align(8));
}

/// A store that stays where it is, as a signal handler sees it.
void storeNow(IRBuilder<> &Builder, Value *What, Value *Struct, size_t Offset) {
    StoreInst *Store = Builder.CreateAlignedStore(What, field(Builder, Struct, Offset), Align(8));
    Store->setAtomic(AtomicOrdering::Monotonic, SyncScope::SingleThread);
}

void signalFence(IRBuilder<> &Builder) {
    Builder.CreateFence(AtomicOrdering::SequentiallyConsistent, SyncScope::SingleThread);
}

void increment(IRBuilder<> &Builder, Value *Address, Value *By) {
    Value *Before = Builder.CreateAlignedLoad(Builder.getInt64Ty(), Address, Align(8));
    Builder.CreateAlignedStore(Builder.CreateAdd(Before, By), Address, Align(8));
}

/// The hash in the descriptor of a region, which may be that of a scope.
Constant *hashOf(const Value *Region, const DataLayout &Layout) {
    APInt Offset(Layout.getIndexTypeSizeInBits(Region->getType()), 0);
    const auto *Global =
        cast<GlobalVariable>(Region->stripAndAccumulateConstantOffsets(Layout, Offset, /*AllowNonInbounds=*/true));
    Constant *Whole = const_cast<GlobalVariable *>(Global)->getInitializer();
    if (auto *Array = dyn_cast<ArrayType>(Whole->getType())) {
        const uint64_t Size = Layout.getTypeAllocSize(Array->getElementType()).getFixedValue();
        Whole = Whole->getAggregateElement(Offset.getZExtValue() / Size)->getAggregateElement(0U);
    }
    return Whole->getAggregateElement(9U);
}

} // namespace

Runtime::Runtime(Module &M) : M(M) {
    LLVMContext &Context = M.getContext();
    Pointer = PointerType::getUnqual(Context);
    I64 = Type::getInt64Ty(Context);
    Type *Void = Type::getVoidTy(Context);
    AttributeList Plain =
        AttributeList().addFnAttribute(Context, Attribute::NoUnwind).addFnAttribute(Context, Attribute::WillReturn);
    Enter = M.getOrInsertFunction("quipu_enter", Plain, Pointer, Pointer);
    Exit = M.getOrInsertFunction("quipu_exit", Plain, Void, Pointer);
    Count = M.getOrInsertFunction("quipu_count", Plain, Pointer, Pointer);
    Unwind = M.getOrInsertFunction("quipu_unwind", Plain, Void, Pointer);
    Top = M.getOrInsertFunction("quipu_top", Plain, Pointer);
    Effort = M.getOrInsertFunction("quipu_effort", Plain, Void, Pointer, I64, Pointer);
    Moved = M.getOrInsertFunction("quipu_moved", Plain, Void, Pointer, I64, I64, I64);
    // Only the x86-64 has its clock in an instruction that LLVM knows, and the structs are those of 64-bit processors.
    // With -femulated-tls (QUIPU_CALLS) its variable of a thread is another one than that of the runtime.
    if (Triple(M.getTargetTriple()).getArch() != Triple::x86_64 || M.getDataLayout().getPointerSize() != 8 ||
        sys::Process::GetEnv("QUIPU_CALLS"))
        return;
    Current = M.getGlobalVariable("quipu_current");
    if (!Current)
        Current = new GlobalVariable(M, Pointer, false, GlobalValue::ExternalLinkage, nullptr, "quipu_current", nullptr,
                                     GlobalValue::InitialExecTLSModel);
}

Value *Runtime::currentThread(IRBuilder<> &Builder) const {
    return Builder.CreateAlignedLoad(Pointer, Builder.CreateThreadLocalAddress(Current), Align(8), "quipu.thread");
}

/// Adds the time since the latest event to `Here`, if time is kept: none, if a signal handler was measured since the
/// clock was read. Builder ends behind it.
void Runtime::chargeTime(IRBuilder<> &Builder, Value *Thread, Value *Here, Value *Clock) {
    Instruction *Behind = &*Builder.GetInsertPoint();
    Value *Kept = Builder.CreateICmpNE(Clock, Builder.getInt64(QUIPU_CLOCK_NONE));
    Builder.SetInsertPoint(SplitBlockAndInsertIfThen(Kept, Behind, false));
    Value *Now = Builder.CreateIntrinsic(Intrinsic::x86_rdtsc, {}, {});
    Value *Last = load(Builder, I64, Thread, offsetof(quipu_thread, last));
    Value *Elapsed = Builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, Now, Last);
    increment(Builder, field(Builder, Here, offsetof(quipu_node, metrics) + sizeof(uint64_t) * QUIPU_TIME), Elapsed);
    store(Builder, Builder.CreateAdd(Last, Elapsed), Thread, offsetof(quipu_thread, last));
    Builder.SetInsertPoint(Behind);
}

/// Splits the block around `Call`: Head -> Known -> Fast -> Tail for a thread that is measured, with ways out to Slow,
/// which makes the call. Known has no end yet.
Runtime::Ways Runtime::split(CallInst *Call) const {
    LLVMContext &Context = M.getContext();
    BasicBlock *Head = Call->getParent();
    Ways Way;
    Way.Likely = MDBuilder(Context).createBranchWeights(1 << 20, 1);
    Way.Tail = SplitBlock(Head, Call->getNextNode());
    Way.Slow = SplitBlock(Head, Call);
    Way.Known = BasicBlock::Create(Context, "quipu.known", Head->getParent(), Way.Slow);
    Way.Fast = BasicBlock::Create(Context, "quipu.fast", Head->getParent(), Way.Slow);

    IRBuilder<> Builder(Way.Fast);
    Builder.CreateBr(Way.Tail);
    Head->getTerminator()->eraseFromParent();
    Builder.SetInsertPoint(Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    Way.Thread = currentThread(Builder);
    Builder.CreateCondBr(Builder.CreateIsNotNull(Way.Thread), Way.Known, Way.Slow, Way.Likely);
    return Way;
}

/// quipu_enter, or quipu_count if `Quiet`.
void Runtime::inlineEnter(CallInst *Call, bool Quiet) {
    Value *Region = Call->getArgOperand(0);
    Constant *Hash = hashOf(Region, M.getDataLayout());
    Ways Way = split(Call);
    Value *Thread = Way.Thread;
    IRBuilder<> Builder(Way.Known);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    Value *Here = load(Builder, Pointer, Thread, offsetof(quipu_thread, here));
    Value *Salt = load(Builder, I64, Here, offsetof(quipu_node, salt));
    Value *Index = Builder.CreateAnd(Builder.CreateAdd(Salt, Hash), Builder.getInt64(QUIPU_TABLE_ENTRIES - 1));
    Value *Table = load(Builder, Pointer, Thread, offsetof(quipu_thread, table));
    Value *Link = Builder.CreateLoad(Pointer, Builder.CreateInBoundsGEP(Pointer, Table, Index));
    Value *Same = Builder.CreateICmpEQ(load(Builder, Pointer, Link, offsetof(quipu_link, from)), Here);
    Value *Id = load(Builder, I64, Region, offsetof(quipu_region, id));
    Value *Usual =
        Builder.CreateAnd(Same, Builder.CreateICmpEQ(load(Builder, I64, Link, offsetof(quipu_link, region)), Id));
    Value *Top = nullptr, *Clock = nullptr;
    if (!Quiet) {
        Top = load(Builder, Pointer, Thread, offsetof(quipu_thread, top));
        Value *Limit = load(Builder, Pointer, Thread, offsetof(quipu_thread, limit));
        Clock = load(Builder, I64, Thread, offsetof(quipu_thread, clock));
        Usual = Builder.CreateAnd(Usual, Builder.CreateICmpNE(Top, Limit));
        Usual = Builder.CreateAnd(Usual, Builder.CreateICmpNE(Clock, Builder.getInt64(QUIPU_CLOCK_NANOSECONDS)));
    }
    Builder.CreateCondBr(Usual, Way.Fast, Way.Slow, Way.Likely);

    Builder.SetInsertPoint(Way.Fast->getTerminator());
    increment(Builder, load(Builder, Pointer, Link, offsetof(quipu_link, visits)), Builder.getInt64(1));
    Value *Counters = load(Builder, Pointer, Link, offsetof(quipu_link, counters));
    Value *Result = Counters;
    if (!Quiet) {
        chargeTime(Builder, Thread, Here, Clock);
        Result = field(Builder, Top, sizeof(quipu_frame));
        Value *To = load(Builder, Pointer, Link, offsetof(quipu_link, to));
        // As quipu_push: until the frame is the innermost one, signal handlers take its place.
        auto Fill = [&] {
            storeNow(Builder, Counters, Result, offsetof(quipu_frame, counters));
            storeNow(Builder, To, Result, offsetof(quipu_frame, node));
            signalFence(Builder);
        };
        Fill();
        storeNow(Builder, Result, Thread, offsetof(quipu_thread, top));
        signalFence(Builder);
        Fill();
        store(Builder, To, Thread, offsetof(quipu_thread, here));
    }
    BasicBlock *FastEnd = Builder.GetInsertBlock();

    Builder.SetInsertPoint(Way.Tail, Way.Tail->begin());
    PHINode *Merged = Builder.CreatePHI(Pointer, 2);
    Merged->takeName(Call);
    Call->replaceAllUsesWith(Merged);
    Merged->addIncoming(Result, FastEnd);
    Merged->addIncoming(Call, Way.Slow);
}

void Runtime::inlineExit(CallInst *Call) {
    Value *Frame = Call->getArgOperand(0);
    Ways Way = split(Call);
    Value *Thread = Way.Thread;
    IRBuilder<> Builder(Way.Known);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    Value *Clock = load(Builder, I64, Thread, offsetof(quipu_thread, clock));
    Value *IsTop = Builder.CreateICmpEQ(load(Builder, Pointer, Thread, offsetof(quipu_thread, top)), Frame);
    Value *Cheap = Builder.CreateICmpNE(Clock, Builder.getInt64(QUIPU_CLOCK_NANOSECONDS));
    Builder.CreateCondBr(Builder.CreateAnd(IsTop, Cheap), Way.Fast, Way.Slow, Way.Likely);

    Builder.SetInsertPoint(Way.Fast->getTerminator());
    chargeTime(Builder, Thread, load(Builder, Pointer, Thread, offsetof(quipu_thread, here)), Clock);
    Value *Below = Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Frame, -int64_t{sizeof(quipu_frame)});
    store(Builder, Below, Thread, offsetof(quipu_thread, top));
    store(Builder, load(Builder, Pointer, Below, offsetof(quipu_frame, node)), Thread, offsetof(quipu_thread, here));
}

void Runtime::inlineHooks(Function &F, ArrayRef<CallInst *> Calls) {
    if (!Current || F.hasOptSize() || F.hasOptNone())
        return;
    for (CallInst *Call : Calls) {
        if (Call->getCalledOperand() == Exit.getCallee())
            inlineExit(Call);
        else
            inlineEnter(Call, Call->getCalledOperand() == Count.getCallee());
    }
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include "inlined.h"

#include "llvm/ADT/STLExtras.h"
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
        Whole = Whole->getAggregateElement(Offset.getZExtValue() / Size);
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
    auto State = [&](StringRef Name) {
        return cast<GlobalVariable>(M.getOrInsertGlobal(Name, Pointer, [&] {
            return new GlobalVariable(M, Pointer, false, GlobalValue::ExternalLinkage, nullptr, Name, nullptr,
                                      GlobalValue::InitialExecTLSModel);
        }));
    };
    Current = State("quipu_current");
    ActiveNode = State("quipu_active_node");
    // Without a stub for lazy binding, which does not preserve all registers.
    const AttributeList Missed =
        Plain.addFnAttribute(Context, Attribute::NonLazyBind).addFnAttribute(Context, Attribute::Cold);
    auto Preserving = [&](StringRef Name, FunctionType *Type) {
        FunctionCallee Callee = M.getOrInsertFunction(Name, Type, Missed);
        cast<Function>(Callee.getCallee())->setCallingConv(CallingConv::PreserveAll);
        return Callee;
    };
    CountMissed = Preserving("quipu_count_missed", FunctionType::get(Pointer, {Pointer, Pointer}, false));
    EnterMissed = Preserving("quipu_enter_missed", FunctionType::get(Pointer, {Pointer, Pointer}, false));
    ExitMissed = Preserving("quipu_exit_missed", FunctionType::get(Void, {Pointer}, false));
    // Code for shared libraries, which may be loaded later, has no room for many variables of threads.
    HasSlots = M.getPICLevel() == PICLevel::NotPIC || M.getPIELevel() != PIELevel::Default;
}

Value *Runtime::threadLocal(IRBuilder<> &Builder, GlobalVariable *Variable, const Twine &Name) const {
    return Builder.CreateAlignedLoad(Pointer, Builder.CreateThreadLocalAddress(Variable), Align(8), Name);
}

/// The state of this thread; if nothing of it is measured, one that has no frames.
Value *Runtime::threadState(IRBuilder<> &Builder) const {
    Value *Here = threadLocal(Builder, ActiveNode, "quipu.place");
    return Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Here, -int64_t{offsetof(quipu_thread, here)},
                                              "quipu.thread");
}

/// Where a function finds the link that it followed last.
GlobalVariable *Runtime::newSlot() {
    if (!HasSlots)
        return nullptr;
    if (!NoLink) {
        auto *Type = ArrayType::get(I64, sizeof(quipu_link) / sizeof(uint64_t));
        auto *Empty = new GlobalVariable(M, Type, true, GlobalValue::PrivateLinkage, ConstantAggregateZero::get(Type),
                                         "quipu.no_link");
        Empty->setAlignment(Align(8));
        NoLink = Empty;
    }
    auto *Slot = new GlobalVariable(M, Pointer, false, GlobalValue::InternalLinkage, NoLink, "quipu.slot", nullptr,
                                    GlobalValue::InitialExecTLSModel);
    Slot->setAlignment(Align(8));
    return Slot;
}

/// Adds the time since the latest event to the node that `Here` is charged to, if `Other` is to be active, which is
/// charged to another one, and time is kept: none, if a signal handler was measured since the clock was read. Other
/// clocks are read by the runtime. Enters: a visit of `Other` begins. Builder goes on behind that.
void Runtime::chargeTime(IRBuilder<> &Builder, Value *Thread, Value *Here, Value *Other, const Ways &Way, bool Enters) {
    BasicBlock *Changing = block(Way, "quipu.changing"), *Known = block(Way, "quipu.clock"),
               *Reading = block(Way, "quipu.time"), *Behind = block(Way, "quipu.fast");
    Value *Charged = load(Builder, Pointer, Here, offsetof(quipu_node, charged));
    Value *Next = load(Builder, Pointer, Other, offsetof(quipu_node, charged));
    Builder.CreateCondBr(Builder.CreateICmpNE(Charged, Next), Changing, Behind);
    Builder.SetInsertPoint(Changing);
    Value *Clock = load(Builder, I64, Thread, offsetof(quipu_thread, clock));
    go(Builder, Builder.CreateICmpNE(Clock, Builder.getInt64(QUIPU_CLOCK_NANOSECONDS)), Known, Way);
    Builder.CreateCondBr(Builder.CreateICmpNE(Clock, Builder.getInt64(QUIPU_CLOCK_NONE)), Reading, Behind);
    Builder.SetInsertPoint(Reading);
    if (Enters) {
        Value *Visits = load(Builder, I64, Other, offsetof(quipu_node, metrics) + sizeof(uint64_t) * QUIPU_VISITS);
        Value *InPeriod = Builder.CreateAnd(Visits, Builder.getInt64(QUIPU_REVIEW_VISITS - 1));
        go(Builder, Builder.CreateIsNotNull(InPeriod), block(Way, "quipu.timed"), Way);
    }
    Value *Now = Builder.CreateIntrinsic(Intrinsic::x86_rdtsc, {}, {});
    Value *Last = load(Builder, I64, Thread, offsetof(quipu_thread, last));
    Value *Elapsed = Builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, Now, Last);
    increment(Builder, field(Builder, Charged, offsetof(quipu_node, metrics) + sizeof(uint64_t) * QUIPU_TIME), Elapsed);
    store(Builder, Builder.CreateAdd(Last, Elapsed), Thread, offsetof(quipu_thread, last));
    Builder.CreateBr(Behind);
    Builder.SetInsertPoint(Behind);
}

/// Splits the block around `Call`: Head -> Tail, and Slow for what is unusual. Head has no end yet.
Runtime::Ways Runtime::split(CallInst *Call) const {
    Ways Way;
    Way.Head = Call->getParent();
    Way.Tail = SplitBlock(Way.Head, Call->getNextNode());
    Way.Slow = SplitBlock(Way.Head, Call);
    Way.Head->getTerminator()->eraseFromParent();
    return Way;
}

/// Goes to `Next` if what happens is usual, and on from there.
void Runtime::go(IRBuilder<> &Builder, Value *Usual, BasicBlock *Next, const Ways &Way) const {
    Builder.CreateCondBr(Usual, Next, Way.Slow, MDBuilder(M.getContext()).createBranchWeights(1 << 20, 1));
    Builder.SetInsertPoint(Next);
}

BasicBlock *Runtime::block(const Ways &Way, const Twine &Name) const {
    return BasicBlock::Create(M.getContext(), Name, Way.Head->getParent(), Way.Slow);
}

/// The link from the active node to `Region`. Builder ends where it is known; the last way there is not made yet.
Runtime::Known Runtime::findLink(IRBuilder<> &Builder, Value *Region, Value *Slot, const Ways &Way) const {
    if (Slot) {
        Value *Thread = threadState(Builder);
        Value *Here = load(Builder, Pointer, Thread, offsetof(quipu_thread, here));
        auto *Own = dyn_cast<GlobalVariable>(Slot);
        Value *Link = Own ? threadLocal(Builder, Own, "quipu.link")
                          : Builder.CreateAlignedLoad(Pointer, Slot, Align(8), "quipu.link");
        return {Thread, Here, Link,
                Builder.CreateICmpEQ(load(Builder, Pointer, Link, offsetof(quipu_link, from)), Here)};
    }
    Value *Thread = threadLocal(Builder, Current, "quipu.thread");
    go(Builder, Builder.CreateIsNotNull(Thread), block(Way, "quipu.known"), Way);
    Value *Here = load(Builder, Pointer, Thread, offsetof(quipu_thread, here));
    Value *Salt = load(Builder, I64, Here, offsetof(quipu_node, salt));
    Value *Hash = isa<Constant>(Region) ? static_cast<Value *>(hashOf(Region, M.getDataLayout()))
                                        : load(Builder, I64, Region, offsetof(quipu_region, hash));
    Value *Index = Builder.CreateAnd(Builder.CreateAdd(Salt, Hash), Builder.getInt64(QUIPU_TABLE_ENTRIES - 1));
    Value *Table = load(Builder, Pointer, Thread, offsetof(quipu_thread, table));
    Value *Link = Builder.CreateLoad(Pointer, Builder.CreateInBoundsGEP(Pointer, Table, Index));
    Value *Same = Builder.CreateICmpEQ(load(Builder, Pointer, Link, offsetof(quipu_link, from)), Here);
    Value *Id = load(Builder, I64, Region, offsetof(quipu_region, id));
    Value *Usual =
        Builder.CreateAnd(Same, Builder.CreateICmpEQ(load(Builder, I64, Link, offsetof(quipu_link, region)), Id));
    return {Thread, Here, Link, Usual};
}

/// Of this thread's copy, before an instruction.
Value *Runtime::addressOf(Value *Slot, Instruction *Before) const {
    if (!Slot)
        return ConstantPointerNull::get(cast<PointerType>(Pointer));
    auto *Own = dyn_cast<GlobalVariable>(Slot);
    return Own ? IRBuilder<>(Before).CreateThreadLocalAddress(Own) : Slot;
}

/// Puts the call of a function that preserves all registers in the place of `Call`.
CallInst *Runtime::replace(CallInst *Call, FunctionCallee Callee, ArrayRef<Value *> Arguments) const {
    IRBuilder<> Builder(Call);
    CallInst *Missed = Builder.CreateCall(Callee, Arguments);
    Missed->setCallingConv(CallingConv::PreserveAll);
    return Missed;
}

/// quipu_count
void Runtime::inlineCount(CallInst *Call, bool CountsVisits) {
    Value *Region = Call->getArgOperand(0);
    const Ways Way = split(Call);
    GlobalVariable *Slot = newSlot();
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    const Known Found = findLink(Builder, Region, Slot, Way);
    BasicBlock *Usual = Builder.GetInsertBlock();
    go(Builder, Found.Usual, Way.Tail, Way);
    CallInst *Missed = replace(Call, CountMissed, {Region, addressOf(Slot, Call)});

    Builder.SetInsertPoint(Way.Tail, Way.Tail->begin());
    PHINode *Link = Builder.CreatePHI(Pointer, 2);
    Link->addIncoming(Found.Link, Usual);
    Link->addIncoming(Missed, Way.Slow);
    if (!CountsVisits)
        increment(Builder, load(Builder, Pointer, Link, offsetof(quipu_link, visits)), Builder.getInt64(1));
    if (!Call->use_empty()) {
        Value *Counters = load(Builder, Pointer, Link, offsetof(quipu_link, counters));
        Counters->takeName(Call);
        Call->replaceAllUsesWith(Counters);
    }
    Call->eraseFromParent();
}

/// quipu_enter
void Runtime::inlineEnter(CallInst *Call, Value *Slot) {
    Value *Region = Call->getArgOperand(0);
    const Ways Way = split(Call);
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    const Known Found = findLink(Builder, Region, Slot, Way);
    go(Builder, Found.Usual, block(Way, "quipu.found"), Way);
    Value *Thread = Found.Thread;
    Value *Top = load(Builder, Pointer, Thread, offsetof(quipu_thread, top));
    Value *Limit = load(Builder, Pointer, Thread, offsetof(quipu_thread, limit));
    go(Builder, Builder.CreateICmpNE(Top, Limit), block(Way, "quipu.room"), Way);
    Value *To = load(Builder, Pointer, Found.Link, offsetof(quipu_link, to));
    chargeTime(Builder, Thread, Found.Here, To, Way, /*Enters=*/true);
    increment(Builder, load(Builder, Pointer, Found.Link, offsetof(quipu_link, visits)), Builder.getInt64(1));
    Value *Counters = load(Builder, Pointer, Found.Link, offsetof(quipu_link, counters));
    Value *Result = field(Builder, Top, sizeof(quipu_frame));
    // As quipu_push: until the frame is the innermost one, signal handlers take its place.
    auto Fill = [&] {
        storeNow(Builder, To, Result, offsetof(quipu_frame, node));
        signalFence(Builder);
    };
    Fill();
    storeNow(Builder, Result, Thread, offsetof(quipu_thread, top));
    signalFence(Builder);
    Fill();
    store(Builder, To, Thread, offsetof(quipu_thread, here));
    Builder.CreateBr(Way.Tail);
    BasicBlock *FastEnd = Builder.GetInsertBlock();

    CallInst *Missed = replace(Call, EnterMissed, {Region, addressOf(Slot, Call)});
    Builder.SetInsertPoint(Way.Tail, Way.Tail->begin());
    PHINode *Merged = Builder.CreatePHI(Pointer, 2), *Known = nullptr;
    Merged->takeName(Call);
    // The counters stay in a register: nobody but the function looks for them in its frame.
    for (User *U : make_early_inc_range(Call->users())) {
        auto *Load = dyn_cast<LoadInst>(U);
        if (!Load || Load->getPointerOperand() != Call)
            continue;
        if (!Known) {
            Known = Builder.CreatePHI(Pointer, 2);
            Known->addIncoming(Counters, FastEnd);
            IRBuilder<> Slow(Way.Slow->getTerminator());
            Known->addIncoming(load(Slow, Pointer, Missed, offsetof(quipu_frame, counters)), Way.Slow);
            Known->takeName(Load);
        }
        Load->replaceAllUsesWith(Known);
        Load->eraseFromParent();
    }
    Call->replaceAllUsesWith(Merged);
    Merged->addIncoming(Result, FastEnd);
    Merged->addIncoming(Missed, Way.Slow);
    Call->eraseFromParent();
}

/// quipu_exit
void Runtime::inlineExit(CallInst *Call) {
    Value *Frame = Call->getArgOperand(0);
    const Ways Way = split(Call);
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    Value *Thread = threadState(Builder);
    Value *IsTop = Builder.CreateICmpEQ(load(Builder, Pointer, Thread, offsetof(quipu_thread, top)), Frame);
    go(Builder, IsTop, block(Way, "quipu.top"), Way);
    Value *Below = Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Frame, -int64_t{sizeof(quipu_frame)});
    Value *Back = load(Builder, Pointer, Below, offsetof(quipu_frame, node));
    chargeTime(Builder, Thread, load(Builder, Pointer, Thread, offsetof(quipu_thread, here)), Back, Way,
               /*Enters=*/false);
    store(Builder, Below, Thread, offsetof(quipu_thread, top));
    store(Builder, Back, Thread, offsetof(quipu_thread, here));
    Builder.CreateBr(Way.Tail);
    replace(Call, ExitMissed, {Frame});
    Call->eraseFromParent();
}

bool Runtime::inlines(const Function &F) const { return Current && !F.hasOptSize() && !F.hasOptNone(); }

/// A function of this file, or of any other that the linker keeps, that preserves all registers.
Function *Runtime::newHelper(StringRef Name, FunctionType *Type) const {
    Function *Helper = Function::Create(Type, GlobalValue::LinkOnceODRLinkage, Name, M);
    Helper->setVisibility(GlobalValue::HiddenVisibility);
    Helper->setDSOLocal(true);
    Helper->setComdat(M.getOrInsertComdat(Name));
    Helper->setCallingConv(CallingConv::PreserveAll);
    Helper->addFnAttr(Attribute::NoUnwind);
    Helper->addFnAttr(Attribute::NoInline);
    Helper->addFnAttr(Attribute::WillReturn);
    return Helper;
}

void Runtime::callHelper(CallInst *Call, FunctionCallee Helper) {
    SmallVector<Value *, 2> Arguments(Call->args());
    if (Helper.getFunctionType()->getNumParams() > 1)
        Arguments.push_back(addressOf(newSlot(), Call));
    CallInst *Short = replace(Call, Helper, Arguments);
    Short->setDebugLoc(Call->getDebugLoc());
    Short->takeName(Call);
    Call->replaceAllUsesWith(Short);
    Call->eraseFromParent();
}

void Runtime::inlineHooks(Function &F, ArrayRef<CallInst *> Calls, size_t Own, bool CountsVisits) {
    if (!inlines(F))
        return;
    if (Own < Calls.size() && !EnterHelper) {
        EnterHelper =
            newHelper(HasSlots ? "quipu_enter_shared" : "quipu_enter_unslotted", EnterMissed.getFunctionType());
        IRBuilder<> Entry(BasicBlock::Create(M.getContext(), "", EnterHelper));
        CallInst *Entered = Entry.CreateCall(Enter, {EnterHelper->getArg(0)});
        Entry.CreateRet(Entered);
        inlineEnter(Entered, HasSlots ? EnterHelper->getArg(1) : nullptr);
        ExitHelper = newHelper("quipu_exit_shared", ExitMissed.getFunctionType());
        IRBuilder<> End(BasicBlock::Create(M.getContext(), "", ExitHelper));
        CallInst *Left = End.CreateCall(Exit, {ExitHelper->getArg(0)});
        End.CreateRetVoid();
        inlineExit(Left);
    }
    for (auto [Index, Call] : enumerate(Calls)) {
        const bool IsExit = Call->getCalledOperand() == Exit.getCallee();
        if (Index >= Own)
            callHelper(Call, IsExit ? ExitHelper : EnterHelper);
        else if (IsExit)
            inlineExit(Call);
        else if (Call->getCalledOperand() == Count.getCallee())
            inlineCount(Call, CountsVisits);
        else
            inlineEnter(Call, newSlot());
    }
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include "inlined.h"
#include "versions.h"

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

/// Returns the address of a field of a struct of the runtime.
Value *field(IRBuilder<> &Builder, Value *Struct, size_t Offset) {
    return Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Struct, Offset);
}

Value *load(IRBuilder<> &Builder, Type *T, Value *Struct, size_t Offset) {
    return Builder.CreateAlignedLoad(T, field(Builder, Struct, Offset), Align(8));
}

void store(IRBuilder<> &Builder, Value *What, Value *Struct, size_t Offset) {
    Builder.CreateAlignedStore(What, field(Builder, Struct, Offset), Align(8));
}

/// Inserts a store that is atomic with respect to signal handlers of the thread, because they may read the value.
void storeNow(IRBuilder<> &Builder, Value *What, Value *Struct, size_t Offset) {
    StoreInst *Store = Builder.CreateAlignedStore(What, field(Builder, Struct, Offset), Align(8));
    Store->setAtomic(AtomicOrdering::Monotonic, SyncScope::SingleThread);
}

void increment(IRBuilder<> &Builder, Value *Address, Value *By) {
    Value *Before = Builder.CreateAlignedLoad(Builder.getInt64Ty(), Address, Align(8));
    Builder.CreateAlignedStore(Builder.CreateAdd(Before, By), Address, Align(8));
}

/// Fewest calls for which the module contains a function of shareHook() (FewestHooks) or of passingSlot()
/// (FewestMissed). With fewer calls, the function itself is larger than the code that it saves.
constexpr unsigned FewestHooks = 3, FewestMissed = 8;

/// Whether functions that preserve all registers (calling convention preserve_all) may return a value. LLVM before 17
/// loses the value.
constexpr bool KeepsResults = LLVM_VERSION_MAJOR >= 17;

/// Address space of x86 whose addresses are distances from the thread pointer (segment register fs).
constexpr unsigned FromThread = 257;

/// Indexes of fields in a descriptor (createDescriptors).
constexpr unsigned HashField = 1, SlotField = 7;

/// Returns the array of descriptors that contains this region or scope, and the index in the array.
std::pair<GlobalVariable *, unsigned> descriptorOf(Value *Region, const DataLayout &Layout) {
    APInt Offset(Layout.getIndexTypeSizeInBits(Region->getType()), 0);
    auto *All =
        cast<GlobalVariable>(Region->stripAndAccumulateConstantOffsets(Layout, Offset, /*AllowNonInbounds=*/true));
    Type *Element = cast<ArrayType>(All->getValueType())->getElementType();
    return {All, Offset.getZExtValue() / Layout.getTypeAllocSize(Element).getFixedValue()};
}

/// Returns the hash in the descriptor of a region or a scope.
Constant *hashOf(Value *Region, const DataLayout &Layout) {
    const auto [All, Place] = descriptorOf(Region, Layout);
    return All->getInitializer()->getAggregateElement(Place)->getAggregateElement(HashField);
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
    ExitVisit = M.getOrInsertFunction("quipu_exit_visit", Plain, Void, Pointer);
    UnwindVisit = M.getOrInsertFunction("quipu_unwind_visit", Plain, Void, Pointer);
    Effort = M.getOrInsertFunction("quipu_effort", Plain, Void, Pointer, I64, Pointer);
    Moved = M.getOrInsertFunction("quipu_moved", Plain, Void, Pointer, I64, I64, I64);
    Measuring = cast<GlobalVariable>(M.getOrInsertGlobal("quipu_measuring", Type::getInt32Ty(Context)));
    // Inline hooks need the functions of missed.cpp, which exist for x86-64 only, and the layout of structs on 64-bit
    // processors. With -femulated-tls (QUIPU_CALLS), this code cannot access the thread-local variables of the runtime.
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
    // No lazy binding, because the resolver of the dynamic linker does not preserve all registers.
    const AttributeList Missed =
        Plain.addFnAttribute(Context, Attribute::NonLazyBind).addFnAttribute(Context, Attribute::Cold);
    auto Preserving = [&](StringRef Name, FunctionType *Type) {
        FunctionCallee Callee = M.getOrInsertFunction(Name, Type, Missed);
        cast<Function>(Callee.getCallee())->setCallingConv(CallingConv::PreserveAll);
        return Callee;
    };
    CountMissed = Preserving("quipu_count_missed", FunctionType::get(Pointer, {Pointer, Pointer}, false));
    EnterMissed = Preserving("quipu_enter_missed", FunctionType::get(Pointer, {Pointer, Pointer, Pointer}, false));
    ExitMissed = Preserving("quipu_exit_missed", FunctionType::get(Void, {Pointer}, false));
    // Only code of programs has slots. A shared library may be loaded at run time (dlopen), when there is little space
    // for thread-local variables of the model initial-exec.
    HasSlots = M.getPICLevel() == PICLevel::NotPIC || M.getPIELevel() != PIELevel::Default;
    if (HasSlots)
        makeCopies();
}

/// Returns a variable of which the program has one copy: every file defines it, and the linker keeps one definition.
GlobalVariable *Runtime::ofProgram(StringRef Name, Constant *Initial, bool IsOfThread) const {
    if (GlobalVariable *Known = M.getNamedGlobal(Name)) // a linked module already contains it
        return Known;
    auto *Made =
        new GlobalVariable(M, Initial->getType(), false, GlobalValue::LinkOnceODRLinkage, Initial, Name, nullptr,
                           IsOfThread ? GlobalValue::InitialExecTLSModel : GlobalValue::NotThreadLocal);
    Made->setVisibility(GlobalValue::HiddenVisibility);
    Made->setDSOLocal(true);
    Made->setComdat(M.getOrInsertComdat(Name));
    Made->setAlignment(Align(8));
    return Made;
}

/// Creates the copies of the runtime's variables (quipu_program).
void Runtime::makeCopies() {
    LLVMContext &Context = M.getContext();
    // quipu_no_thread is the state of a thread without a frame. Its active node is the address of the state itself,
    // from which no link starts. quipu_own_active_node points to `here` of this state until the runtime sets it.
    constexpr size_t Words = sizeof(quipu_thread) / sizeof(uint64_t),
                     Here = offsetof(quipu_thread, here) / sizeof(uint64_t);
    SmallVector<Type *, Words> Types(Words, I64);
    Types[Here] = Pointer;
    SmallVector<Constant *, Words> Fields(Words, ConstantInt::get(I64, 0));
    Fields[Here] = ConstantPointerNull::get(cast<PointerType>(Pointer));
    auto *State = StructType::get(Context, Types);
    GlobalVariable *Nobody = ofProgram("quipu_no_thread", ConstantStruct::get(State, Fields), false);
    Fields[Here] = Nobody;
    Nobody->setInitializer(ConstantStruct::get(State, Fields));
    Type *I32 = Type::getInt32Ty(Context);
    Constant *Place = ConstantExpr::getInBoundsGetElementPtr(
        State, Nobody, ArrayRef<Constant *>{ConstantInt::get(I32, 0), ConstantInt::get(I32, Here)});
    OwnActiveNode = ofProgram("quipu_own_active_node", Place, true);
    Measuring = ofProgram("quipu_own_measuring", ConstantInt::get(I32, 0), false);
    const char *Name = "quipu_address_of_own_active_node";
    Function *Address = M.getFunction(Name);
    if (!Address) {
        Address = Function::Create(FunctionType::get(Pointer, false), GlobalValue::LinkOnceODRLinkage, Name, M);
        Address->setVisibility(GlobalValue::HiddenVisibility);
        Address->setDSOLocal(true);
        Address->setComdat(M.getOrInsertComdat(Name));
        Address->addFnAttr(Attribute::NoUnwind);
        IRBuilder<> Builder(BasicBlock::Create(Context, "", Address));
        Builder.CreateRet(Builder.CreateThreadLocalAddress(OwnActiveNode));
    }
    Program = ofProgram(
        "quipu_program",
        ConstantStruct::getAnon({ConstantPointerNull::get(cast<PointerType>(Pointer)), Measuring, Address}), false);
}

Value *Runtime::threadLocal(IRBuilder<> &Builder, GlobalVariable *Variable, const Twine &Name) const {
    return Builder.CreateAlignedLoad(Pointer, Builder.CreateThreadLocalAddress(Variable), Align(8), Name);
}

/// Returns the address of the state of this thread (quipu_thread). A thread that is not measured has a state without
/// frames. Place: the thread-local variable with the address of `here` in the state.
Value *Runtime::threadState(IRBuilder<> &Builder, GlobalVariable *Place) const {
    Value *Here = threadLocal(Builder, Place, "quipu.place");
    return Builder.CreateConstInBoundsGEP1_64(Builder.getInt8Ty(), Here, -int64_t{offsetof(quipu_thread, here)},
                                              "quipu.thread");
}

/// Returns the array of all slots of this module; a declaration until finish().
GlobalVariable *Runtime::slots() {
    if (!Slots)
        Slots = new GlobalVariable(M, Pointer, false, GlobalValue::ExternalLinkage, nullptr, "quipu.slots", nullptr,
                                   GlobalValue::InitialExecTLSModel);
    return Slots;
}

/// Returns the number of the slot of a region. The slot is thread-local and contains the place of the link by which the
/// thread entered the region last.
unsigned Runtime::slotOf(Value *Region) {
    return SlotOf.insert({descriptorOf(Region, M.getDataLayout()), SlotOf.size()}).first->second;
}

/// Inlines the functions of shareHook() and passingSlot() that have too few calls to make the code shorter.
void Runtime::inlineFew() {
    auto Take = [](Function *&Here, unsigned Fewest) {
        SmallVector<CallInst *, 8> Calls;
        if (!Here || Here->hasNUsesOrMore(Fewest))
            return Calls;
        for (User *U : Here->users())
            Calls.push_back(cast<CallInst>(U));
        return Calls;
    };
    auto Drop = [](Function *&Here) {
        if (Here && Here->use_empty())
            Here->eraseFromParent();
    };
    for (const auto &[Here, Hook] : {std::pair{&SharedEnter, Enter}, std::pair{&SharedExit, Exit}}) {
        for (CallInst *Call : Take(*Here, FewestHooks)) {
            IRBuilder<> Builder(Call);
            CallInst *Plain = Builder.CreateCall(Hook, {Call->getArgOperand(0)});
            Value *Visit = Call->getArgOperand(Call->arg_size() - 1);
            Call->eraseFromParent();
            inlineHook(Plain, Visit, /*KeepsNode=*/true);
        }
        Drop(*Here);
    }
    for (const auto &[Here, Callee] : {std::pair{&CountHere, CountMissed}, std::pair{&EnterHere, EnterMissed}}) {
        for (CallInst *Call : Take(*Here, FewestMissed)) {
            IRBuilder<> Builder(Call);
            SmallVector<Value *, 3> Arguments(Call->args());
            Arguments.insert(Arguments.begin() + 1, slotOrNull(Builder, Arguments.front()));
            CallInst *Direct = replace(Call, Callee, Arguments);
            Call->replaceAllUsesWith(Direct);
            Call->eraseFromParent();
        }
        Drop(*Here);
    }
}

/// Inlines functions with few calls, writes the numbers of the slots into the descriptors, and creates the array of all
/// slots. A single symbol for all slots keeps the symbol table small.
void Runtime::finish() {
    inlineFew();
    for (const auto &[Descriptor, Slot] : SlotOf) {
        auto *All = cast<ConstantArray>(Descriptor.first->getInitializer());
        SmallVector<Constant *, 8> Elements;
        for (const Use &Element : All->operands())
            Elements.push_back(cast<Constant>(Element));
        auto *Region = cast<ConstantStruct>(Elements[Descriptor.second]);
        SmallVector<Constant *, 16> Fields;
        for (const Use &Field : Region->operands())
            Fields.push_back(cast<Constant>(Field));
        Fields[SlotField] = ConstantInt::get(Fields[SlotField]->getType(), Slot);
        Elements[Descriptor.second] = ConstantStruct::get(Region->getType(), Fields);
        Descriptor.first->setInitializer(ConstantArray::get(All->getType(), Elements));
    }
    if (!Slots)
        return;
    auto *All = ArrayType::get(Pointer, SlotOf.size());
    auto *Made = new GlobalVariable(M, All, false, GlobalValue::PrivateLinkage, ConstantAggregateZero::get(All), "",
                                    nullptr, GlobalValue::InitialExecTLSModel);
    Made->setAlignment(Align(8));
    Made->takeName(Slots);
    Slots->replaceAllUsesWith(Made);
    Slots->eraseFromParent();
    Slots = nullptr;
}

/// Splits the block of `Call` into Head, Slow (only `Call`) and Tail. Head has no terminator; the caller inserts it.
Runtime::Ways Runtime::split(CallInst *Call) const {
    Ways Way;
    Way.Head = Call->getParent();
    Way.Tail = SplitBlock(Way.Head, Call->getNextNode());
    Way.Slow = SplitBlock(Way.Head, Call);
    Way.Head->getTerminator()->eraseFromParent();
    return Way;
}

/// Inserts a branch to `Next` if `Usual` is true, otherwise to the slow block. Continues in `Next`.
void Runtime::go(IRBuilder<> &Builder, Value *Usual, BasicBlock *Next, const Ways &Way) const {
    Builder.CreateCondBr(Usual, Next, Way.Slow, MDBuilder(M.getContext()).createBranchWeights(1 << 20, 1));
    Builder.SetInsertPoint(Next);
}

BasicBlock *Runtime::block(const Ways &Way, const Twine &Name) const {
    return BasicBlock::Create(M.getContext(), Name, Way.Head->getParent(), Way.Slow);
}

/// Returns the address of a link. Found: the content of a slot, or a result of quipu_count_missed.
Value *Runtime::linkAt(IRBuilder<> &Builder, Value *Found) const {
    if (!HasSlots)
        return Found;
    Type *Address = PointerType::get(M.getContext(), FromThread);
    return Builder.CreateIntToPtr(Builder.CreatePtrToInt(Found, I64), Address, "quipu.link");
}

/// Inserts code that finds the link from the active node to `Region`. The caller inserts the branch on `Usual` of the
/// result.
Runtime::Known Runtime::findLink(IRBuilder<> &Builder, Value *Region, const Ways &Way) {
    if (HasSlots) {
        Value *Thread = threadState(Builder, OwnActiveNode);
        Value *Here = load(Builder, Pointer, Thread, offsetof(quipu_thread, here));
        Value *Link = linkAt(Builder, Builder.CreateAlignedLoad(Pointer, slot(Builder, Region), Align(8)));
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
    Index = Builder.CreateAdd(Index, Builder.getInt64(QUIPU_TABLE_ENTRIES)); // table of links that need no clock
    Value *Table = load(Builder, Pointer, Thread, offsetof(quipu_thread, table));
    Value *Link = Builder.CreateLoad(Pointer, Builder.CreateInBoundsGEP(Pointer, Table, Index));
    Value *Same = Builder.CreateICmpEQ(load(Builder, Pointer, Link, offsetof(quipu_link, from)), Here);
    Value *Id = load(Builder, I64, Region, offsetof(quipu_region, id));
    Value *Usual =
        Builder.CreateAnd(Same, Builder.CreateICmpEQ(load(Builder, I64, Link, offsetof(quipu_link, region)), Id));
    return {Thread, Here, Link, Usual};
}

/// Returns the address of this thread's copy of the slot of a region.
Value *Runtime::slot(IRBuilder<> &Builder, Value *Region) {
    Value *All = Builder.CreateThreadLocalAddress(slots());
    if (isa<Constant>(Region))
        return Builder.CreateConstInBoundsGEP1_64(Pointer, All, slotOf(Region));
    Value *Number =
        Builder.CreateAlignedLoad(Builder.getInt32Ty(), field(Builder, Region, offsetof(quipu_region, slot)), Align(4));
    return Builder.CreateInBoundsGEP(Pointer, All, Builder.CreateZExt(Number, I64));
}

Value *Runtime::slotOrNull(IRBuilder<> &Builder, Value *Region) {
    return HasSlots ? slot(Builder, Region) : ConstantPointerNull::get(cast<PointerType>(Pointer));
}

/// Creates a function of this module that preserves all registers. Its first argument is in a register that other code
/// rarely uses (attribute nest).
Function *Runtime::preserving(const Twine &Name, Type *Result, ArrayRef<Type *> Parameters) const {
    Function *Made =
        Function::Create(FunctionType::get(Result, Parameters, false), GlobalValue::InternalLinkage, Name, M);
    Made->setCallingConv(CallingConv::PreserveAll);
    Made->addParamAttr(0, Attribute::Nest);
    Made->addFnAttr(Attribute::NoUnwind);
    Made->addFnAttr(Attribute::NoInline);
    Made->setUWTableKind(UWTableKind::Default);
    BasicBlock::Create(M.getContext(), "", Made);
    return Made;
}

/// Returns a function of this module that calls `Callee`, a function of the runtime, with the arguments region, slot,
/// and (if `Callee` takes it) visit. The returned function takes the same arguments without the slot. Known: stores
/// this function for further calls.
Function *Runtime::passingSlot(Function *&Known, FunctionCallee Callee) {
    if (Known)
        return Known;
    const SmallVector<Type *, 2> Parameters(Callee.getFunctionType()->getNumParams() - 1, Pointer);
    Known = preserving(Callee.getCallee()->getName() + "_here", Callee.getFunctionType()->getReturnType(), Parameters);
    IRBuilder<> Builder(&Known->getEntryBlock());
    Value *Region = Known->getArg(0);
    SmallVector<Value *, 3> Arguments{Region, slotOrNull(Builder, Region)};
    for (Argument &More : drop_begin(Known->args()))
        Arguments.push_back(&More);
    CallInst *Call = Builder.CreateCall(Callee, Arguments);
    Call->setCallingConv(CallingConv::PreserveAll);
    Builder.CreateRet(Call);
    return Known;
}

/// Inserts a call of `Callee`, a function of the runtime for uncommon cases, before `Call`; the caller erases `Call`.
/// Here: see passingSlot(). More: arguments after region and slot.
CallInst *Runtime::callMissed(CallInst *Call, Function *&Here, FunctionCallee Callee, Value *Region,
                              ArrayRef<Value *> More) {
    SmallVector<Value *, 3> Arguments{Region};
    if (KeepsResults) {
        Callee = passingSlot(Here, Callee);
    } else {
        IRBuilder<> Builder(Call);
        Arguments.push_back(slotOrNull(Builder, Region));
    }
    Arguments.append(More.begin(), More.end());
    return replace(Call, Callee, Arguments);
}

/// Inserts a call of a function that preserves all registers before `Call`; the caller erases `Call`.
CallInst *Runtime::replace(CallInst *Call, FunctionCallee Callee, ArrayRef<Value *> Arguments) const {
    IRBuilder<> Builder(Call);
    CallInst *Missed = Builder.CreateCall(Callee, Arguments);
    Missed->setCallingConv(CallingConv::PreserveAll);
    if (const auto *Here = dyn_cast<Function>(Callee.getCallee()); Here && Here->hasParamAttribute(0, Attribute::Nest))
        Missed->addParamAttr(0, Attribute::Nest);
    return Missed;
}

/// Replaces a call of quipu_count by the counters of a link, and counts the visit if the counters do not contain it.
void Runtime::useLink(IRBuilder<> &Builder, Value *Link, CallInst *Count, bool CountsVisits) const {
    if (!CountsVisits)
        increment(Builder, load(Builder, Pointer, Link, offsetof(quipu_link, visits)), Builder.getInt64(1));
    if (!Count->use_empty()) {
        Value *Counters = load(Builder, Pointer, Link, offsetof(quipu_link, counters));
        Counters->takeName(Count);
        Count->replaceAllUsesWith(Counters);
    }
    Count->eraseFromParent();
}

void Runtime::inlineCount(CallInst *Call, bool CountsVisits, CallInst *Far) {
    Value *Region = Call->getArgOperand(0);
    const Ways Way = split(Call);
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    const Known Found = findLink(Builder, Region, Way);
    BasicBlock *Usual = Builder.GetInsertBlock();
    go(Builder, Found.Usual, Way.Tail, Way);
    Builder.SetInsertPoint(Way.Tail, Way.Tail->begin());
    if (Far) {
        useLink(Builder, Found.Link, Call, CountsVisits);
        Way.Slow->getTerminator()->eraseFromParent();
        IRBuilder<> Slow(Way.Slow);
        callWithArguments(Slow, *Way.Slow->getParent(), *Far->getFunction(), nullptr);
        CallInst *Missed = callMissed(Far, CountHere, CountMissed, Region);
        IRBuilder<> Behind(Far);
        useLink(Behind, linkAt(Behind, Missed), Far, CountsVisits);
        return;
    }
    CallInst *Missed = callMissed(Call, CountHere, CountMissed, Region);
    IRBuilder<> Slow(Way.Slow->getTerminator());
    PHINode *Link = Builder.CreatePHI(Found.Link->getType(), 2);
    Link->addIncoming(Found.Link, Usual);
    Link->addIncoming(linkAt(Slow, Missed), Way.Slow);
    useLink(Builder, Link, Call, CountsVisits);
}

AllocaInst *Runtime::newVisit(Function &F) const {
    IRBuilder<> Builder(&F.getEntryBlock(), F.getEntryBlock().begin());
    return Builder.CreateAlloca(ArrayType::get(I64, sizeof(quipu_visit) / sizeof(uint64_t)), nullptr, "quipu.visit");
}

/// Inlines a call of quipu_enter.
void Runtime::inlineEnter(CallInst *Call, Value *Visit, bool KeepsNode) {
    Value *Region = Call->getArgOperand(0);
    const Ways Way = split(Call);
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    const Known Found = findLink(Builder, Region, Way);
    go(Builder, Found.Usual, block(Way, "quipu.linked"), Way);
    store(Builder, load(Builder, I64, Found.Thread, offsetof(quipu_thread, top)), Visit, offsetof(quipu_visit, top));
    store(Builder, Found.Here, Visit, offsetof(quipu_visit, back));
    increment(Builder, load(Builder, Pointer, Found.Link, offsetof(quipu_link, visits)), Builder.getInt64(1));
    Value *Counters = load(Builder, Pointer, Found.Link, offsetof(quipu_link, counters));
    Value *To = load(Builder, Pointer, Found.Link, offsetof(quipu_link, to));
    if (KeepsNode)
        store(Builder, To, Visit, offsetof(quipu_visit, here));
    storeNow(Builder, To, Found.Thread, offsetof(quipu_thread, here));
    BasicBlock *Linked = Builder.GetInsertBlock();
    Builder.CreateBr(Way.Tail);
    CallInst *Missed = callMissed(Call, EnterHere, EnterMissed, Region, {Visit});

    Builder.SetInsertPoint(Way.Tail, Way.Tail->begin());
    PHINode *Own = Builder.CreatePHI(Pointer, 2);
    Own->addIncoming(Counters, Linked);
    Own->addIncoming(Missed, Way.Slow);
    for (User *U : make_early_inc_range(Call->users())) {
        auto *Load = cast<LoadInst>(U); // load of the address of the counters
        if (!Own->hasName())
            Own->takeName(Load);
        Load->replaceAllUsesWith(Own);
        Load->eraseFromParent();
    }
    Call->eraseFromParent();
}

/// Inlines a call of quipu_exit.
void Runtime::inlineExit(CallInst *Call, Value *Visit) {
    const Ways Way = split(Call);
    IRBuilder<> Builder(Way.Head);
    Builder.SetCurrentDebugLocation(Call->getDebugLoc());
    Value *Thread = threadState(Builder, HasSlots ? OwnActiveNode : ActiveNode);
    Value *IsTop = Builder.CreateICmpEQ(load(Builder, I64, Thread, offsetof(quipu_thread, top)),
                                        load(Builder, I64, Visit, offsetof(quipu_visit, top)));
    go(Builder, IsTop, block(Way, "quipu.top"), Way);
    storeNow(Builder, load(Builder, Pointer, Visit, offsetof(quipu_visit, back)), Thread, offsetof(quipu_thread, here));
    Builder.CreateBr(Way.Tail);
    replace(Call, ExitMissed, {Visit});
    Call->eraseFromParent();
}

/// Returns a function of this module with the inline code of a hook. Its arguments are the region (only for `Enter`)
/// and the visit. Known: stores this function for further calls.
Function *Runtime::sharedHook(Function *&Known, FunctionCallee Hook) {
    if (Known)
        return Known;
    const bool Enters = Hook.getCallee() == Enter.getCallee();
    const SmallVector<Type *, 2> Parameters(Enters ? 2 : 1, Pointer);
    // preserve_all does not preserve the register of a result. A function with an unused result may therefore use this
    // register.
    Type *Result = KeepsResults ? Pointer : Type::getVoidTy(M.getContext());
    Known = preserving(Hook.getCallee()->getName() + "_here", Result, Parameters);
    IRBuilder<> Builder(&Known->getEntryBlock());
    CallInst *Call = Builder.CreateCall(Hook, {Known->getArg(0)});
    KeepsResults ? Builder.CreateRet(PoisonValue::get(Pointer)) : Builder.CreateRetVoid();
    inlineHook(Call, Known->getArg(Enters), /*KeepsNode=*/true);
    return Known;
}

void Runtime::shareHook(CallInst *Call, Value *Visit) {
    if (Call->getCalledOperand() == Exit.getCallee()) {
        replace(Call, sharedHook(SharedExit, Exit), {Visit});
    } else {
        Value *Region = Call->getArgOperand(0);
        if (HasSlots)
            slotOf(Region);
        replace(Call, sharedHook(SharedEnter, Enter), {Region, Visit});
    }
    Call->eraseFromParent();
}

bool Runtime::inlines(const Function &F) const { return Current && !F.hasOptSize() && !F.hasOptNone(); }

void Runtime::inlineHook(CallInst *Call, Value *Visit, bool KeepsNode) {
    if (Call->getCalledOperand() == Exit.getCallee())
        inlineExit(Call, Visit);
    else
        inlineEnter(Call, Visit, KeepsNode);
}

} // namespace quipu

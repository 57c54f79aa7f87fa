// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

#include "interface.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Format.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace quipu {
namespace {

__attribute__((section(QUIPU_MODULES), used)) const quipu_module Self = {quipu_interface(), QUIPU_VERSION, "pass"};

/// Priority of the constructors. Programs use priorities from 101 on, so these constructors run first.
constexpr int Priority = 100;

} // namespace

void emitCheck(Module &M, GlobalVariable *Program) {
    LLVMContext &Context = M.getContext();
    std::string Name;
    raw_string_ostream(Name) << "quipu_module_" << format_hex_no_prefix(Self.interface, 8);
    if (M.getFunction(Name)) // a linked module already contains it
        return;
    Comdat *Group = M.getOrInsertComdat(Name);

    std::string Version = Self.version, Source = M.getSourceFileName();
    if (Source.size() > sizeof Self.source)
        Source.erase(0, Source.size() - sizeof Self.source);
    Version.resize(sizeof Self.version);
    Source.resize(sizeof Self.source);
    Constant *Fields[] = {ConstantInt::get(Type::getInt32Ty(Context), Self.interface),
                          ConstantDataArray::getString(Context, Version, false),
                          ConstantDataArray::getString(Context, Source, false)};
    Constant *Record = ConstantStruct::getAnon(Fields);
    auto *Global = new GlobalVariable(M, Record->getType(), true, GlobalValue::LinkOnceODRLinkage, Record, Name + "_");
    Global->setVisibility(GlobalValue::HiddenVisibility);
    Global->setSection(QUIPU_MODULES);
    Global->setAlignment(Align(4));
    Global->setComdat(Group);

    Type *Void = Type::getVoidTy(Context);
    FunctionCallee Check = M.getOrInsertFunction("quipu_check", Void, Global->getType());
    Function *Caller = Function::Create(FunctionType::get(Void, false), GlobalValue::LinkOnceODRLinkage, Name, M);
    Caller->setVisibility(GlobalValue::HiddenVisibility);
    Caller->setComdat(Group);
    IRBuilder<> Builder(BasicBlock::Create(Context, "", Caller));
    Builder.CreateCall(Check, {Global});
    Builder.CreateRetVoid();
    appendToGlobalCtors(M, Caller, Priority, Caller);
    if (!Program || M.getFunction("quipu_know_this_program"))
        return;
    Function *Known =
        Function::Create(FunctionType::get(Void, false), GlobalValue::LinkOnceODRLinkage, "quipu_know_this_program", M);
    Known->setVisibility(GlobalValue::HiddenVisibility);
    Known->setComdat(M.getOrInsertComdat(Known->getName()));
    IRBuilder<> Tells(BasicBlock::Create(Context, "", Known));
    Tells.CreateCall(M.getOrInsertFunction("quipu_know_program", Void, Program->getType()), {Program});
    Tells.CreateRetVoid();
    appendToGlobalCtors(M, Known, Priority, Known);
}

} // namespace quipu

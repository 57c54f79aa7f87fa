/* SPDX-License-Identifier: Apache-2.0 */
//===- versions.h - a plain and a counted version of each function ----------===//
//
// In a process that is not measured, a function should be as fast as without Quipu. The pass therefore copies the
// function. The plain version is the unchanged code and has the name of the function. The counted version has the
// counters. The plain version tests at its entry whether the process is measured; if so, it jumps to the counted
// version.
//
#ifndef QUIPU_VERSIONS_H
#define QUIPU_VERSIONS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IRBuilder.h"

namespace llvm {
class CallInst;
class Function;
class GlobalVariable;
class Value;
} // namespace llvm

namespace quipu {

/// Copies `F`. The copy gets the name and all uses of `F` and becomes the plain version; `F` becomes the counted
/// version. Returns the copy, or null if `F` is too large to benefit or cannot be copied.
llvm::Function *separateCounted(llvm::Function &F);

/// Calls of the runtime that look up the counters of the active call path. Near: in the plain version. Far: in a
/// separate function that runs if the lookup of `Near` fails, so that the plain version need not save registers; may be
/// null.
struct Lookup {
    llvm::CallInst *Near = nullptr, *Far = nullptr;
};

/// Adds the decision to the entry of `Plain`: if `Measuring` is not 0, it calls `Counted`. If `Region` is given,
/// `Plain` first looks up the counters with `Count`. If `Counted` has a last parameter for counters, `Plain` passes
/// them. Otherwise the lookup alone counts the visit, and `Plain` continues with its code. Returns the lookups.
Lookup decideAtEntry(llvm::Function &Plain, llvm::Function &Counted, llvm::GlobalVariable *Measuring,
                     llvm::FunctionCallee Count, llvm::Value *Region);

/// Appends to `From` a tail call of `To`, with the arguments of `From` and (if not null) `Counters`, and a return of
/// its result. Returns the call.
llvm::CallInst *callWithArguments(llvm::IRBuilder<> &Builder, llvm::Function &From, llvm::Function &To,
                                  llvm::Value *Counters);

/// Creates a separate function for the decision (decideAtEntry). The new function gets the name of `Plain` and calls
/// `Body`, which is `Plain` or a counted version with the same code. Plain versions (`Copies`) then call `Body`
/// directly, because their own entry has already decided. Returns the function that shall decide: the new one, or
/// `Plain` if no plain version calls it and it is small.
llvm::Function *separateEntry(llvm::Function &Plain, llvm::Function &Body,
                              llvm::SmallPtrSetImpl<const llvm::Function *> &Copies);

/// In all counted versions, replaces calls of plain versions by calls of the counted versions. CountedOf: the counted
/// version of each plain version.
void callCounted(const llvm::DenseMap<llvm::Function *, llvm::Function *> &CountedOf);

} // namespace quipu

#endif

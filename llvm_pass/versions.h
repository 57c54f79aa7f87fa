/* SPDX-License-Identifier: Apache-2.0 */
//===- versions.h - functions as they are without Quipu, beside counted ones -===//
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

/// Gives the name of `F` to a copy of it, which does what the source says and nothing more. All who used `F` use the
/// copy. Returns the copy; null if there is none: large functions do not pay it back, and some functions cannot be
/// copied.
llvm::Function *separateCounted(llvm::Function &F);

/// Calls of the runtime that look for counters. Far: in a function that takes the place of the other one where they are
/// not found at once, so that the usual way saves no registers; null: it does not exist.
struct Lookup {
    llvm::CallInst *Near = nullptr, *Far = nullptr;
};

/// Lets the copy go to the counted version while the process is measured. Region: if it is given, the counted version
/// does not look for its counters, and takes them, if there are some, as its last argument; then the copy looks for
/// them by calls of `Count`, which are returned. Without counters the copy goes on itself.
/// Measuring: whether it is.
Lookup decideAtEntry(llvm::Function &Plain, llvm::Function &Counted, llvm::GlobalVariable *Measuring,
                     llvm::FunctionCallee Count, llvm::Value *Region);

/// Lets `From` end with the result of `To`, which gets its arguments and, if they are given, counters.
llvm::CallInst *callWithArguments(llvm::IRBuilder<> &Builder, llvm::Function &From, llvm::Function &To,
                                  llvm::Value *Counters);

/// Lets other copies call the code without a decision at its entry: then a function in front of it has the name. Not
/// for small functions that nobody calls in this way. Body: the code, which may be the copy. Returns the function whose
/// entry is to decide.
llvm::Function *separateEntry(llvm::Function &Plain, llvm::Function &Body,
                              llvm::SmallPtrSetImpl<const llvm::Function *> &Copies);

/// Lets counted functions call counted ones at once. CountedOf: by the copy that has the name.
void callCounted(const llvm::DenseMap<llvm::Function *, llvm::Function *> &CountedOf);

} // namespace quipu

#endif

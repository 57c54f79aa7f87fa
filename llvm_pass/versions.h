/* SPDX-License-Identifier: Apache-2.0 */
//===- versions.h - functions as they are without Quipu, beside counted ones -===//
#ifndef QUIPU_VERSIONS_H
#define QUIPU_VERSIONS_H

#include "llvm/ADT/DenseMap.h"

namespace llvm {
class Function;
} // namespace llvm

namespace quipu {

/// Gives the name of `F` to a copy of it, which goes to `F` while the process is measured and else does what the source
/// says and nothing more. All who used `F` use the copy. Returns the copy; null if there is none: large functions do
/// not pay it back, and some functions cannot be copied.
llvm::Function *separateCounted(llvm::Function &F);

/// Lets counted functions call counted ones at once. CountedOf: by the copy that has the name.
void callCounted(const llvm::DenseMap<llvm::Function *, llvm::Function *> &CountedOf);

} // namespace quipu

#endif

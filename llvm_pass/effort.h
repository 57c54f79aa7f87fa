/* SPDX-License-Identifier: Apache-2.0 */
//===- effort.h - the static weights of code -------------------------------===//
#ifndef QUIPU_EFFORT_H
#define QUIPU_EFFORT_H

#include "quipu.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <array>
#include <cstdint>

namespace llvm {
class BasicBlock;
class CallBase;
class Instruction;
class Value;
} // namespace llvm

namespace quipu {

/// One number per metric of the pass: blocks, instructions, flops (all, single, double precision), loads, stores, bytes
/// loaded, bytes stored, bytes in order.
using Effort = std::array<int64_t, QUIPU_WEIGHTED>;

/// Visits and effort of one scope.
struct Work {
    int64_t Visits = 0;
    Effort Code{};
};

/// Work by scope of a function (scopes.h). Scope 0 is the function itself.
using ScopedWork = llvm::MapVector<unsigned, Work>;

/// Work of one execution of each block. Blocks without an entry have no work.
using BlockWork = llvm::DenseMap<const llvm::BasicBlock *, ScopedWork>;

/// Returns whether an instruction counts as work. PHI nodes, and intrinsics that produce no code, do not.
bool isWork(const llvm::Instruction &I);

/// Adds the effort of one execution of an instruction. A fused multiply-add is two operations. A vector operation
/// counts once per element. Comparisons, conversions and negations are no floating-point operations. A memcpy or memset
/// with constant length counts its bytes.
void addEffort(Effort &E, const llvm::Instruction &I);

/// A transfer of memory whose length is known at run time only.
struct Transfer {
    llvm::Value *Length; ///< bytes
    bool Loads;          ///< true: a copy; false: a fill
};

/// Returns whether `I` is a transfer of variable length, whose bytes addEffort() does not count.
bool isVariableTransfer(const llvm::Instruction &I);
/// Returns the transfer of an instruction for which isVariableTransfer() is true.
Transfer transferOf(llvm::Instruction &I);

/// Returns whether `I` is a call of a function, which may run counted code, end the program, or leave the caller. Calls
/// of intrinsics and of inline assembly are no real calls.
bool isRealCall(const llvm::Instruction &I);

/// Returns whether `I` is a real call that may not return (it may end the program, throw or jump), or may return twice
/// (setjmp).
bool mayNotReturn(const llvm::Instruction &I);

/// Adds `Factor` times `Other` to `Target`.
void accumulate(Effort &Target, const Effort &Other, int64_t Factor);
void accumulate(ScopedWork &Target, const ScopedWork &Other, int64_t Factor);

bool isNothing(const Work &Done);
/// Returns whether no scope has work.
bool isNothing(const ScopedWork &Done);

} // namespace quipu

#endif

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

/// One number for each metric that the pass counts: blocks, instructions, flops (all, single, double precision), loads,
/// stores, bytes loaded, bytes stored, bytes in order.
using Effort = std::array<int64_t, QUIPU_WEIGHTED>;

/// What happens in one function: how often it is entered, and what it does.
struct Work {
    int64_t Visits = 0;
    Effort Code{};
};

/// Work by scope of a function (scopes.h): 0 is the function itself.
using ScopedWork = llvm::MapVector<unsigned, Work>;

/// One execution of each block; blocks without an entry do nothing.
using BlockWork = llvm::DenseMap<const llvm::BasicBlock *, ScopedWork>;

/// Whether it counts as work: not phis and remarks of the compiler to itself.
bool isWork(const llvm::Instruction &I);

/// Adds what one execution of an instruction costs as far as its code shows. A fused multiply-add is two operations, a
/// vector counts by its elements; comparisons, conversions and negations are none. Bytes that a call of memcpy or
/// memset moves are in here if their number is a constant.
void addEffort(Effort &E, const llvm::Instruction &I);

/// A transfer of memory whose length is known at run time only.
struct Transfer {
    llvm::Value *Length; ///< bytes
    bool Loads;          ///< copies; otherwise it only fills
};

/// Whether `I` is a transfer whose bytes addEffort() leaves out.
bool isVariableTransfer(const llvm::Instruction &I);
/// Which one it is.
Transfer transferOf(llvm::Instruction &I);

/// A call after which counted code may run, end or be left: not an intrinsic and not assembly.
bool isRealCall(const llvm::Instruction &I);

/// A real call that may not come back: it may end the program, throw or jump.
bool mayNotReturn(const llvm::Instruction &I);

/// Sum of `Target` and `Factor` times `Other`.
void accumulate(Effort &Target, const Effort &Other, int64_t Factor);
void accumulate(ScopedWork &Target, const ScopedWork &Other, int64_t Factor);

bool isNothing(const Work &Done);
/// Whether nothing is done in any scope.
bool isNothing(const ScopedWork &Done);

} // namespace quipu

#endif

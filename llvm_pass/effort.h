//===- effort.h - the static weights of code -------------------------------===//
#ifndef QUIPU_EFFORT_H
#define QUIPU_EFFORT_H

#include "quipu.h"

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
/// stores, bytes loaded, bytes stored.
using Effort = std::array<int64_t, QUIPU_WEIGHTED>;

/// What one execution of a block costs as far as its code shows. A fused multiply-add is two operations, a vector
/// counts by its elements; comparisons, conversions and negations are none. Bytes that a call of memcpy or memset moves
/// are in here if their number is a constant.
Effort effortOf(const llvm::BasicBlock &BB);

/// Adds what one execution of an instruction costs; nothing for phis and remarks of the compiler to itself.
void addEffort(Effort &E, const llvm::Instruction &I);

/// A transfer of memory whose length is known at run time only.
struct Transfer {
    llvm::Value *Length; ///< bytes
    bool Loads;          ///< copies; otherwise it only fills
};

/// Whether `I` is a transfer that effortOf() leaves out, and which one.
bool isVariableTransfer(llvm::Instruction &I, Transfer &Found);

/// A call after which counted code may run, end or be left: not an intrinsic and not assembly.
bool isRealCall(const llvm::Instruction &I);

/// A real call that may not come back: it may end the program, throw or jump.
bool mayNotReturn(const llvm::Instruction &I);

/// Sum of `Target` and `Factor` times `Other`.
void accumulate(Effort &Target, const Effort &Other, int64_t Factor);

} // namespace quipu

#endif

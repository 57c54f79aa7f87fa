/* SPDX-License-Identifier: Apache-2.0 */
//===- streams.h - loads and stores that access memory in order --------------===//
#ifndef QUIPU_STREAMS_H
#define QUIPU_STREAMS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/PassManager.h"

#include <cstdint>

namespace llvm {
class Function;
class Instruction;
} // namespace llvm

namespace quipu {

/// Bytes in order: the new bytes of memory that one execution of an instruction accesses. The instruction is a load, a
/// store, or a transfer of constant length, and its address grows by a constant stride in each iteration of the
/// innermost loop around it. An access close to another access, on the same cache line, accesses no new bytes. Other
/// instructions have no entry: their address is constant, is loaded from memory, or is unknown.
using Streams = llvm::DenseMap<const llvm::Instruction *, int64_t>;

Streams streamsOf(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

} // namespace quipu

#endif

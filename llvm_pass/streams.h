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

/// The new bytes of memory that one execution of a load, a store or a transfer of constant length accesses, because its
/// address grows by a constant stride in each iteration of the loop around it. An access next to another access on the
/// same cache line accesses no new bytes. An instruction without an entry has no constant stride: its address is
/// constant, is loaded from memory, or is unknown.
using Streams = llvm::DenseMap<const llvm::Instruction *, int64_t>;

Streams streamsOf(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- streams.h - which loads and stores walk through memory in order -------===//
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

/// By load, store or transfer of constant length: the bytes of memory that one execution reaches anew, because its
/// address grows by a constant stride in each iteration of the loop around it. What walks beside another, on the same
/// line of a cache, reaches nothing anew. Those without an entry do not walk: their addresses are the same, or come
/// from memory, or nothing is known of them.
using Streams = llvm::DenseMap<const llvm::Instruction *, int64_t>;

Streams streamsOf(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

} // namespace quipu

#endif

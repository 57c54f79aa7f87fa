/* SPDX-License-Identifier: Apache-2.0 */
//===- flow.h - the counted edges of a flow graph ----------------------------===//
#ifndef QUIPU_FLOW_H
#define QUIPU_FLOW_H

#include "effort.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <vector>

namespace llvm {
class BasicBlock;
class Function;
class LoopInfo;
} // namespace llvm

namespace quipu {

/// The edge From -> To, or the block To if From is null.
struct CountedEdge {
    llvm::BasicBlock *From;
    llvm::BasicBlock *To;
};

/// Counters whose values, together with the number of visits, determine how often every block was executed.
struct CountingPlan {
    std::vector<CountedEdge> Edges;
    std::vector<ScopedWork> Weights; ///< work of a visit, then work per unit of each counter
    /// For each row of Weights, how often blocks are executed: per visit, then per unit of each counter; may be
    /// negative.
    std::vector<llvm::SmallVector<std::pair<const llvm::BasicBlock *, int64_t>, 4>> Shares;
};

using BlockSet = llvm::SmallPtrSet<const llvm::BasicBlock *, 8>;

/// Returns the blocks from which neither an end of the function nor a call that may not return can be reached. Only a
/// signal can end the execution of these blocks.
BlockSet endlessBlocks(const llvm::Function &F);

/// Plans counters for the edges outside of a spanning tree of the flow graph (Knuth 1973; Ball and Larus 1994, section
/// 3). The counts of the other edges follow from flow conservation.
///
/// Flow is not conserved in a block with a call that may not return, and in the blocks `Endless`. Each such block gets
/// an edge to the exit of the graph. This edge is on the tree, so it has no counter.
///
/// Done: the work of each block; blocks without an entry have none. IsCheap: returns whether the count of a block has a
/// closed form; such blocks are preferred for counters. Of the other edges in equally many loops, those with the lowest
/// `Frequency` are preferred. Edges without a begin stand for a block.
CountingPlan planEdges(llvm::Function &F, const BlockWork &Done, const BlockSet &Endless, const llvm::LoopInfo &LI,
                       llvm::function_ref<bool(const llvm::BasicBlock *)> IsCheap,
                       llvm::function_ref<uint64_t(const CountedEdge &)> Frequency);

/// Numbers of the paths through a function without loops. The number of a path is the sum of the numbers of its edges
/// (Ball and Larus 1996, section 3).
struct PathNumbers {
    unsigned Count = 0;
    llvm::DenseMap<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>, unsigned> OfEdge;
};

/// Numbers the paths. Returns nothing if the function has a loop, or more than `Most` paths.
std::optional<PathNumbers> numberPaths(const llvm::Function &F, unsigned Most);

/// Plans one counter per path. The path counters contain the visits, and no edge has a counter.
CountingPlan planPaths(const llvm::Function &F, const BlockWork &Done, const PathNumbers &Numbers);

/// Plans one counter per block, for functions that planEdges() does not support.
CountingPlan planBlocks(llvm::Function &F, const BlockWork &Done);

/// Returns whether the function has a loop, also one with several entries.
bool hasCycle(const llvm::Function &F);

/// Returns whether planEdges() supports the function. It does not support indirect branches, asm goto, exception
/// handling of Windows, and calls that may return twice.
bool hasPlainEdges(const llvm::Function &F);

} // namespace quipu

#endif

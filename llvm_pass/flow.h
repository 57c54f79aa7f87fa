/* SPDX-License-Identifier: Apache-2.0 */
//===- flow.h - which edges of a flow graph are counted, and what follows ----===//
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

/// The edge From -> To; the block To if From is null.
struct CountedEdge {
    llvm::BasicBlock *From;
    llvm::BasicBlock *To;
};

/// Counters whose values, together with the number of visits, determine how often every block was executed.
struct CountingPlan {
    std::vector<CountedEdge> Edges;
    std::vector<ScopedWork> Weights; ///< of a visit, then of 1 in the counter of each edge
    /// How often each block was executed for that.
    std::vector<llvm::SmallVector<std::pair<const llvm::BasicBlock *, int64_t>, 4>> Shares;
};

using BlockSet = llvm::SmallPtrSet<const llvm::BasicBlock *, 8>;

/// Blocks that only a signal ends: no end of the function, nor a call that may not return, can be reached from them.
BlockSet endlessBlocks(const llvm::Function &F);

/// The edges outside of a spanning tree of the flow graph (Knuth 1973; Ball and Larus 1994, section 3); those on it
/// follow from flow conservation. A block that contains a call which may not come back conserves nothing, nor do
/// the `Endless` ones: they have an edge to the exit of the graph, which is on the tree. Blocks without an entry in
/// `Done` weigh nothing. `IsCheap` says which blocks have a closed form of their count: they are rather counted than
/// followed from others.
CountingPlan planEdges(llvm::Function &F, const BlockWork &Done, const BlockSet &Endless, const llvm::LoopInfo &LI,
                       llvm::function_ref<bool(const llvm::BasicBlock *)> IsCheap);

/// The number of a way through a function without loops is the sum of the numbers of its edges (Ball and Larus 1996,
/// section 3).
struct PathNumbers {
    unsigned Count = 0;
    llvm::DenseMap<std::pair<const llvm::BasicBlock *, const llvm::BasicBlock *>, unsigned> OfEdge;
};

/// Nothing if the function has a loop, or more than `Most` ways through it.
std::optional<PathNumbers> numberPaths(const llvm::Function &F, unsigned Most);

/// A counter for every way through the function, and nothing for a visit, which the counters say. No edge is counted.
CountingPlan planPaths(const llvm::Function &F, const BlockWork &Done, const PathNumbers &Numbers);

/// A counter for every block, for flow graphs with edges that cannot be counted, or whose blocks are resumed.
CountingPlan planBlocks(llvm::Function &F, const BlockWork &Done);

/// Whether planEdges() can deal with the function.
bool hasPlainEdges(const llvm::Function &F);

} // namespace quipu

#endif

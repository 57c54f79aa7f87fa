// SPDX-License-Identifier: Apache-2.0
#include "flow.h"

#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace llvm;

namespace quipu {
namespace {

struct Edge {
    unsigned From, To;
    const BasicBlock *Weighs; ///< the block that this edge stands for; null for an edge between blocks
    CountedEdge Counted;
    unsigned Reluctance;    ///< edges with a small value are preferred for counters
    uint64_t Frequency = 0; ///< of edges with the same value, the rarely executed ones are preferred
};

/// Union-find over small numbers.
class Components {
  public:
    explicit Components(unsigned Size) : Parent(Size) { std::iota(Parent.begin(), Parent.end(), 0U); }
    unsigned find(unsigned I) {
        while (Parent[I] != I)
            I = Parent[I] = Parent[Parent[I]];
        return I;
    }
    /// Joins the sets with A and B. Returns false if they were the same set.
    bool join(unsigned A, unsigned B) {
        A = find(A);
        B = find(B);
        Parent[A] = B;
        return A != B;
    }

  private:
    std::vector<unsigned> Parent;
};

/// A spanning tree. hang() selects the root; then walk() follows the path between two nodes.
class Tree {
  public:
    explicit Tree(unsigned Size) : Neighbours(Size), Up(Size), Depth(Size, 0) {}

    void add(const Edge &E) {
        Neighbours[E.From].push_back({E.To, 1, E.Weighs});
        Neighbours[E.To].push_back({E.From, -1, E.Weighs});
    }

    void hang(unsigned Root) {
        std::vector<unsigned> Work = {Root};
        Up[Root] = {Root, 1, nullptr};
        while (!Work.empty()) {
            unsigned At = Work.back();
            Work.pop_back();
            for (const Step &S : Neighbours[At]) {
                if (S.Node == Up[At].Node && At != Root)
                    continue;
                Up[S.Node] = {At, -S.Sign, S.Weighs};
                Depth[S.Node] = Depth[At] + 1;
                Work.push_back(S.Node);
            }
        }
    }

    /// Calls Visit(block, sign) for each edge on the path between two nodes that stands for a block. Sign: +1 if the
    /// path goes along the edge, -1 if it goes against the edge.
    void walk(unsigned From, unsigned To, function_ref<void(const BasicBlock *, int64_t)> Visit) const {
        while (From != To) {
            const bool Climb = Depth[From] >= Depth[To]; // otherwise the step has the opposite direction
            unsigned &At = Climb ? From : To;
            const Step &S = Up[At];
            if (S.Weighs)
                Visit(S.Weighs, Climb ? S.Sign : -S.Sign);
            At = S.Node;
        }
    }

  private:
    struct Step {
        unsigned Node;
        int64_t Sign; ///< +1: the edge leads to Node; -1: it comes from Node
        const BasicBlock *Weighs;
    };
    std::vector<SmallVector<Step, 3>> Neighbours;
    std::vector<Step> Up;
    std::vector<unsigned> Depth;
};

/// Returns whether an edge is the exceptional edge of an invoke. Such edges have no counter. If necessary, their
/// landing pad has a counter instead.
bool isUnwind(const BasicBlock *From, const BasicBlock *To) {
    const auto *Invoke = dyn_cast<InvokeInst>(From->getTerminator());
    return Invoke && Invoke->getUnwindDest() == To;
}

} // namespace

bool hasPlainEdges(const Function &F) {
    for (const BasicBlock &BB : F) {
        if (isa<IndirectBrInst, CallBrInst>(BB.getTerminator()))
            return false;
        if (BB.isEHPad() && !BB.isLandingPad())
            return false;
        for (const Instruction &I : BB)
            if (const auto *Call = dyn_cast<CallBase>(&I); Call && Call->hasFnAttr(Attribute::ReturnsTwice))
                return false;
    }
    return true;
}

bool hasCycle(const Function &F) {
    SmallVector<std::pair<const BasicBlock *, const BasicBlock *>, 4> BackEdges;
    FindFunctionBackedges(F, BackEdges);
    return !BackEdges.empty();
}

BlockSet endlessBlocks(const Function &F) {
    SmallPtrSet<const BasicBlock *, 32> Ending;
    SmallVector<const BasicBlock *, 32> Work;
    for (const BasicBlock &BB : F)
        if (succ_empty(&BB) || any_of(BB, mayNotReturn))
            Work.push_back(&BB);
    while (!Work.empty()) {
        const BasicBlock *BB = Work.pop_back_val();
        if (Ending.insert(BB).second)
            Work.append(pred_begin(BB), pred_end(BB));
    }
    BlockSet Endless;
    for (const BasicBlock &BB : F)
        if (!Ending.contains(&BB))
            Endless.insert(&BB);
    return Endless;
}

CountingPlan planBlocks(Function &F, const BlockWork &Done) {
    CountingPlan Plan;
    Plan.Weights.push_back(Done.lookup(&F.getEntryBlock()));
    Plan.Shares.push_back({{&F.getEntryBlock(), 1}});
    for (BasicBlock &BB : drop_begin(F)) {
        // A catchswitch block cannot contain the addition.
        if (!Done.count(&BB) || BB.getFirstInsertionPt() == BB.end())
            continue;
        Plan.Edges.push_back({nullptr, &BB});
        Plan.Weights.push_back(Done.lookup(&BB));
        Plan.Shares.push_back({{&BB, 1}});
    }
    return Plan;
}

/// Returns the distinct successors.
static SmallSetVector<const BasicBlock *, 4> followers(const BasicBlock *BB) {
    return SmallSetVector<const BasicBlock *, 4>(succ_begin(BB), succ_end(BB));
}

std::optional<PathNumbers> numberPaths(const Function &F, unsigned Most) {
    PathNumbers Numbers;
    DenseMap<const BasicBlock *, unsigned> Ways; // number of paths from a block to the end
    for (const BasicBlock *BB : post_order(&F)) {
        unsigned Sum = 0;
        for (const BasicBlock *Next : followers(BB)) {
            auto Found = Ways.find(Next); // NOLINT(llvm-qualified-auto): a pointer in some LLVMs only
            if (Found == Ways.end())
                return std::nullopt; // a back edge
            Numbers.OfEdge[{BB, Next}] = Sum;
            Sum += Found->second;
        }
        Ways[BB] = Numbers.Count = std::max(Sum, 1U);
        if (Sum > Most)
            return std::nullopt;
    }
    return Numbers;
}

CountingPlan planPaths(const Function &F, const BlockWork &Done, const PathNumbers &Numbers) {
    CountingPlan Plan;
    Plan.Weights.resize(1 + Numbers.Count);
    Plan.Shares.resize(1 + Numbers.Count);
    SmallVector<const BasicBlock *, 16> Path;
    const std::function<void(const BasicBlock *, unsigned)> Walk = [&](const BasicBlock *BB, unsigned Number) {
        Path.push_back(BB);
        for (const BasicBlock *Next : followers(BB))
            Walk(Next, Number + Numbers.OfEdge.lookup({BB, Next}));
        if (succ_empty(BB)) {
            ScopedWork &Row = Plan.Weights[1 + Number];
            Row[0].Visits++;
            for (const BasicBlock *Passed : Path) {
                if (auto Found = Done.find(Passed); Found != Done.end())
                    quipu::accumulate(Row, Found->second, 1);
                Plan.Shares[1 + Number].push_back({Passed, 1});
            }
        }
        Path.pop_back();
    };
    Walk(&F.getEntryBlock(), 0);
    return Plan;
}

CountingPlan planEdges(Function &F, const BlockWork &Done, const BlockSet &Endless, const LoopInfo &LI,
                       function_ref<bool(const BasicBlock *)> IsCheap,
                       function_ref<uint64_t(const CountedEdge &)> Frequency) {
    // A block is also an edge: from the node of its begin to the node of its end.
    constexpr unsigned Exit = 0;
    constexpr unsigned Critical = 1U << 20;
    std::vector<BasicBlock *> Blocks;
    DenseMap<const BasicBlock *, unsigned> Begin;
    for (BasicBlock *BB : depth_first(&F)) {
        Begin[BB] = 1 + 2 * Blocks.size();
        Blocks.push_back(BB);
    }
    const unsigned Nodes = 1 + 2 * Blocks.size();
    Components Joined(Nodes);
    Tree Spanning(Nodes);
    auto Follow = [&](const Edge &E) {
        if (!Joined.join(E.From, E.To))
            return false;
        Spanning.add(E);
        return true;
    };

    std::vector<Edge> Edges;
    for (BasicBlock *BB : Blocks) {
        const unsigned First = Begin.lookup(BB), Last = First + 1;
        if (succ_empty(BB) || Endless.contains(BB) || any_of(*BB, mayNotReturn))
            Follow({Last, Exit, nullptr, {}, 0});
        if (BB->isLandingPad())
            Follow({Exit, First, nullptr, {}, 0});
        // Edges deep in loops, and critical edges, get a counter only if the tree cannot contain them.
        const unsigned Depth = LI.getLoopDepth(BB);
        Edges.push_back({First, Last, BB, {nullptr, BB}, IsCheap(BB) ? 0 : 1 + Depth});
        SmallPtrSet<BasicBlock *, 4> Seen;
        for (BasicBlock *Next : successors(BB)) {
            if (!Seen.insert(Next).second || isUnwind(BB, Next))
                continue;
            const bool Simple = BB->getUniqueSuccessor() || Next->getUniquePredecessor();
            const unsigned Reluctance = 1 + std::min(Depth, LI.getLoopDepth(Next)) + (Simple ? 0 : Critical);
            Edges.push_back({Last, Begin.lookup(Next), nullptr, {BB, Next}, Reluctance});
        }
    }
    std::vector<const Edge *> Order;
    Order.reserve(Edges.size());
    for (Edge &E : Edges) {
        E.Frequency = Frequency(E.Counted);
        Order.push_back(&E);
    }
    std::sort(Order.begin(), Order.end(), [](const Edge *A, const Edge *B) {
        if (A->Reluctance != B->Reluctance)
            return A->Reluctance > B->Reluctance;
        return A->Frequency != B->Frequency ? A->Frequency > B->Frequency : A < B;
    });
    std::vector<const Edge *> Counted;
    for (const Edge *E : Order)
        if (!Follow(*E))
            Counted.push_back(E);
    // Connect nodes from which an end can be reached only through exceptions that cannot occur.
    for (unsigned Node = 1; Node < Nodes; Node++)
        Follow({Node, Exit, nullptr, {}, 0});
    Spanning.hang(Exit);

    CountingPlan Plan;
    auto AddRow = [&](const Edge &E) {
        ScopedWork Row;
        decltype(Plan.Shares)::value_type Shares;
        auto Add = [&](const BasicBlock *BB, int64_t Sign) {
            if (auto Found = Done.find(BB); Found != Done.end())
                quipu::accumulate(Row, Found->second, Sign);
            Shares.push_back({BB, Sign});
        };
        if (E.Weighs)
            Add(E.Weighs, 1);
        Spanning.walk(E.To, E.From, Add);
        if (E.From != Exit && isNothing(Row))
            return false;
        Plan.Weights.push_back(std::move(Row));
        Plan.Shares.push_back(std::move(Shares));
        return true;
    };
    AddRow({Exit, Begin.lookup(&F.getEntryBlock()), nullptr, {}, 0});
    for (const Edge *E : Counted)
        if (AddRow(*E))
            Plan.Edges.push_back(E->Counted);
    return Plan;
}

} // namespace quipu

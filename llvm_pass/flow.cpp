#include "flow.h"

#include "llvm/ADT/DepthFirstIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Instructions.h"

#include <algorithm>
#include <numeric>

using namespace llvm;

namespace quipu {
namespace {

struct Edge {
    unsigned From, To;
    CountedEdge Counted;
    unsigned Reluctance; ///< edges with little of it are counted first
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
    /// False if they were joined already.
    bool join(unsigned A, unsigned B) {
        A = find(A);
        B = find(B);
        Parent[A] = B;
        return A != B;
    }

  private:
    std::vector<unsigned> Parent;
};

/// A spanning tree with a root, in which the way from any node up to the root is known.
class Tree {
  public:
    explicit Tree(unsigned Size) : Neighbours(Size), Up(Size), Depth(Size, 0) {}

    void add(const Edge &E) {
        Neighbours[E.From].push_back({E.To, true});
        Neighbours[E.To].push_back({E.From, false});
    }

    void hang(unsigned Root) {
        std::vector<unsigned> Work = {Root};
        Up[Root] = {Root, false};
        while (!Work.empty()) {
            unsigned At = Work.back();
            Work.pop_back();
            for (const Step &S : Neighbours[At]) {
                if (S.Node == Up[At].Node && At != Root)
                    continue;
                Up[S.Node] = {At, !S.Along};
                Depth[S.Node] = Depth[At] + 1;
                Work.push_back(S.Node);
            }
        }
    }

    /// Calls Visit(node that the edge leads to, sign) for each tree edge on the way between two nodes: +1 where the way
    /// goes along the edge, -1 where against it.
    void walk(unsigned From, unsigned To, function_ref<void(unsigned, int64_t)> Visit) const {
        while (From != To) {
            if (Depth[From] >= Depth[To]) {
                const Step &S = Up[From];
                Visit(S.Along ? S.Node : From, S.Along ? 1 : -1);
                From = S.Node;
            } else {
                const Step &S = Up[To]; // this edge is passed the other way
                Visit(S.Along ? S.Node : To, S.Along ? -1 : 1);
                To = S.Node;
            }
        }
    }

  private:
    struct Step {
        unsigned Node;
        bool Along; ///< the edge of the flow graph leads to Node
    };
    std::vector<SmallVector<Step, 3>> Neighbours;
    std::vector<Step> Up;
    std::vector<unsigned> Depth;
};

/// Exceptional edges: not counted themselves, but in the block that they lead to.
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

CountingPlan planBlocks(Function &F, const BlockEfforts &Efforts) {
    CountingPlan Plan;
    Plan.Weights.push_back(Efforts.lookup(&F.getEntryBlock()));
    for (BasicBlock &BB : drop_begin(F)) {
        // A block of a catchswitch has no place for an instruction.
        if (!Efforts.count(&BB) || BB.getFirstInsertionPt() == BB.end())
            continue;
        Plan.Edges.push_back({nullptr, &BB});
        Plan.Weights.push_back(Efforts.lookup(&BB));
    }
    return Plan;
}

CountingPlan planEdges(Function &F, const BlockEfforts &Efforts, const LoopInfo &LI,
                       function_ref<bool(const BasicBlock *, const BasicBlock *)> IsCheap) {
    constexpr unsigned Exit = 0;
    constexpr unsigned Never = ~0U;
    std::vector<BasicBlock *> Blocks = {nullptr};
    DenseMap<const BasicBlock *, unsigned> Number;
    for (BasicBlock *BB : depth_first(&F)) {
        Number[BB] = Blocks.size();
        Blocks.push_back(BB);
    }

    Components Joined(Blocks.size());
    Tree Spanning(Blocks.size());
    std::vector<Edge> Edges;
    for (unsigned I = 1; I < Blocks.size(); I++) {
        BasicBlock *BB = Blocks[I];
        if (succ_empty(BB) || any_of(*BB, mayNotReturn)) {
            Spanning.add({I, Exit, {}, Never});
            Joined.join(I, Exit);
        }
        if (BB->isLandingPad())
            Edges.push_back({Exit, I, {nullptr, BB}, 0});
        SmallPtrSet<BasicBlock *, 4> Seen;
        for (BasicBlock *Next : successors(BB)) {
            if (!Seen.insert(Next).second || isUnwind(BB, Next))
                continue;
            // Deep in loops it is better not to count; an edge that needs no block of its own is better to count.
            unsigned Depth = std::min(LI.getLoopDepth(BB), LI.getLoopDepth(Next));
            bool Simple = BB->getUniqueSuccessor() || Next->getUniquePredecessor();
            Edges.push_back({I, Number.lookup(Next), {BB, Next}, IsCheap(BB, Next) ? 1 : 2 + 2 * Depth + !Simple});
        }
    }
    std::stable_sort(Edges.begin(), Edges.end(),
                     [](const Edge &A, const Edge &B) { return A.Reluctance > B.Reluctance; });
    std::vector<const Edge *> Counted;
    for (const Edge &E : Edges) {
        if (E.Reluctance > 0 && Joined.join(E.From, E.To))
            Spanning.add(E);
        else
            Counted.push_back(&E);
    }
    // Loops that nothing leaves: nobody sees the counts of their last round.
    for (unsigned I = 1; I < Blocks.size(); I++)
        if (Joined.join(I, Exit))
            Spanning.add({I, Exit, {}, Never});
    Spanning.hang(Exit);

    CountingPlan Plan;
    auto WeightOf = [&](unsigned From, unsigned To) {
        Effort Row{};
        auto Add = [&](unsigned Node, int64_t Sign) {
            if (Node != Exit)
                accumulate(Row, Efforts.lookup(Blocks[Node]), Sign);
        };
        Add(To, 1);
        Spanning.walk(To, From, Add);
        return Row;
    };
    Plan.Weights.push_back(WeightOf(Exit, 1));
    for (const Edge *E : Counted) {
        Effort Row = WeightOf(E->From, E->To);
        if (Row == Effort{})
            continue;
        Plan.Edges.push_back(E->Counted);
        Plan.Weights.push_back(Row);
    }
    return Plan;
}

} // namespace quipu

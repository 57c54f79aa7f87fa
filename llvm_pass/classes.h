/* SPDX-License-Identifier: Apache-2.0 */
//===- classes.h - blocks that are executed equally often --------------------===//
#ifndef QUIPU_CLASSES_H
#define QUIPU_CLASSES_H

#include "flow.h"
#include "scopes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace llvm {
class DISubprogram;
class DominatorTree;
class Function;
class LoopInfo;
} // namespace llvm

namespace quipu {

/// What the blocks of a class do at one source line per execution. Code that was inlined is at the line and in the
/// function that it came from.
struct PlaceEffort {
    const llvm::DISubprogram *Function; ///< null: code without a location
    std::string Display;                ///< the function as its users know it
    unsigned Line;
    Effort Code{};
};

/// Blocks of one scope that flow conservation says are executed equally often: a body of a loop, its header, a way of a
/// branch. A class is executed as often as the sum over `Terms` of share times row says, where row 0 is a visit of the
/// function and row i + 1 its counter i.
struct CountClass {
    unsigned Scope;                                  ///< of the function (scopes.h)
    unsigned Depth = 0;                              ///< loops of the function around it
    int Within = -1;                                 ///< the class of the same scope around it, by index; -1: none
    std::vector<std::pair<unsigned, int64_t>> Terms; ///< row and share, ascending
    llvm::SetVector<const llvm::Function *> Calls;   ///< whom it calls by name
    std::vector<PlaceEffort> Places;
};

/// Groups the blocks of a function. Reads it before anything is inserted.
class ClassTable {
  public:
    ClassTable(const llvm::Function &F, const Scopes &Within, const CountingPlan &Plan, const llvm::DominatorTree &DT,
               const llvm::LoopInfo &LI);

    /// A transfer of variable length: its row counts bytes.
    void addTransfer(unsigned Row, const llvm::Instruction &I, const Effort &Weight);
    /// Gives what the classes of a scope lack of a row to a class of that row alone: code that was moved between blocks
    /// meanwhile, such as the landing pads that loops share with their surroundings.
    void complete(unsigned Row, unsigned Scope, const Effort &Weight);
    /// The classes of a function that is called and counted here. ScopeOf: its scopes here. Blocks: each execution of
    /// which is a visit of it; visits that row `VisitRow` counts come in addition. First: the row of its counter 0.
    void addCallee(llvm::ArrayRef<CountClass> Classes, llvm::ArrayRef<unsigned> ScopeOf,
                   llvm::ArrayRef<const llvm::BasicBlock *> Blocks, std::optional<unsigned> VisitRow, unsigned First);
    std::vector<CountClass> take() { return std::move(All); }

  private:
    using Terms = std::vector<std::pair<unsigned, int64_t>>;
    struct Group {
        Terms Shares;
        const llvm::BasicBlock *First;
        unsigned Depth;
    };

    CountClass &classOf(unsigned Group, unsigned Scope);
    void addBlock(const llvm::BasicBlock &BB, unsigned Group);
    void nest(const llvm::DominatorTree &DT);
    PlaceEffort &placeOf(CountClass &C, const llvm::Instruction &I);
    PlaceEffort &place(CountClass &C, const llvm::DISubprogram *Function, unsigned Line);
    CountClass &ofRow(unsigned Row, unsigned Scope);

    const llvm::Function &F;
    const Scopes &Within;
    std::vector<Group> Groups;
    llvm::DenseMap<const llvm::BasicBlock *, unsigned> GroupOf;
    llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> Index; ///< of group and scope, of row and scope
    llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> RowIndex;
    std::vector<CountClass> All;
};

/// Writes the member "classes" of a line of facts: the classes of a scope, with `Shift` added to their row numbers.
void writeClasses(llvm::json::OStream &Json, llvm::ArrayRef<CountClass> Classes, unsigned Scope, unsigned Shift);

} // namespace quipu

#endif

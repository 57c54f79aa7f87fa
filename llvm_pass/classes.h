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
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <map>
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

/// Effort of one execution of a class at one source line. Inlined code counts at its line in the original function.
struct PlaceEffort {
    const llvm::DISubprogram *Function; ///< null: code without a location
    std::string Display;                ///< readable name of the function
    unsigned Line;
    Effort Code{};
};

/// A class consists of the blocks of one scope that are always executed equally often, by flow conservation: for
/// example a loop body, a loop header, or one side of a branch. Their number of executions is the sum over `Terms` of
/// share × value. The value of row 0 is the visits of the function, the value of row i + 1 is its counter i.
struct CountClass {
    unsigned Scope;                                  ///< index of the scope in the function (scopes.h)
    unsigned Depth = 0;                              ///< number of loops of the function around the class
    int Within = -1;                                 ///< index of the enclosing class of the same scope; -1: none
    std::vector<std::pair<unsigned, int64_t>> Terms; ///< row and share, by ascending row
    llvm::SetVector<const llvm::Function *> Calls;   ///< functions that the class calls by name
    std::vector<PlaceEffort> Places;
};

/// Groups the blocks of a function into classes. Reads the function before the pass inserts code.
class ClassTable {
  public:
    ClassTable(const llvm::Function &F, const Scopes &Within, const CountingPlan &Plan, const llvm::DominatorTree &DT,
               const llvm::LoopInfo &LI);

    /// Adds a transfer of variable length. Row: the row of its counter, which counts bytes. Weight: effort per byte.
    void addTransfer(unsigned Row, const llvm::Instruction &I, const Effort &Weight);
    /// Adds a class for the part of `Weight`, the effort of a row in a scope, that the classes of the scope do not
    /// contain, if there is such a part. Code may have moved between blocks since its work was read, for example when a
    /// landing pad was split that a loop shares with the code around it.
    void complete(unsigned Row, unsigned Scope, const Effort &Weight);
    /// Adds the classes of a callee that this function counts for.
    ///
    /// ScopeOf: index of the scope in this function, for each scope of the callee. Blocks: each execution of these
    /// blocks is a visit of the callee; row `VisitRow` counts additional visits. First: the row of its counter 0.
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
    llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> Index;    ///< index in All by group and scope
    llvm::DenseMap<std::pair<unsigned, unsigned>, unsigned> RowIndex; ///< index in All by row and scope
    std::vector<CountClass> All;
};

/// The functions of all places of a module, each with readable name, linker name and file. Places refer to them by
/// number.
class PlaceFunctions {
  public:
    unsigned numberOf(const PlaceEffort &Place);
    /// Returns the member "functions" of the first line of facts, as JSON.
    std::string member() const { return "\"functions\":[" + llvm::join(Written, ",") + "]"; }

  private:
    std::map<std::pair<const llvm::DISubprogram *, std::string>, unsigned> Number;
    std::vector<std::string> Written; ///< JSON
};

/// Writes the member "classes" of a line of facts: the classes of a scope. Row numbers are increased by `Shift`.
void writeClasses(llvm::json::OStream &Json, llvm::ArrayRef<CountClass> Classes, unsigned Scope, unsigned Shift,
                  PlaceFunctions &Functions);

} // namespace quipu

#endif

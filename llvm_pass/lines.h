/* SPDX-License-Identifier: Apache-2.0 */
//===- lines.h - the weights of a function by source line --------------------===//
#ifndef QUIPU_LINES_H
#define QUIPU_LINES_H

#include "scopes.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <utility>
#include <vector>

namespace llvm {
class DISubprogram;
class Function;
} // namespace llvm

namespace quipu {

/// What a source line adds to each row of a region's weights. Code that was inlined is at the line and in the function
/// that it came from.
struct LineEffort {
    unsigned Scope;                     ///< of the function (scopes.h)
    const llvm::DISubprogram *Function; ///< null: code without a location
    std::string Display;                ///< the function as its users know it
    unsigned Line;
    std::vector<std::pair<unsigned, Effort>> Rows; ///< row of the weights, share of this line in it
};

/// Splits rows of weights by line. Reads the function before anything is inserted.
class LineTable {
  public:
    using Share = std::pair<const llvm::BasicBlock *, int64_t>;

    LineTable(const llvm::Function &F, const Scopes &Within, llvm::ArrayRef<llvm::SmallVector<Share, 4>> Shares);
    void addTransfer(unsigned Row, const llvm::Instruction &I, const Effort &Weight);
    /// Gives what the lines of a scope lack of a row to a line of it: code that was moved between blocks meanwhile,
    /// such as the landing pads that loops share with their surroundings.
    void complete(unsigned Row, unsigned Scope, const Effort &Weight);
    std::vector<LineEffort> lines() const;

  private:
    using Line = std::pair<const llvm::DISubprogram *, unsigned>;
    using Place = std::pair<unsigned, Line>; ///< scope first

    Place placeOf(const llvm::Instruction &I) const;

    const llvm::Function &F;
    const Scopes &Within;
    llvm::MapVector<Place, llvm::MapVector<unsigned, Effort>> Table;
};

/// The member "lines" of a line of facts: those of a scope, with `Shift` added to the numbers of their rows.
void writeLines(llvm::json::OStream &Json, llvm::ArrayRef<LineEffort> Lines, unsigned Scope, unsigned Shift);

} // namespace quipu

#endif

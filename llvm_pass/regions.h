//===- regions.h - which functions are regions, and what is said about them -===//
#ifndef QUIPU_REGIONS_H
#define QUIPU_REGIONS_H

#include "effort.h"
#include "filter.h"
#include "lines.h"
#include "names.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/GlobalVariable.h"

#include <string>

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace quipu {

/// What a profile and a static report say about a function.
struct RegionFacts : Identity {
    size_t Blocks = 0;
    size_t Instructions = 0;
    llvm::SetVector<const llvm::Function *> Calls; ///< functions that it calls by name
    size_t IndirectCalls = 0;
    unsigned Counters = 0;         ///< of the region, if source lines are described
    std::vector<LineEffort> Lines; ///< empty unless they are asked for
    bool IsSmall = false;          ///< a hook would cost more than it is worth: no loop, no call, few instructions
};

/// Reads the facts before anything is inserted.
RegionFacts describe(const llvm::Function &F);

/// Whether code of this function may be counted at all.
bool isCountable(const llvm::Function &F);

/// Whether the function gets enter and exit: it is selected and worth it, or `All` are, or the filter names it.
bool isRegion(const RegionFacts &Facts, const Filter &Selection, bool All);

/// The struct quipu_region of quipu.h for `F`, with these rows of weights.
llvm::GlobalVariable *createDescriptor(llvm::Function &F, const RegionFacts &Facts, bool Quiet,
                                       llvm::ArrayRef<Effort> Weights);

/// One line of JSON about a function, for the section .quipu.facts.
std::string factsLine(const RegionFacts &Facts, bool Hook);

/// Puts lines into the section .quipu.facts of the object file; nothing of it is loaded when the program runs.
void emitFacts(llvm::Module &M, llvm::ArrayRef<std::string> Lines);

} // namespace quipu

#endif

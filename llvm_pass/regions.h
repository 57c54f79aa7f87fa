/* SPDX-License-Identifier: Apache-2.0 */
//===- regions.h - regions, their descriptors, and static facts -------------===//
#ifndef QUIPU_REGIONS_H
#define QUIPU_REGIONS_H

#include "carried.h"
#include "classes.h"
#include "effort.h"
#include "names.h"
#include "scopes.h"
#include "selection.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/GlobalVariable.h"

#include <string>

namespace llvm {
class Function;
class Module;
class TargetLibraryInfo;
} // namespace llvm

namespace quipu {

/// The facts about a function in profiles and static reports.
struct RegionFacts : Identity {
    size_t Blocks = 0;
    size_t Instructions = 0;
    llvm::SetVector<const llvm::Function *> Calls; ///< functions that it calls by name
    size_t IndirectCalls = 0;
    /// Element 0: number of counters of the function. Element of another scope: its last row that readers need, + 1.
    std::vector<unsigned> Counters;
    std::vector<CountClass> Classes;
    bool HasCallees = false; ///< it calls functions that may be separate call paths
    bool IsSmall = false;    ///< it does too little work for a hook, and calls no function that may be a call path
};

/// Returns whether this is the main function of a program.
bool isMain(const llvm::Function &F);

/// Returns the facts of a function before the pass inserts code. Callees: its calls of carried functions (carried.h).
RegionFacts describe(const llvm::Function &F, const Identity &Self, const llvm::TargetLibraryInfo &TLI,
                     const CarriedCalls &Callees);

/// Returns whether the function gets hooks (QUIPU_HOOKED), and otherwise how its counts are reported. All: small
/// functions get hooks, too.
quipu_hook hookOf(const RegionFacts &Facts, const Filter &Selection, bool All);

/// Names, weights and scopes of all functions of a module (struct quipu_details of quipu.h).
class Details {
  public:
    explicit Details(llvm::Module &M);
    /// Adds the entry of a function and returns its number.
    size_t add(llvm::StringRef Entry);
    /// Returns the global that will contain the details.
    llvm::Constant *place() const { return Place; }
    /// Writes the details into the global. No entry may be added afterwards.
    void emit();

  private:
    llvm::Module &M;
    llvm::GlobalVariable *Place;
    std::vector<uint32_t> Begins;
    std::string Entries;
};

/// An array of struct quipu_region of quipu.h: the function, and the scopes in it that have hooks.
struct Descriptors {
    llvm::GlobalVariable *Whole;
    std::vector<unsigned> PlaceOf; ///< index of the descriptor, by scope; 0 for scopes without hooks
};

/// Creates the descriptors of `F`. Weights: rows of weights of `F` (Counting::weights). Additions: additions that
/// counting executes, per unit of each row (Counting::additions).
Descriptors createDescriptors(llvm::Function &F, const RegionFacts &Self, quipu_hook Hook, const Scopes &Within,
                              llvm::ArrayRef<ScopedWork> Weights, llvm::ArrayRef<int64_t> Additions, Details &Into);

/// Adds lines of JSON for the section .quipu.facts: one for a function, and one for each scope with work in the
/// function. Places: gets the functions of the places.
void addFacts(std::vector<std::string> &Lines, const RegionFacts &Facts, bool Hook, const Scopes &Within,
              PlaceFunctions &Places);

} // namespace quipu

#endif

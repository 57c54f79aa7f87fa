/* SPDX-License-Identifier: Apache-2.0 */
//===- regions.h - which functions are regions, and what is said about them -===//
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

/// What a profile and a static report say about a function.
struct RegionFacts : Identity {
    size_t Blocks = 0;
    size_t Instructions = 0;
    llvm::SetVector<const llvm::Function *> Calls; ///< functions that it calls by name
    size_t IndirectCalls = 0;
    std::vector<unsigned> Counters; ///< of the region; of each scope the rows that it needs
    std::vector<CountClass> Classes;
    bool HasCallees = false; ///< what it calls may be call paths below it
    bool IsSmall = false;    ///< a hook would cost more than it is worth, and nothing is below it
};

/// Reads the facts before anything is inserted. Callees: what is called and counted here.
RegionFacts describe(const llvm::Function &F, const Identity &Self, const llvm::TargetLibraryInfo &TLI,
                     const CarriedCalls &Callees);

/// Whether the function gets enter and exit, and what becomes of its counts if not.
quipu_hook hookOf(const RegionFacts &Facts, const Filter &Selection, bool All);

/// Names, weights and scopes of all functions of a module (struct quipu_details of quipu.h).
class Details {
  public:
    explicit Details(llvm::Module &M);
    /// Returns the number of the entry.
    size_t add(llvm::StringRef Entry);
    /// Where they will be.
    llvm::Constant *place() const { return Place; }
    /// Puts them there. Nothing may be added afterwards.
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
    std::vector<unsigned> PlaceOf; ///< by scope
};

/// Creates the descriptors of `F`, with these rows of weights, and the additions that counting does for 1 in each of
/// them (Counting::additions).
Descriptors createDescriptors(llvm::Function &F, const RegionFacts &Self, quipu_hook Hook, const Scopes &Within,
                              llvm::ArrayRef<ScopedWork> Weights, llvm::ArrayRef<int64_t> Additions, Details &Into);

/// A line of JSON about a function, for the section .quipu.facts; and about each scope in it that does something.
void addFacts(std::vector<std::string> &Lines, const RegionFacts &Facts, bool Hook, const Scopes &Within);

} // namespace quipu

#endif

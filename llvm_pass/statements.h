/* SPDX-License-Identifier: Apache-2.0 */
//===- statements.h - the number of statements of a function -----------------===//
#ifndef QUIPU_STATEMENTS_H
#define QUIPU_STATEMENTS_H

namespace llvm {
class Function;
} // namespace llvm

namespace quipu {

/// Returns the number of statements of a function in code without optimization: the source lines with an instruction
/// whose result no other instruction uses (a store, a call, a conditional branch, a return). A loop is one statement,
/// as in PIRA II (Listing 1). Without debug information, returns the number of such instructions.
unsigned countStatements(const llvm::Function &F);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- statements.h - how much a function says -------------------------------===//
#ifndef QUIPU_STATEMENTS_H
#define QUIPU_STATEMENTS_H

namespace llvm {
class Function;
} // namespace llvm

namespace quipu {

/// Number of statements of a function, as far as code that has not been optimized shows them: the source lines on
/// which something happens that no other instruction uses (memory is written, a call is made for itself, control
/// branches on a condition, a value is returned). A loop is one of them, as in PIRA II (Listing 1). Without debug
/// information, the number of such instructions.
unsigned countStatements(const llvm::Function &F);

} // namespace quipu

#endif

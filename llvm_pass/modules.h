/* SPDX-License-Identifier: Apache-2.0 */
//===- modules.h - which runtime a file was made for --------------------------===//
#ifndef QUIPU_MODULES_H
#define QUIPU_MODULES_H

namespace llvm {
class Module;
} // namespace llvm

namespace quipu {

/// Adds a constructor that calls quipu_check(); of many modules with the same interface, a linked file keeps one.
void emitCheck(llvm::Module &M);

} // namespace quipu

#endif

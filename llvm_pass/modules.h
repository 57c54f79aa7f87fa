/* SPDX-License-Identifier: Apache-2.0 */
//===- modules.h - check of the runtime's version at the start ----------------===//
#ifndef QUIPU_MODULES_H
#define QUIPU_MODULES_H

namespace llvm {
class GlobalVariable;
class Module;
} // namespace llvm

namespace quipu {

/// Adds a constructor that calls quipu_check(). If several modules have the same interface, the linker keeps one
/// constructor. Program: argument of quipu_know_program(), or null.
void emitCheck(llvm::Module &M, llvm::GlobalVariable *Program);

} // namespace quipu

#endif

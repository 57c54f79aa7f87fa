/* SPDX-License-Identifier: Apache-2.0 */
//===- modules.h - which runtime a file was made for --------------------------===//
#ifndef QUIPU_MODULES_H
#define QUIPU_MODULES_H

namespace llvm {
class GlobalVariable;
class Module;
} // namespace llvm

namespace quipu {

/// Adds a constructor that calls quipu_check(); of many modules with the same interface, a linked file keeps one.
/// Program: what is to be told to quipu_know_program(), or null.
void emitCheck(llvm::Module &M, llvm::GlobalVariable *Program);

} // namespace quipu

#endif

/* SPDX-License-Identifier: Apache-2.0 */
//===- modules.h - check of the runtime's version at the start ----------------===//
#ifndef QUIPU_MODULES_H
#define QUIPU_MODULES_H

namespace llvm {
class GlobalVariable;
class Module;
} // namespace llvm

namespace quipu {

/// Adds a constructor that calls quipu_check(). The linker keeps one constructor for all modules with the same
/// interface to the runtime (interface.h). If Program is not null, adds a constructor that calls
/// quipu_know_program(Program).
void emitCheck(llvm::Module &M, llvm::GlobalVariable *Program);

} // namespace quipu

#endif

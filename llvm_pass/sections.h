/* SPDX-License-Identifier: Apache-2.0 */
//===- sections.h - text in sections that are not loaded ---------------------===//
#ifndef QUIPU_SECTIONS_H
#define QUIPU_SECTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace quipu {

/// Stores lines for emitKept() in the metadata of the module.
void keepLines(llvm::Module &M, llvm::ArrayRef<std::string> Lines);

/// Writes all stored lines into the section .quipu.facts of the object file, which is not loaded at run time.
///
/// The lines form one block, because facts and call graph contain the same names and compress better together. The
/// block begins with "QPS1" (zstd), "QPZ1" (zlib) or "QPR1" (not compressed), depending on this LLVM, and the
/// compressed and original sizes (32 bits each, little-endian). The linker concatenates the blocks of all object files.
void emitKept(llvm::Module &M);

} // namespace quipu

#endif

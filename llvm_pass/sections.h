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

/// Keeps lines for emitKept(), in the metadata of the module.
void keepLines(llvm::Module &M, llvm::ArrayRef<std::string> Lines);

/// Puts all lines that were kept into the section .quipu.facts of the object file, which is not loaded when the program
/// runs. They are one block, because the facts and the call graph have the same names. It is compressed if this LLVM
/// can: "QPS1" (zstd), "QPZ1" (zlib) or "QPR1" (as it is), the size of what follows and of the text, 32 bits each,
/// little-endian. The linker puts the blocks of all object files in a row.
void emitKept(llvm::Module &M);

} // namespace quipu

#endif

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

/// Puts lines into a section of the object file; nothing of it is loaded when the program runs. They are one block that
/// is compressed if this LLVM can: "QPS1" (zstd), "QPZ1" (zlib) or "QPR1" (as it is), the size of what follows and of
/// the text, 32 bits each, little-endian. The linker puts the blocks of all object files in a row.
void emitPacked(llvm::Module &M, llvm::StringRef Section, llvm::ArrayRef<std::string> Lines);

} // namespace quipu

#endif

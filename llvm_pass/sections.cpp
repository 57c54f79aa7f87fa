// SPDX-License-Identifier: Apache-2.0
#include "sections.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace quipu {

namespace {

/// Compression level of zstd, which takes one percent of the time of the compiler. Higher levels take twice as long for
/// 1 % less size. Level 12 takes a third of the time and is 5 % larger.
constexpr int Level = 16;

constexpr const char *Kept = "quipu.facts";

std::string escaped(StringRef Bytes) {
    std::string Text;
    for (char C : Bytes) {
        if (C == '"' || C == '\\')
            Text += '\\';
        if (isPrint(C))
            Text += C;
        else
            Text += formatv("\\{0}{1}{2}", (C >> 6) & 3, (C >> 3) & 7, C & 7).str();
    }
    return Text;
}

/// Writes a section as assembly. Assembly is the only way to a section without the flag "allocate", because globals are
/// always loaded.
void emit(Module &M, StringRef Section, const std::string &Directives) {
    M.appendModuleInlineAsm((".pushsection " + Section + ",\"\",@progbits\n" + Directives + ".popsection\n").str());
}

} // namespace

void keepLines(Module &M, ArrayRef<std::string> Lines) {
    LLVMContext &Context = M.getContext();
    M.getOrInsertNamedMetadata(Kept)->addOperand(
        MDNode::get(Context, MDString::get(Context, join(Lines, "\n") + "\n")));
}

void emitKept(Module &M) {
    NamedMDNode *Found = M.getNamedMetadata(Kept);
    if (!Found)
        return;
    std::string Text;
    for (const MDNode *Lines : Found->operands())
        Text += cast<MDString>(Lines->getOperand(0))->getString();
    Found->eraseFromParent();
    SmallVector<uint8_t, 0> Packed(Text.begin(), Text.end());
    const char *Kind = "QPR1";
    if (compression::zstd::isAvailable()) {
        Kind = "QPS1";
        compression::zstd::compress(arrayRefFromStringRef(Text), Packed, Level);
    } else if (compression::zlib::isAvailable()) {
        Kind = "QPZ1";
        compression::zlib::compress(arrayRefFromStringRef(Text), Packed);
    }
    std::string Directives = formatv(".ascii \"{0}\"\n.4byte ", Kind);
    Directives += std::to_string(Packed.size()) + ", " + std::to_string(Text.size()) + "\n";
    // The lines have a limited length, because error messages of the assembler quote them.
    for (StringRef Rest = toStringRef(Packed); !Rest.empty();
         Rest = Rest.drop_front(std::min<size_t>(4096, Rest.size())))
        Directives += ".ascii \"" + escaped(Rest.take_front(4096)) + "\"\n";
    emit(M, ".quipu.facts", Directives);
}

} // namespace quipu

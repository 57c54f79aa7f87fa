// SPDX-License-Identifier: Apache-2.0
#include "lines.h"

#include "names.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instruction.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace quipu {

LineTable::Place LineTable::placeOf(const Instruction &I) const {
    const unsigned Scope = Within.scopeOf(I);
    if (const DILocation *Location = I.getDebugLoc().get(); Location && Location->getLine())
        return {Scope, {Location->getScope()->getSubprogram(), Location->getLine()}};
    const DISubprogram *Own = F.getSubprogram();
    return {Scope, {Own, Own ? Own->getLine() : 0}};
}

LineTable::LineTable(const Function &F, const Scopes &Within, ArrayRef<SmallVector<Share, 4>> Shares)
    : F(F), Within(Within) {
    // What one execution of each block adds to its lines; the block itself is counted at the first line of its scope.
    DenseMap<const BasicBlock *, MapVector<Place, Effort>> Blocks;
    for (const BasicBlock &BB : F) {
        MapVector<Place, Effort> &Lines = Blocks[&BB];
        if (Within.vanishes(BB))
            continue;
        bool Counted = false;
        for (const Instruction &I : BB) {
            Effort E = Within.effortOf(I);
            if (E == Effort{})
                continue;
            if (!Counted && Within.scopeOf(I) == Within.scopeOf(BB)) {
                Counted = true;
                E[QUIPU_COLUMN_BLOCKS] = 1;
            }
            quipu::accumulate(Lines[placeOf(I)], E, 1);
        }
        if (!Counted)
            Lines[placeOf(*BB.getTerminator())][QUIPU_COLUMN_BLOCKS] = 1;
    }
    for (size_t Row = 0; Row < Shares.size(); Row++)
        for (const Share &S : Shares[Row])
            for (const auto &Line : Blocks[S.first])
                quipu::accumulate(Table[Line.first][static_cast<unsigned>(Row)], Line.second, S.second);
}

void LineTable::addTransfer(unsigned Row, const Instruction &I, const Effort &Weight) {
    // Lines that share the counter cannot be separated: it goes to the first.
    for (const auto &Entry : Table)
        if (Entry.second.count(Row))
            return;
    Table[placeOf(I)].insert({Row, Weight});
}

void LineTable::complete(unsigned Row, unsigned Scope, const Effort &Weight) {
    const DISubprogram *Own = Scope == 0 ? F.getSubprogram() : nullptr;
    Effort Missing = Weight;
    for (const auto &[At, Rows] : Table) {
        if (At.first != Scope)
            continue;
        if (!Own)
            Own = At.second.first;
        if (auto Found = Rows.find(Row); Found != Rows.end())
            quipu::accumulate(Missing, Found->second, -1);
    }
    if (Missing != Effort{})
        quipu::accumulate(Table[{Scope, {Own, Own ? Own->getLine() : 0}}][Row], Missing, 1);
}

std::vector<LineEffort> LineTable::lines() const {
    std::vector<LineEffort> Lines;
    for (const auto &Line : Table) {
        const DISubprogram *From = Line.first.second.first;
        LineEffort Found{Line.first.first, From, "", Line.first.second.second, {}};
        if (From)
            Found.Display = From == F.getSubprogram() ? displayName(F) : displayName(*From);
        for (const auto &Row : Line.second)
            if (Row.second != Effort{})
                Found.Rows.push_back({Row.first, Row.second});
        if (!Found.Rows.empty())
            Lines.push_back(std::move(Found));
    }
    return Lines;
}

void writeLines(json::OStream &Json, ArrayRef<LineEffort> Lines, unsigned Scope, unsigned Shift) {
    Json.attributeArray("lines", [&] {
        for (const LineEffort &Line : Lines) {
            if (Line.Scope != Scope)
                continue;
            Json.object([&] {
                SmallString<256> Path;
                StringRef Name;
                if (Line.Function) {
                    Path = Line.Function->getFilename();
                    if (!sys::path::is_absolute(Path)) {
                        Path = Line.Function->getDirectory();
                        sys::path::append(Path, Line.Function->getFilename());
                    }
                    sys::path::remove_dots(Path, true);
                    Name = linkerName(*Line.Function);
                }
                Json.attribute("function", json::fixUTF8(Line.Display));
                Json.attribute("name", json::fixUTF8(Name));
                Json.attribute("file", json::fixUTF8(Path));
                Json.attribute("line", Line.Line);
                Json.attributeArray("effort", [&] {
                    for (const auto &Row : Line.Rows) {
                        Json.array([&] {
                            Json.value(Row.first + Shift);
                            for (int64_t Number : Row.second)
                                Json.value(Number);
                        });
                    }
                });
            });
        }
    });
}

} // namespace quipu

#include "lines.h"

#include "names.h"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instruction.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace quipu {

LineTable::Place LineTable::placeOf(const Instruction &I) const {
    if (const DILocation *Location = I.getDebugLoc().get(); Location && Location->getLine())
        return {Location->getScope()->getSubprogram(), Location->getLine()};
    const DISubprogram *Own = F.getSubprogram();
    return {Own, Own ? Own->getLine() : 0};
}

LineTable::LineTable(const Function &F, ArrayRef<SmallVector<Share, 4>> Shares) : F(F) {
    // What one execution of each block adds to its lines; the block itself is counted at its first line.
    DenseMap<const BasicBlock *, MapVector<Place, Effort>> Blocks;
    for (const BasicBlock &BB : F) {
        MapVector<Place, Effort> &Lines = Blocks[&BB];
        bool Counted = false;
        for (const Instruction &I : BB) {
            Effort E{};
            addEffort(E, I);
            if (E == Effort{})
                continue;
            E[0] = !std::exchange(Counted, true);
            accumulate(Lines[placeOf(I)], E, 1);
        }
        if (!Counted)
            Lines[placeOf(*BB.getTerminator())][0] = 1;
    }
    for (size_t Row = 0; Row < Shares.size(); Row++)
        for (const Share &S : Shares[Row])
            for (const auto &Line : Blocks[S.first])
                accumulate(Table[Line.first][static_cast<unsigned>(Row)], Line.second, S.second);
}

void LineTable::addTransfer(unsigned Row, const Instruction &I, const Effort &Weight) {
    // Lines that share the counter cannot be separated: it goes to the first.
    for (const auto &Line : Table)
        if (Line.second.count(Row))
            return;
    Table[placeOf(I)].insert({Row, Weight});
}

void LineTable::complete(unsigned Row, const Effort &Weight) {
    Effort Missing = Weight;
    for (const auto &Line : Table)
        if (auto Found = Line.second.find(Row); Found != Line.second.end())
            accumulate(Missing, Found->second, -1);
    if (Missing == Effort{})
        return;
    const DISubprogram *Own = F.getSubprogram();
    accumulate(Table[{Own, Own ? Own->getLine() : 0}][Row], Missing, 1);
}

std::vector<LineEffort> LineTable::lines() const {
    std::vector<LineEffort> Lines;
    for (const auto &Line : Table) {
        const DISubprogram *From = Line.first.first;
        LineEffort Found{From, "", Line.first.second, {}};
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

void writeLines(json::OStream &Json, ArrayRef<LineEffort> Lines) {
    Json.attributeArray("lines", [&] {
        for (const LineEffort &Line : Lines) {
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
                            Json.value(Row.first);
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

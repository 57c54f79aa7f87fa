// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <cxxabi.h>
#include <utility>

using namespace llvm;

namespace quipu {
namespace {

/// Flang writes _QPname, _QMmodulePname, _QFhostPname; _QQmain is the main program, and a host without a name.
std::string fortranName(StringRef Name) {
    if (Name == "_QQmain")
        return "main program";
    if (!Name.starts_with("_Q"))
        return "";
    std::string Scope, Procedure;
    StringRef Rest = Name.drop_front(2);
    while (!Rest.empty()) {
        char Kind = Rest.front();
        // Names are lower case; an upper-case letter starts the next part.
        StringRef Part = Rest.drop_front().take_until([](char C) { return C >= 'A' && C <= 'Z'; });
        if (Kind == 'M' || Kind == 'S' || Kind == 'F')
            Scope += (Part.empty() ? "main program" : Part.str()) + "::";
        else if (Kind == 'P')
            Procedure = Part.str();
        else
            return "";
        Rest = Rest.drop_front(1 + Part.size());
    }
    return Procedure.empty() ? "" : Scope + Procedure;
}

/// SMPI's headers have macros for functions of the C library, which rename methods of the program like free(x), too.
std::string withoutRenaming(std::string Shown) {
    static constexpr std::pair<StringRef, StringRef> Renamed[] = {
#define QUIPU_SMPI_RENAMED(Macro, Length, Own) {#Macro, #Own},
#include "smpi_names.def"
    };
    const auto IsPart = [&](size_t At) { return At < Shown.size() && (isAlnum(Shown[At]) || Shown[At] == '_'); };
    for (const auto &[Other, Own] : Renamed)
        for (size_t At = 0; (At = Shown.find(Other, At)) != std::string::npos; At++)
            if (!IsPart(At - 1) && !IsPart(At + Other.size()))
                Shown.replace(At, Other.size(), Own);
    return Shown;
}

/// What LLVM's demangler does not know (generic lambdas in functions, operator->*) the one of the C++ library may.
std::string demangled(StringRef Name) {
    const std::string Mangled = Name.str();
    std::string Known = demangle(Mangled);
    if (Known != Mangled || !Name.starts_with("_Z"))
        return Known;
    int Status = 0;
    char *Other = abi::__cxa_demangle(Mangled.c_str(), nullptr, nullptr, &Status);
    if (Other && Status == 0)
        Known = Other;
    std::free(Other);
    return Known;
}

std::string plainName(StringRef Name, bool Fortran) {
    if (!Fortran)
        return Name.starts_with("_Z") ? withoutRenaming(demangled(Name)) : demangled(Name);
    if (std::string Known = fortranName(Name); !Known.empty())
        return Known;
    // Procedures outside of modules have an underscore at the end, those with BIND(C) have not.
    return Name.drop_back(Name.ends_with("_")).str();
}

constexpr StringLiteral KernelMark = ".omp_target.";

/// clang and flang name the kernel of a target construct __omp_offloading_DEVICE_INODE_function_lLINE, by numbers of
/// the file, which a copy of the source has not. Kernels have the name of the function, the mark and the line instead.
std::string nameOfKernel(StringRef Name) {
    StringRef Rest = Name;
    if (!Rest.consume_front("__omp_offloading_"))
        return Name.str();
    Rest = Rest.split('_').second.split('_').second;
    StringRef Kernel = Rest.take_until([](char C) { return C == '.'; });
    const StringRef Inner = Rest.drop_front(Kernel.size());
    Kernel.consume_back("_debug__");
    const auto [Host, Line] = Kernel.rsplit("_l");
    unsigned Number = 0;
    if (Host.empty() || Line.getAsInteger(10, Number))
        return Name.str();
    return (Host + KernelMark + Line + Inner).str();
}

std::string shownName(StringRef Name, unsigned FirstLine, bool Fortran) {
    // What a coroutine does, from one suspension to the next, is a function that LLVM makes of its body.
    Name.consume_back(".resume");
    const std::string Line = FirstLine ? " line " + std::to_string(FirstLine) : "";
    if (auto [Host, Rest] = Name.split(".omp_task_entry."); Host.size() != Name.size())
        return Host.empty() ? "omp task" + Line : plainName(Host, Fortran) + " (omp task" + Line + ")";
    if (auto [Host, Rest] = Name.split(KernelMark); Host.size() != Name.size() && !Rest.contains('.'))
        return plainName(Host, Fortran) + " (omp target line " + Rest.str() + ")";
    for (StringRef Mark : {".omp_outlined", "..omp_par"}) {
        auto [Host, Rest] = Name.split(Mark);
        if (Host.size() == Name.size())
            continue;
        Host = Host.split(KernelMark).first;
        if (Rest.contains(".reduction."))
            return plainName(Host, Fortran) + " (omp reduction)";
        return plainName(Host, Fortran) + " (omp" + (Line.empty() ? Rest.str() : Line) + ")";
    }
    return plainName(Name, Fortran);
}

} // namespace

bool isFortran(const Module &M) {
    for (const DICompileUnit *Unit : M.debug_compile_units())
        return dwarf::isFortran(static_cast<dwarf::SourceLanguage>(Unit->getSourceLanguage()));
    return any_of(M, [](const Function &F) { return F.getName().starts_with("_FortranA"); });
}

unsigned firstLine(const Function &F) {
    const DISubprogram *Debug = F.getSubprogram();
    if (!Debug || Debug->getLine())
        return Debug ? Debug->getLine() : 0;
    // What flang makes of an OpenMP construct has none; the call that hands it to the OpenMP library is there.
    for (const User *U : F.users())
        if (const auto *Call = dyn_cast<CallBase>(U); Call && Call->getDebugLoc() && Call->getDebugLoc().getLine())
            return Call->getDebugLoc().getLine();
    return 0;
}

StringRef linkerName(const Function &F) {
    const StringRef Name = F.getName(); // a version (versions.h)
    return Name.take_front(Name.find(".quipu"));
}

/// The linker name; that of an OpenMP task with that of the function that creates it, as bodies of other constructs
/// have it.
static std::string nameOfConstruct(const Function &F, unsigned Depth = 0) {
    const StringRef Name = linkerName(F);
    if (!Name.starts_with(".omp_task_entry.") || Depth > 8)
        return nameOfKernel(Name);
    for (const User *U : F.users()) {
        const auto *Call = dyn_cast<CallBase>(U);
        if (!Call)
            continue;
        const std::string Creator = nameOfConstruct(*Call->getFunction(), Depth + 1);
        const StringRef Host = StringRef(Creator).split(".omp_").first.split("..omp_par").first;
        if (!Host.empty())
            return (Host + Name).str();
    }
    return Name.str();
}

std::string displayName(const Function &F) {
    return shownName(nameOfConstruct(F), firstLine(F), isFortran(*F.getParent()));
}

std::string displayName(const DISubprogram &F) {
    const DICompileUnit *Unit = F.getUnit();
    const bool Fortran = Unit && dwarf::isFortran(static_cast<dwarf::SourceLanguage>(Unit->getSourceLanguage()));
    return shownName(linkerName(F), F.getLine(), Fortran);
}

Identity identify(const Function &F) {
    Identity Known{nameOfConstruct(F), displayName(F), F.getParent()->getSourceFileName(), 0,
                   std::nullopt,       Owner::Program};
    if (const DISubprogram *Debug = F.getSubprogram()) {
        Known.Line = firstLine(F);
        SmallString<256> Path(Debug->getFilename());
        if (!sys::path::is_absolute(Path)) {
            Path = Debug->getDirectory();
            sys::path::append(Path, Debug->getFilename());
        }
        sys::path::remove_dots(Path, true);
        Known.File = std::string(Path);
    }
    return Known;
}

StringRef linkerName(const DISubprogram &F) { return F.getLinkageName().empty() ? F.getName() : F.getLinkageName(); }

} // namespace quipu

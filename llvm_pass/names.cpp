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

/// Returns the readable name of a flang symbol: _QPname, _QMmodulePname or _QFhostPname. _QQmain is the main program. A
/// host without a name (_QFP...) is also the main program.
std::string fortranName(StringRef Name) {
    if (Name == "_QQmain")
        return "main program";
    if (!Name.starts_with("_Q"))
        return "";
    std::string Scope, Procedure;
    StringRef Rest = Name.drop_front(2);
    while (!Rest.empty()) {
        char Kind = Rest.front();
        // Names are in lower case, so an upper-case letter starts the next part.
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

/// Undoes a renaming: SMPI's headers have macros for functions of the C library, which also rename methods of the
/// program such as free(x).
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

/// Demangles a name with the C++ library. Returns the name if this fails.
std::string demangledByLibrary(const std::string &Mangled) {
    int Status = 0;
    char *Other = abi::__cxa_demangle(Mangled.c_str(), nullptr, nullptr, &Status);
    std::string Known = Other && Status == 0 ? Other : Mangled;
    std::free(Other);
    return Known;
}

/// Demangles a name. The demangler of the C++ library handles names that LLVM's demangler does not know (generic
/// lambdas in functions, operator->*).
std::string demangled(StringRef Name) {
    const std::string Mangled = Name.str();
    std::string Known = demangle(Mangled);
    return Known != Mangled || !Name.starts_with("_Z") ? Known : demangledByLibrary(Mangled);
}

std::string plainName(StringRef Name, bool Fortran) {
    if (!Fortran)
        return Name.starts_with("_Z") ? withoutRenaming(demangled(Name)) : demangled(Name);
    if (std::string Known = fortranName(Name); !Known.empty())
        return Known;
    // Procedures outside of modules end with an underscore; procedures with BIND(C) do not.
    return Name.drop_back(Name.ends_with("_")).str();
}

constexpr StringLiteral KernelMark = ".omp_target.";

/// Returns the name of the kernel of a target construct: the name of the function, the mark and the line. clang and
/// flang use __omp_offloading_DEVICE_INODE_function_lLINE, which differs between copies of a source file.
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
    // LLVM splits a coroutine; the function with this suffix continues the coroutine after a suspension.
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

std::string readableName(StringRef Name) {
    if (!Name.starts_with("_Z"))
        return Name.str();
    std::string Known = demangledByLibrary(Name.str());
    // The C++ library writes "> >". LLVM's demangler writes no space, because C++11 needs none there.
    for (size_t At = 0; (At = Known.find("> >", At)) != std::string::npos;)
        Known.erase(At + 1, 1);
    return Known;
}

bool isFortran(const Module &M) {
    for (const DICompileUnit *Unit : M.debug_compile_units())
        return dwarf::isFortran(static_cast<dwarf::SourceLanguage>(Unit->getSourceLanguage()));
    return any_of(M, [](const Function &F) { return F.getName().starts_with("_FortranA"); });
}

unsigned firstLine(const Function &F) {
    const DISubprogram *Debug = F.getSubprogram();
    if (!Debug || Debug->getLine())
        return Debug ? Debug->getLine() : 0;
    // The function that flang generates for an OpenMP construct has no location. The call that passes it to the OpenMP
    // library has one.
    for (const User *U : F.users())
        if (const auto *Call = dyn_cast<CallBase>(U); Call && Call->getDebugLoc() && Call->getDebugLoc().getLine())
            return Call->getDebugLoc().getLine();
    return 0;
}

StringRef linkerName(const Function &F) {
    const StringRef Name = F.getName(); // may have the suffix of a version (versions.h)
    return Name.take_front(Name.find(".quipu"));
}

/// Returns the linker name. The name of an OpenMP task also contains the name of the function that creates it, as the
/// names of other constructs do.
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

// SPDX-License-Identifier: Apache-2.0
#include "selection.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"

#include <array>
#include <cstdlib>

using namespace llvm;

namespace quipu {

/// The attribute of functions with hooks and counters. It stays in bitcode that is compiled again.
static constexpr const char *Counted = "quipu-counted";

void markCounted(Function &F) { F.addFnAttr(Counted); }

bool isCounted(const Function &F) { return F.hasFnAttribute(Counted); }

/// Returns whether a function belongs to the headers quipu/region.h, quipu/region.f90 or NVTX, which mark regions.
static bool marksRegions(StringRef Name) {
    return any_of(std::array{"_QMquipu_regionP", "_ZN5quipu6Region", "_ZN5quipu5Phase", "_ZN5quipu9kept_name", "nvtx"},
                  [&](const char *Prefix) { return Name.starts_with(Prefix); });
}

bool isCountable(const Function &F) {
    if (isCounted(F) || marksRegions(F.getName()))
        return false;
    // Functions with available_externally linkage are copies for inlining. Calls that are not inlined call the function
    // of a library.
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || F.hasFnAttribute(Attribute::Naked))
        return false;
    // A resolver of an ifunc runs during relocation and cannot call other libraries yet.
    for (const GlobalIFunc &IFunc : F.getParent()->ifuncs())
        if (IFunc.getResolverFunction() == &F)
            return false;
    return !F.getName().starts_with("quipu_") && !F.getName().starts_with("__clang_call_terminate");
}

bool keepCountedApart(Module &M) {
    const bool Any = any_of(M, isCounted);
    if (!Any || none_of(M, isCountable))
        return Any;
    for (Function &F : M) {
        if (!isCounted(F))
            continue;
        F.removeFnAttr(Attribute::AlwaysInline);
        F.addFnAttr(Attribute::NoInline);
        for (Instruction &I : instructions(F)) {
            auto *Call = dyn_cast<CallBase>(&I);
            if (Call && !isa<IntrinsicInst>(Call) &&
                (!Call->getCalledFunction() || isCountable(*Call->getCalledFunction())))
                Call->addFnAttr(Attribute::NoInline);
        }
    }
    return true;
}

std::string readSelection(Filter &Selection) {
    std::optional<std::string> Path = sys::Process::GetEnv("QUIPU_FILTER");
    FilterError Error;
    if (!Path || Path->empty() || read_filter(Path->c_str(), Selection, Error))
        return "";
    std::string Where = Error.line ? *Path + ":" + std::to_string(Error.line) : *Path;
    return Where + ": " + Error.message + " (from QUIPU_FILTER) [bad-filter]";
}

/// Returns whether all of these nested names are namespaces of the C++ library.
static bool areStdNamespaces(StringRef Scope) {
    SmallVector<StringRef, 4> Parts;
    Scope.split(Parts, "::");
    return Parts.front() == "std" && all_of(drop_begin(Parts), [](StringRef Part) {
               return (Part.starts_with("__") && !Part.contains('<')) || Part == "ranges" || Part == "filesystem" ||
                      Part == "chrono" || Part == "pmr" || Part == "parallel" || Part == "execution";
           });
}

static std::string taken(char *Text) {
    std::string Copy = Text ? Text : "";
    std::free(Text);
    return Copy;
}

/// Returns the enclosing names of a function, and its name without arguments; empty if it is not a C++ function.
static std::pair<std::string, std::string> scopeAndBase(const Identity &Function) {
    ItaniumPartialDemangler Demangler;
    if (Demangler.partialDemangle(Function.Name.c_str()) || !Demangler.isFunction())
        return {};
    return {taken(Demangler.getFunctionDeclContextName(nullptr, nullptr)),
            taken(Demangler.getFunctionBaseName(nullptr, nullptr))};
}

bool isLibrary(const Identity &Function) {
    if (Function.Display.find("std::") == std::string::npos &&
        Function.Display.find("__gnu_cxx::") == std::string::npos)
        return false;
    // A member of a class in a function. The demangled name begins with the result type of that function, so the linker
    // name decides.
    if (StringRef Around = Function.Name; Around.consume_front("_ZZ"))
        return any_of(std::array{"NSt", "NKSt", "St", "NSs", "NKSs", "N9__gnu_cxx", "NK9__gnu_cxx"},
                      [&](const char *Prefix) { return Around.ltrim('Z').starts_with(Prefix); });
    const std::string Scope = scopeAndBase(Function).first;
    const StringRef Root = StringRef(Scope).split("::").first;
    return Root == "std" || Root == "__gnu_cxx";
}

/// Returns whether a function destroys, copies or moves a whole object. Compilers add such functions to a program.
static bool keepsObjects(const Identity &Function) {
    ItaniumPartialDemangler Demangler;
    if (Demangler.partialDemangle(Function.Name.c_str()) || !Demangler.isFunction())
        return false;
    const std::string Base = taken(Demangler.getFunctionBaseName(nullptr, nullptr));
    if (!Demangler.isCtorOrDtor() && Base != "operator=")
        return false;
    const std::string Class = taken(Demangler.getFunctionDeclContextName(nullptr, nullptr));
    const std::string Given = taken(Demangler.getFunctionParameters(nullptr, nullptr));
    return StringRef(Base).starts_with("~") || Given == "(" + Class + " const&)" || Given == "(" + Class + "&&)";
}

/// Returns whether a function is an internal part of a library, which users of the library do not know.
static bool isInsideOfLibrary(const Identity &Function) {
    const bool MuchWork = Function.MuchWork.value_or(false);
    if (isLibrary(Function)) {
        const auto [Scope, Base] = scopeAndBase(Function);
        return !areStdNamespaces(Scope) || StringRef(Base).starts_with("_") || !MuchWork;
    }
    return Function.By != Owner::Program && (!MuchWork || keepsObjects(Function));
}

static bool isLibraryInternal(const Identity &Function, const Filter &Selection) {
    return isInsideOfLibrary(Function) && !sys::Process::GetEnv("QUIPU_ALL") &&
           !Selection.asks_for(Function.Name.c_str(), Function.Display.c_str());
}

/// Whether a function is not in the source and a compiler generated it. clang generates functions around the bodies of
/// OpenMP constructs and coroutines, thunks of virtual functions, conversions of lambdas to pointers, and functions
/// that initialize static objects, access thread-local objects or count coverage. flang generates reductions and
/// powers.
static bool isMadeByCompiler(StringRef Name) {
    return any_of(std::array{".omp_task_privates_map.", ".red_", "_FortranA", "__mlir_", "_ZTh", "_ZTv", "_ZTc", "_ZTW",
                             "_ZTH", "_GLOBAL__", "__cxx_global_", "__tls_init", "__llvm_gcov_", "__llvm_profile_"},
                  [&](const char *Prefix) { return Name.starts_with(Prefix); }) ||
           any_of(std::array{".omp_outlined_debug__", "__await_suspend_wrapper__", "8__invokeE"},
                  [&](const char *Part) { return Name.contains(Part); }) ||
           any_of(std::array{".destroy", ".cleanup"}, [&](const char *End) { return Name.ends_with(End); });
}

bool isLeftOut(const Identity &Function, const Filter &Selection) {
    return isMadeByCompiler(Function.Name) || marksRegions(Function.Name) || isLibraryInternal(Function, Selection) ||
           !Selection.includes(Function.File.c_str(), Function.Name.c_str(), Function.Display.c_str());
}

bool isShown(const Identity &Function, const Filter &Selection) {
    const StringRef Name = Function.Name;
    return !Name.starts_with(".omp_") && !Name.contains(".omp_task_entry.") && !isLeftOut(Function, Selection);
}

} // namespace quipu

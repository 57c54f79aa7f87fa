#include "selection.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Process.h"

using namespace llvm;

namespace quipu {

bool isCountable(const Function &F) {
    // Copies of library functions that are there for inlining alone are calls of the library without optimization.
    if (F.isDeclaration() || F.hasAvailableExternallyLinkage() || F.hasFnAttribute(Attribute::Naked) ||
        F.isPresplitCoroutine())
        return false;
    // Code that runs before the runtime is ready, or inside of it.
    if (F.getSection().contains("text.startup") && F.getName() != "main")
        return false;
    // A resolver runs while the program is being relocated: it cannot call other libraries yet.
    for (const GlobalIFunc &IFunc : F.getParent()->ifuncs())
        if (IFunc.getResolverFunction() == &F)
            return false;
    return !F.getName().starts_with("quipu_") && !F.getName().starts_with("__clang_call_terminate");
}

std::string readSelection(Filter &Selection) {
    std::optional<std::string> Path = sys::Process::GetEnv("QUIPU_FILTER");
    FilterError Error;
    if (!Path || Path->empty() || read_filter(Path->c_str(), Selection, Error))
        return "";
    std::string Where = Error.line ? *Path + ":" + std::to_string(Error.line) : *Path;
    return Where + ": " + Error.message + " (from QUIPU_FILTER)";
}

bool isShown(const Identity &Function, const Filter &Selection) {
    // What clang makes of an OpenMP construct in several functions is one.
    const StringRef Name = Function.Name;
    return !Name.starts_with(".omp_") && !Name.contains(".omp_outlined_debug__") &&
           Selection.includes(Function.File.c_str(), Function.Name.c_str(), Function.Display.c_str());
}

} // namespace quipu

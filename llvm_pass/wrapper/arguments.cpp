// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include "response.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace quipu {
namespace {

using namespace std::literals;

bool startsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool endsWith(std::string_view text, std::string_view suffix) {
    return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

template <size_t N> bool isOneOf(std::string_view text, const std::array<std::string_view, N> &words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

/// Options whose value is the next argument.
constexpr std::array takesValue = {
    "-o"sv,
    "-x"sv,
    "-I"sv,
    "-L"sv,
    "-l"sv,
    "-D"sv,
    "-U"sv,
    "-T"sv,
    "-u"sv,
    "-z"sv,
    "-e"sv,
    "-h"sv,
    "-J"sv,
    "-B"sv,
    "-F"sv,
    "-MF"sv,
    "-MT"sv,
    "-MQ"sv,
    "-include"sv,
    "-imacros"sv,
    "-isystem"sv,
    "-iquote"sv,
    "-idirafter"sv,
    "-iprefix"sv,
    "-iwithprefix"sv,
    "-iwithprefixbefore"sv,
    "-isysroot"sv,
    "--sysroot"sv,
    "-Xclang"sv,
    "-Xflang"sv,
    "-Xlinker"sv,
    "-Xassembler"sv,
    "-Xpreprocessor"sv,
    "-mllvm"sv,
    "-mmlir"sv,
    "-target"sv,
    "-arch"sv,
    "-G"sv,
    "-A"sv,
    "-soname"sv,
    "-rpath"sv,
    "-framework"sv,
    "-module-dir"sv,
    "--param"sv,
    "-dumpdir"sv,
    "-aux-info"sv,
    "-serialize-diagnostics"sv,
    "-working-directory"sv,
};

/// Options with which the compiler does not link, or does not produce a program.
constexpr std::array stopsBeforeLink = {
    "-c"sv,
    "-S"sv,
    "-E"sv,
    "-M"sv,
    "-MM"sv,
    "-fsyntax-only"sv,
    "-emit-ast"sv,
    "--precompile"sv,
    "--analyze"sv,
    "-r"sv,
    "-emit-interface-stubs"sv,
    "--compile"sv,
    "--assemble"sv,
    "--preprocess"sv,
    "--dependencies"sv,
    "--user-dependencies"sv,
    "-fmodule-header"sv,
};

constexpr std::array sourceSuffixes = {
    ".c"sv,   ".cc"sv,  ".cp"sv,   ".cxx"sv, ".cpp"sv,  ".c++"sv,  ".C"sv,   ".CPP"sv, ".i"sv,   ".ii"sv,
    ".cu"sv,  ".f"sv,   ".F"sv,    ".for"sv, ".FOR"sv,  ".fpp"sv,  ".FPP"sv, ".f77"sv, ".f90"sv, ".F90"sv,
    ".f95"sv, ".F95"sv, ".f03"sv,  ".F03"sv, ".f08"sv,  ".F08"sv,  ".f18"sv, ".F18"sv, ".bc"sv,  ".ll"sv,
    ".m"sv,   ".mm"sv,  ".cppm"sv, ".ccm"sv, ".cxxm"sv, ".c++m"sv, ".iim"sv, ".pcm"sv,
};

/// Suffixes of files that the compiler precompiles, and does not link.
constexpr std::array headerSuffixes = {
    ".h"sv, ".H"sv, ".hh"sv, ".hpp"sv, ".hxx"sv, ".iih"sv,
};

template <size_t N> bool hasSuffix(std::string_view name, const std::array<std::string_view, N> &suffixes) {
    return std::any_of(suffixes.begin(), suffixes.end(),
                       [&](std::string_view suffix) { return endsWith(name, suffix); });
}

/// Returns whether a language of -x is a header language: c-header, c++-user-header, c++-header-unit-header …
bool isHeaderLanguage(std::string_view language) { return endsWith(language, "-header"); }

/// Stores an option of the wrapper in `line`. Returns false for all other arguments.
bool takeOwn(std::string_view argument, CommandLine &line) {
    constexpr std::string_view filter = "--quipu-filter=", inlined = "--quipu-inlined=",
                               callGraph = "--quipu-callgraph=";
    if (startsWith(argument, filter)) {
        line.filter = argument.substr(filter.size());
        return true;
    }
    if (startsWith(argument, inlined)) {
        line.inlined = argument.substr(inlined.size());
        return true;
    }
    if (startsWith(argument, callGraph)) {
        line.callGraph = argument.substr(callGraph.size());
        return true;
    }
    const std::pair<std::string_view, bool CommandLine::*> switches[] = {
        {"--quipu-naive", &CommandLine::naive},
        {"--quipu-all", &CommandLine::all},
        {"--quipu-only-selected", &CommandLine::onlySelected},
        {"--quipu-off", &CommandLine::off},
        {"--quipu-show", &CommandLine::show},
    };
    for (const auto &[name, member] : switches) {
        if (argument == name) {
            line.*member = true;
            return true;
        }
    }
    return false;
}

/// Removes the options of the wrapper from the arguments. Response files without such options stay unchanged.
std::vector<std::string> takeOwnOptions(const std::vector<std::string> &arguments, CommandLine &line) {
    std::vector<Word> kept;
    std::vector<bool> opened(arguments.size());
    for (Word &word : expandResponseFiles(arguments)) {
        if (takeOwn(word.text, line))
            opened[word.argument] = true;
        else
            kept.push_back(std::move(word));
    }
    std::vector<std::string> seen;
    size_t next = 0;
    for (size_t i = 0; i < arguments.size(); i++) {
        if (!opened[i])
            line.arguments.push_back(arguments[i]);
        for (; next < kept.size() && kept[next].argument == i; next++) {
            if (opened[i])
                line.arguments.push_back(kept[next].text);
            seen.push_back(std::move(kept[next].text));
        }
    }
    return seen;
}

} // namespace

CommandLine parseArguments(const std::vector<std::string> &given) {
    CommandLine line;
    line.links = true;
    const std::vector<std::string> arguments = takeOwnOptions(given, line);
    std::string_view language;            // the language of the latest -x, which applies to all following inputs
    bool headers = false, others = false; // whether there are inputs of these kinds
    bool onlyInputs = false;
    for (size_t i = 0; i < arguments.size(); i++) {
        std::string_view argument = arguments[i];
        if (onlyInputs || argument.empty() || argument[0] != '-' || argument == "-") {
            line.hasInput = true;
            line.compiles |= !language.empty() || argument == "-" || hasSuffix(argument, sourceSuffixes);
            if (language.empty() ? hasSuffix(argument, headerSuffixes) : isHeaderLanguage(language))
                headers = true;
            else
                others = true;
            continue;
        }
        if (argument == "--") {
            onlyInputs = true;
            continue;
        }
        if (isOneOf(argument, stopsBeforeLink) || startsWith(argument, "-fmodule-header="))
            line.links = false;
        if (argument == "-static" || argument == "-static-pie")
            line.isStatic = true;
        if (argument == "-femulated-tls" || argument == "-fno-emulated-tls")
            line.emulatedTls = argument == "-femulated-tls";
        if (argument == "-fopenmp" || startsWith(argument, "-fopenmp="))
            line.openMp = true;
        if (startsWith(argument, "-g") && !startsWith(argument, "-gcc") && !startsWith(argument, "-gnu"))
            line.hasDebugOption = true;
        if (startsWith(argument, "-Rpass") || startsWith(argument, "-fsave-optimization-record"))
            line.hasRemarks = true;
        if (argument == "-x" && i + 1 < arguments.size())
            language = arguments[i + 1];
        else if (startsWith(argument, "-x") && argument.size() > 2)
            language = argument.substr(2);
        else if (startsWith(argument, "--language="))
            language = argument.substr("--language="sv.size());
        if (language == "none")
            language = "";
        if (startsWith(argument, "-l") && argument.size() > 2)
            line.hasInput = others = true;
        if (isOneOf(argument, takesValue) && i + 1 < arguments.size()) {
            line.hasInput |= argument == "-l" || argument == "-include";
            i++;
        }
    }
    line.links &= line.hasInput && (others || !headers);
    return line;
}

} // namespace quipu

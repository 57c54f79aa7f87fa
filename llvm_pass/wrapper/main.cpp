// SPDX-License-Identifier: Apache-2.0
//===- main.cpp - quipu-cc, quipu-c++, quipu-fc and their MPI forms --------===//
//
// Drop-in compilers. The program calls clang or flang with the given command line, and adds the pass plugin when it
// compiles and the runtime when it links. The name under which the program is called selects the compiler. Under the
// name of an LLVM tool (quipu-llvm-ar) it calls this tool of the compiler's LLVM.
//
#include "arguments.h"
#include "mpi_module.h"
#include "plugin.h"
#include "toolchain.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace {

using quipu::CommandLine;

[[noreturn]] void fail(const std::string &message, const char *code) {
    fprintf(stderr, "quipu: error: %s [%s]\n", message.c_str(), code);
    exit(1);
}

/// Exports the filter file to the pass as an absolute path, because the compiler may run in another folder.
void exportFilter(const std::string &option) {
    const char *inherited = getenv("QUIPU_FILTER");
    std::string filter = !option.empty() ? option : inherited ? inherited : "";
    if (filter.empty())
        return;
    char resolved[PATH_MAX];
    if (!realpath(filter.c_str(), resolved))
        fail(filter + ": cannot read the filter file: " + strerror(errno) + " (from " +
                 (option.empty() ? "QUIPU_FILTER" : "--quipu-filter") + ")",
             "bad-filter");
    setenv("QUIPU_FILTER", resolved, 1);
}

std::vector<std::string> plainCommand(const quipu::Wrapper &wrapper, const CommandLine &line) {
    std::string compiler = quipu::compilerOf(wrapper);
    std::vector<std::string> command = {compiler};
    std::string library = quipu::libraryFolder();
    quipu::Additions mpi;
    if (wrapper.mpi == quipu::Mpi::Simulated && !quipu::simulatedMpi(wrapper.language, mpi))
        fail("cannot run " + quipu::simulatedMpiCompiler(wrapper.language) +
                 " -show; install SimGrid (apt-get install libsimgrid-dev)",
             "no-compiler");
    if (line.hasInput)
        command.insert(command.end(), mpi.compile.begin(), mpi.compile.end());
    const bool measures = !getenv("QUIPU_OFF");
    if (line.compiles && measures) {
        std::string problem;
        std::string plugin = quipu::pluginFor(compiler, library, problem);
        if (!problem.empty())
            fail(problem, "no-compiler");
        if (!plugin.empty())
            command.push_back("-fpass-plugin=" + plugin);
        // Regions need file and line. The pass removes this debug information again, and the code does not change.
        if (!line.hasDebugOption) {
            command.push_back("-gline-tables-only");
            // Adds linker names of functions in headers. The -g option of a user adds them anyway.
            if (wrapper.language != quipu::Language::Fortran)
                command.push_back("-fdebug-info-for-profiling");
            if (!line.hasRemarks)
                setenv("QUIPU_DEBUG_LINES", "off", 1);
        }
    }
#ifdef QUIPU_SANITIZER_LIBRARY
    const std::string sanitizer = QUIPU_SANITIZER_LIBRARY;
    if (line.links && !line.isStatic) {
        command.push_back(sanitizer);
        command.push_back("-Wl,-rpath," + sanitizer.substr(0, sanitizer.rfind('/')));
    }
#endif
    for (const std::string &argument : line.arguments)
        if (wrapper.language != quipu::Language::Fortran)
            command.push_back(argument);
        else if (const std::string known = quipu::forFlang(argument); !known.empty() || argument.empty())
            command.push_back(known);
    // The compiler shall search quipu/region.h after the folders of the program. clang gets the folder in CPATH and not
    // in an option, because it warns about options that no input uses.
    if (wrapper.language == quipu::Language::Fortran) {
        if (line.compiles)
            command.push_back("-I" + library + "/api");
    } else {
        const char *inherited = getenv("CPATH");
        const std::string before = inherited && *inherited ? std::string(inherited) + ":" : "";
        setenv("CPATH", (before + library + "/api").c_str(), 1);
    }
    if (line.links && measures) {
        command.push_back("-L" + library);
        command.push_back(line.isStatic ? "-Wl,--wrap=pthread_create,--wrap=prctl,--wrap=syscall,--wrap=swapcontext"
                                        : "-Wl,-rpath," + library);
        command.push_back("-lquipu");
    }
    if (line.links)
        command.insert(command.end(), mpi.link.begin(), mpi.link.end());
    if (line.compiles && wrapper.language == quipu::Language::Fortran) {
        quipu::addMpiModule(command);
        std::string openMp = line.openMp ? quipu::openMpIncludesOf(compiler) : "";
        if (!openMp.empty()) // after the folders of the program
            command.push_back("-I" + openMp);
    }
    if (line.links)
        quipu::linkMpiModules(command);
    return command;
}

/// Exports how inlined functions are measured, from the option or the environment.
void exportInlined(const std::string &option) {
    const char *inherited = getenv("QUIPU_INLINED");
    const std::string wanted = !option.empty() ? option : inherited ? inherited : "";
    if (wanted.empty())
        return;
    if (wanted != "time" && wanted != "counts" && wanted != "off")
        fail(std::string(option.empty() ? "QUIPU_INLINED" : "--quipu-inlined") + "=" + wanted +
                 ": give time, counts or off",
             "bad-setting");
    setenv("QUIPU_INLINED", wanted.c_str(), 1);
}

void exportCallGraph(const std::string &option) {
    if (option.empty())
        return;
    if (option != "on" && option != "off")
        fail("--quipu-callgraph=" + option + ": give on or off", "bad-setting");
    setenv("QUIPU_CALLGRAPH", option.c_str(), 1);
}

/// Returns whether this is the name of an LLVM tool. CMake looks for LLVM tools with the prefix of the compiler's name:
/// quipu-llvm-ar next to quipu-cc. Without them it would find no tool, or a tool of another LLVM, which cannot read the
/// bitcode.
bool isTool(const std::string &name) {
    return name == "quipu-llvm-ar" || name == "quipu-llvm-ranlib" || name == "quipu-clang-scan-deps";
}

std::vector<std::string> toolCommand(const std::string &name, const CommandLine &line) {
    const std::string compiler = quipu::compilerOf({quipu::Language::Cxx, quipu::Mpi::None});
    std::vector<std::string> command = {quipu::toolOf(compiler, name.substr(strlen("quipu-")))};
    command.insert(command.end(), line.arguments.begin(), line.arguments.end());
    return command;
}

[[noreturn]] void execute(std::vector<std::string> command) {
    std::vector<char *> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string &argument : command)
        arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fail("cannot run " + command[0] + ": " + strerror(errno) +
             (errno == ENOENT ? "; install it, or name another compiler (see quipu doctor)" : ""),
         "no-compiler");
}

void show(const std::vector<std::string> &command) {
    for (size_t i = 0; i < command.size(); i++)
        printf("%s%s", i ? " " : "", command[i].c_str());
    printf("\n");
}

} // namespace

int main(int argc, char **argv) {
    std::string name = argc > 0 ? argv[0] : "";
    name = name.substr(name.rfind('/') + 1);
    const std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
    if (isTool(name))
        execute(toolCommand(name, quipu::parseArguments(arguments)));
    quipu::Wrapper wrapper;
    if (!quipu::wrapperOf(name, wrapper))
        fail("called as '" + name +
                 "': call it as quipu-cc, quipu-c++, quipu-fc, quipu-mpicc, quipu-mpic++, quipu-mpifort, "
                 "quipu-smpicc, quipu-smpicxx or quipu-smpif90",
             "no-compiler");
    const std::string loop = quipu::wayBack(name, wrapper);
    if (!loop.empty())
        fail(loop, "no-compiler");
    CommandLine line = quipu::parseArguments(arguments);
    exportFilter(line.filter);
    exportInlined(line.inlined);
    exportCallGraph(line.callGraph);
    if (line.naive)
        setenv("QUIPU_NAIVE", "1", 1);
    if (line.all)
        setenv("QUIPU_ALL", "1", 1);
    if (line.onlySelected)
        setenv("QUIPU_ONLY_SELECTED", "1", 1);
    if (line.off)
        setenv("QUIPU_OFF", "1", 1);
    if (line.emulatedTls)
        setenv("QUIPU_CALLS", "1", 1);

    std::vector<std::string> command;
    if (wrapper.mpi == quipu::Mpi::Installed) {
        quipu::pointMpiAtWrapper(wrapper.language);
        command = {quipu::compilerOf(wrapper)};
        command.insert(command.end(), line.arguments.begin(), line.arguments.end());
    } else {
        command = plainCommand(wrapper, line);
    }
    if (line.show) {
        show(command);
        return 0;
    }
    execute(std::move(command));
}

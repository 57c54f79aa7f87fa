// SPDX-License-Identifier: Apache-2.0
#include "toolchain.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <unistd.h>

namespace quipu {
namespace {

std::string environment(const char *name, const std::string &otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

const char *plainName(Language language) {
    switch (language) {
    case Language::C:
        return "quipu-cc";
    case Language::Cxx:
        return "quipu-c++";
    case Language::Fortran:
        return "quipu-fc";
    }
    return "";
}

} // namespace

bool wrapperOf(const std::string &name, Wrapper &wrapper) {
    struct Name {
        const char *name;
        Wrapper wrapper;
    };
    static constexpr Name names[] = {
        {"quipu-cc", {Language::C, Mpi::None}},
        {"quipu-c++", {Language::Cxx, Mpi::None}},
        {"quipu-cxx", {Language::Cxx, Mpi::None}},
        {"quipu-fc", {Language::Fortran, Mpi::None}},
        {"quipu-mpicc", {Language::C, Mpi::Installed}},
        {"quipu-mpic++", {Language::Cxx, Mpi::Installed}},
        {"quipu-mpicxx", {Language::Cxx, Mpi::Installed}},
        {"quipu-mpifort", {Language::Fortran, Mpi::Installed}},
        {"quipu-smpicc", {Language::C, Mpi::Simulated}},
        {"quipu-smpicxx", {Language::Cxx, Mpi::Simulated}},
        {"quipu-smpif90", {Language::Fortran, Mpi::Simulated}},
    };
    for (const Name &known : names) {
        if (name == known.name) {
            wrapper = known.wrapper;
            return true;
        }
    }
    return false;
}

std::string programFolder() {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
    return program.substr(0, program.rfind('/'));
}

std::string libraryFolder() {
    std::string folder = programFolder();
    return folder.substr(0, folder.rfind('/')) + "/lib/quipu";
}

namespace {

const char *variableOf(const Wrapper &wrapper) {
    const bool mpi = wrapper.mpi == Mpi::Installed;
    switch (wrapper.language) {
    case Language::C:
        return mpi ? "QUIPU_MPICC" : "QUIPU_CC";
    case Language::Cxx:
        return mpi ? "QUIPU_MPICXX" : "QUIPU_CXX";
    case Language::Fortran:
        return mpi ? "QUIPU_MPIFC" : "QUIPU_FC";
    }
    return "";
}

/// Returns the file of a command as found by execvp; empty if there is none.
std::string fileOf(const std::string &command) {
    if (command.find('/') != std::string::npos)
        return command;
    std::istringstream folders(environment("PATH", "/usr/bin:/bin"));
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + "/" + command;
        if (access(file.c_str(), X_OK) == 0)
            return file;
    }
    return "";
}

} // namespace

std::string wayBack(const std::string &name, const Wrapper &wrapper) {
    const std::string kind = wrapper.mpi == Mpi::Installed ? "mpi" : "plain";
    const std::string compiler = compilerOf(wrapper), variable = variableOf(wrapper), file = fileOf(compiler);
    const char *set = getenv(variable.c_str());
    const std::string from = set && *set ? variable + "=" + set : file.empty() ? compiler : file;
    const std::string advice = ": name a compiler in " + variable;
    char path[PATH_MAX];
    const std::string real = realpath(file.c_str(), path) ? path : "";
    Wrapper other;
    if (wrapperOf(real.substr(real.rfind('/') + 1), other) &&
        (wrapper.mpi != Mpi::Installed || other.mpi == Mpi::Installed))
        return from + " is a compiler wrapper of Quipu, which would call itself without end" + advice;
    const char *inherited = getenv("QUIPU_WRAPPERS");
    const std::string active = inherited ? inherited : "";
    if ((" " + active + " ").find(" " + kind + " ") != std::string::npos)
        return from + " leads back to " + name + ", which would call itself without end" + advice;
    setenv("QUIPU_WRAPPERS", (active + " " + kind).c_str(), 1);
    return "";
}

std::string compilerOf(const Wrapper &wrapper) {
    const bool mpi = wrapper.mpi == Mpi::Installed;
    switch (wrapper.language) {
    case Language::C:
        return mpi ? environment("QUIPU_MPICC", "mpicc") : environment("QUIPU_CC", QUIPU_DEFAULT_CC);
    case Language::Cxx:
        return mpi ? environment("QUIPU_MPICXX", "mpicxx") : environment("QUIPU_CXX", QUIPU_DEFAULT_CXX);
    case Language::Fortran:
        return mpi ? environment("QUIPU_MPIFC", "mpifort") : environment("QUIPU_FC", QUIPU_DEFAULT_FC);
    }
    return "";
}

void pointMpiAtWrapper(Language language) {
    std::string plain = programFolder() + "/" + plainName(language);
    const char *suffix = language == Language::C ? "CC" : language == Language::Cxx ? "CXX" : "FC";
    for (const char *family : {"OMPI_", "MPICH_"})
        setenv((std::string(family) + suffix).c_str(), plain.c_str(), 1);
}

std::string forFlang(const std::string &argument) {
    /* Options of gfortran that do not affect results: for its dialect, which flang always allows, for warnings and
     * checks, for optimizations, and for hardening by a distribution. */
    static constexpr const char *unknown[] = {"-ffree-line-length-",
                                              "-fallow-",
                                              "-fbacktrace",
                                              "-fno-backtrace",
                                              "-fbounds-check",
                                              "-fcheck",
                                              "-frange-check",
                                              "-fno-range-check",
                                              "-fcray-pointer",
                                              "-fdollar-ok",
                                              "-fno-second-underscore",
                                              "-fno-f2c",
                                              "-frecord-marker=4",
                                              "-fmax-",
                                              "-fall-intrinsics",
                                              "-fwhole-file",
                                              "-fno-whole-file",
                                              "-frecursive",
                                              "-ffpe-",
                                              "-fexternal-blas",
                                              "-ffrontend-",
                                              "-fno-frontend-",
                                              "-fprotect-parens",
                                              "-fno-protect-parens",
                                              "-faggressive-",
                                              "-fno-aggressive-",
                                              "-funroll-",
                                              "-fno-unroll-",
                                              "-ftree-",
                                              "-fno-tree-",
                                              "-fgraphite",
                                              "-fgcse",
                                              "-fno-gcse",
                                              "-fprefetch-",
                                              "-fstrict-aliasing",
                                              "-fno-strict-aliasing",
                                              "-finline-",
                                              "-fno-inline",
                                              "-fcommon",
                                              "-fno-common",
                                              "-falign-",
                                              "-fno-align-",
                                              "-fmessage-length=",
                                              "-fdiagnostics-",
                                              "-static-libgfortran",
                                              "-static-libgcc",
                                              "-static-libquadmath",
                                              "-ffile-prefix-map=",
                                              "-fdebug-prefix-map=",
                                              "-fstack-protector",
                                              "-fstack-clash-protection",
                                              "-fcf-protection",
                                              "-mbranch-protection",
                                              "-msse",
                                              "-mavx",
                                              "-mfma",
                                              "-pipe",
                                              "-std=legacy",
                                              "-std=gnu",
                                              "-std=f95",
                                              "-std=f2003",
                                              "-std=f2008"};
    for (const char *option : unknown)
        if (argument.compare(0, strlen(option), option) == 0)
            return "";
    if (argument == "-Og")
        return "-O1";
    if (argument.compare(0, 5, "-ggdb") == 0)
        return "-g";
    const bool warns = argument.compare(0, 2, "-W") == 0 && argument.size() > 2 && argument.find(',') == argument.npos;
    return warns && argument.compare(0, 7, "-Werror") != 0 ? "" : argument;
}

std::string simulatedMpiCompiler(Language language) {
    switch (language) {
    case Language::C:
        return environment("QUIPU_SMPICC", "smpicc");
    case Language::Cxx:
        return environment("QUIPU_SMPICXX", "smpicxx");
    case Language::Fortran:
        return environment("QUIPU_SMPIF90", "smpif90");
    }
    return "";
}

bool simulatedMpi(Language language, Additions &additions) {
    std::string command = simulatedMpiCompiler(language) + " -show";
    FILE *output = popen(command.c_str(), "r");
    if (!output)
        return false;
    std::string text;
    char buffer[4096];
    while (size_t length = fread(buffer, 1, sizeof buffer, output))
        text.append(buffer, length);
    if (pclose(output) != 0)
        return false;
    /* Warnings may come first. The last line is the command: COMPILER OPTIONS -fPIC OPTIONS OF THE LINKER */
    text.erase(text.find_last_not_of('\n') + 1);
    std::istringstream line(text.substr(text.rfind('\n') + 1));
    std::string word;
    line >> word;
    if (language == Language::Fortran) { /* keep only the options of gfortran that flang supports */
        additions.compile.push_back("-fPIC");
        while (line >> word) {
            if (word.compare(0, 2, "-I") == 0)
                additions.compile.push_back(word);
            else if (word == "-shared" || word.compare(0, 3, "-Wl") == 0 || word.compare(0, 2, "-L") == 0 ||
                     (word.compare(0, 2, "-l") == 0 && word != "-lgfortran"))
                additions.link.push_back(word);
        }
        additions.link.push_back(libraryFolder() + "/smpi_main.o");
        return true;
    }
    for (bool links = false; line >> word; links |= word == "-fPIC")
        (links || word.compare(0, 2, "-L") == 0 ? additions.link : additions.compile).push_back(word);
    return true;
}

} // namespace quipu

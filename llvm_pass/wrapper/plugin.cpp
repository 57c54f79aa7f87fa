// SPDX-License-Identifier: Apache-2.0
#include "plugin.h"

#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quipu {
namespace {

std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

/// Returns the number at the start of `text`, 0 if there is none.
unsigned numberAt(const char *text) {
    return isdigit(static_cast<unsigned char>(*text)) ? static_cast<unsigned>(strtoul(text, nullptr, 10)) : 0;
}

/// Returns the version in the name of a compiler: 19 for clang-19, clang++-19.1 or flang-new-19; 0 if there is none.
unsigned versionInName(const std::string &name) {
    size_t dash = name.rfind('-');
    bool known = name.compare(0, 5, "clang") == 0 || name.compare(0, 5, "flang") == 0;
    return known && dash != std::string::npos ? numberAt(name.c_str() + dash + 1) : 0;
}

/// Returns the version in a path: 19 for /usr/lib/llvm-19/bin/clang; 0 if there is none.
unsigned versionInFolders(const std::string &path) {
    size_t folder = path.find("/llvm-");
    return folder != std::string::npos ? numberAt(path.c_str() + folder + strlen("/llvm-")) : 0;
}

/// Returns the output of a compiler for --version.
std::string answerOf(const std::string &compiler) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return "";
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        execl(compiler.c_str(), compiler.c_str(), "--version", static_cast<char *>(nullptr));
        _exit(127);
    }
    close(ends[1]);
    std::string answer;
    char part[512];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
        answer.append(part, static_cast<size_t>(got));
    close(ends[0]);
    if (child > 0)
        waitpid(child, nullptr, 0);
    return answer;
}

/// Returns the version in this output: 19 for "Debian clang version 19.1.7" or "flang-new version 19.1.7"; 0 for other
/// compilers.
unsigned versionInAnswer(const std::string &answer) {
    for (const char *name : {"clang version ", "flang-new version ", "flang version "})
        if (size_t at = answer.find(name); at != std::string::npos)
            return numberAt(answer.c_str() + at + strlen(name));
    return 0;
}

/// Returns the LLVM version of a compiler; 0 if it is not clang or flang. Uses the name if it contains the version,
/// because starting the compiler takes time.
unsigned llvmVersionOf(const std::string &program) {
    char target[PATH_MAX];
    std::string resolved = realpath(program.c_str(), target) ? target : program;
    unsigned version = versionInName(baseName(program));
    if (!version)
        version = versionInName(baseName(resolved));
    if (!version)
        version = versionInFolders(resolved);
    return version ? version : versionInAnswer(answerOf(program));
}

/// Returns the LLVM versions with plugins as text: "16, 19".
std::string knownVersions(const std::string &library) {
    std::string known;
    glob_t found;
    if (glob((library + "/QuipuPass-*.so").c_str(), 0, nullptr, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            known += (known.empty() ? "" : ", ") + std::to_string(numberAt(strrchr(found.gl_pathv[i], '-') + 1));
    globfree(&found);
    return known;
}

} // namespace

std::string findProgram(const std::string &name) {
    if (name.find('/') != std::string::npos)
        return access(name.c_str(), X_OK) == 0 ? name : "";
    const char *path = getenv("PATH");
    std::string folders = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t begin = 0; begin <= folders.size();) {
        size_t end = folders.find(':', begin);
        if (end == std::string::npos)
            end = folders.size();
        std::string folder = folders.substr(begin, end - begin);
        std::string file = (folder.empty() ? "." : folder) + "/" + name;
        if (access(file.c_str(), X_OK) == 0)
            return file;
        begin = end + 1;
    }
    return "";
}

std::string pluginFor(const std::string &compiler, const std::string &library, std::string &problem) {
    std::string program = findProgram(compiler);
    if (program.empty())
        return "";
    unsigned version = llvmVersionOf(program);
    std::string plugin = library + "/QuipuPass-" + std::to_string(version) + ".so";
    if (version && access(plugin.c_str(), R_OK) == 0)
        return plugin;
    std::string known = knownVersions(library);
    if (known.empty()) {
        problem = library + " has no pass for any compiler: install Quipu again (in its source folder: make build, or: "
                            "pip install .; pip's --target leaves it out)";
        return "";
    }
    std::string number = std::to_string(version);
    problem = compiler + (version ? " is of LLVM " + number : " is neither clang nor flang") +
              ", and this Quipu works with the compilers of LLVM " + known +
              ": name one of those (QUIPU_CC, QUIPU_CXX, QUIPU_FC)";
    if (version)
        problem += ", or install llvm-" + number + "-dev and build Quipu with -DQUIPU_OTHER_LLVM_VERSIONS=" + number;
    return "";
}

std::string toolOf(const std::string &compiler, const std::string &name) {
    char target[PATH_MAX];
    const std::string program = findProgram(compiler);
    if (program.empty() || !realpath(program.c_str(), target))
        return name;
    const std::string resolved = target;
    std::string beside = findProgram(resolved.substr(0, resolved.rfind('/') + 1) + name);
    if (!beside.empty())
        return beside;
    std::string numbered = findProgram(name + "-" + std::to_string(llvmVersionOf(program)));
    return numbered.empty() ? name : numbered;
}

std::string openMpIncludesOf(const std::string &flang) {
    char target[PATH_MAX];
    std::string program = findProgram(flang);
    if (program.empty() || !realpath(program.c_str(), target))
        return "";
    std::string folder = target;
    folder = folder.substr(0, folder.rfind('/')) + "/../include/flang";
    return access((folder + "/omp_lib.h").c_str(), R_OK) == 0 ? folder : "";
}

} // namespace quipu

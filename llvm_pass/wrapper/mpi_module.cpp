// SPDX-License-Identifier: Apache-2.0
#include "mpi_module.h"
#include "mpi_f08.h"
#include "plugin.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quipu {
namespace {

namespace fs = std::filesystem;

const char *const archive = "libmpi_f08.a";
const char *const noF08 = "mpi_f08.problem"; ///< file next to the module mpi: the reason why there is no mpi_f08

/// A folder in which the compiler searches modules and included files.
struct Folder {
    size_t argument; ///< index of its option in the command line
    std::string path;
};

std::vector<Folder> foldersOf(const std::vector<std::string> &command) {
    std::vector<Folder> folders;
    for (size_t i = 1; i < command.size(); i++) {
        const std::string &word = command[i];
        for (const char *option : {"-I", "-J", "-module-dir"}) {
            if (word == option && i + 1 < command.size())
                folders.push_back({i, command[i + 1]});
            else if (word.compare(0, 2, option) == 0 && word.size() > 2)
                folders.push_back({i, word.substr(2)});
        }
    }
    return folders;
}

bool exists(const std::string &path) { return access(path.c_str(), R_OK) == 0; }

std::string contentOf(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns whether gfortran wrote a module: its modules are compressed, modules of flang are Fortran text.
bool isCompressed(const std::string &path) {
    char magic[2] = {};
    std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
    return magic[0] == '\x1f' && magic[1] == '\x8b';
}

/// Calls `use(name, rest)` for each word that could be a name; `rest` is the text after it.
template <class Use> void eachName(const std::string &text, Use use) {
    auto inName = [&](size_t at) { return isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_'; };
    for (size_t at = 0; at < text.size();) {
        size_t end = at;
        while (end < text.size() && inName(end))
            end++;
        if (end > at)
            use(text.substr(at, end - at), end);
        at = end + (end == at);
    }
}

/// Returns the text of the headers in a folder: for Fortran (mpif.h and its includes) or for C (mpi.h, mpi_proto.h).
std::string headers(const std::string &folder, bool fortran) {
    std::string text;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        if (entry.path().extension() == ".h" && name.compare(0, 3, "mpi") == 0 && (name[3] == 'f') == fortran)
            text += contentOf(entry.path()) + '\n';
    }
    return text;
}

/// Returns names of functions such as MPI_Send (mixed case, before a parenthesis), for `use mpi, only: MPI_Send`.
std::set<std::string> proceduresOf(const std::string &text) {
    std::set<std::string> names;
    eachName(text, [&](const std::string &word, size_t end) {
        if (word.compare(0, 4, "MPI_") != 0 || word.size() < 6 || !isupper(static_cast<unsigned char>(word[4])) ||
            !islower(static_cast<unsigned char>(word[5])))
            return;
        size_t next = text.find_first_not_of(' ', end);
        if (next != std::string::npos && text[next] == '(')
            names.insert(lower(word));
    });
    return names;
}

/// Returns the names in mpif.h and its includes, in lower case.
std::set<std::string> namesOf(const std::string &folder) {
    std::set<std::string> known;
    eachName(lower(headers(folder, true)), [&](const std::string &word, size_t) { known.insert(word); });
    return known;
}

std::string sourceOf(const std::string &folder) {
    std::string text = "module mpi\n  implicit none\n  include 'mpif.h'\n";
    const std::set<std::string> known = namesOf(folder);
    for (const std::string &name : proceduresOf(headers(folder, false)))
        if (!known.count(name))
            text += "  external :: " + name + "\n";
    return text + "end module mpi\n";
}

/// Returns a hash (FNV-1a) over the inputs of a module: the files and this program, with their modification times.
std::string keyOf(const std::string &compiler, const std::string &header) {
    std::string facts;
    for (const std::string &file : {compiler, header, std::string("/proc/self/exe")}) {
        struct stat status = {};
        stat(file.c_str(), &status);
        facts += fs::weakly_canonical(file).string() + '\n' + std::to_string(status.st_size) + '\n' +
                 std::to_string(status.st_mtime) + '\n';
    }
    unsigned long long hash = 14695981039346656037ULL;
    for (char character : facts)
        hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211ULL;
    char text[17];
    snprintf(text, sizeof text, "%016llx", hash);
    return text;
}

fs::path cacheFolder() {
    const char *configured = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    fs::path cache = configured && *configured ? fs::path(configured) : fs::path(home ? home : "/") / ".cache";
    return fs::absolute(cache) / "quipu" / "fortran";
}

/// Runs a command with its output in a file. Returns whether its exit code is 0.
bool runs(std::vector<std::string> command, const std::string &output) {
    pid_t child = fork();
    if (child == 0) {
        int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(file, STDOUT_FILENO);
        dup2(file, STDERR_FILENO);
        std::vector<char *> words;
        words.reserve(command.size() + 1);
        for (std::string &word : command)
            words.push_back(word.data());
        words.push_back(nullptr);
        execvp(words[0], words.data());
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Returns the first line of the output of a failed command.
std::string problemIn(const std::string &log) {
    const std::string text = contentOf(log);
    return text.substr(0, text.find('\n'));
}

/// Makes `mpi_f08` in this folder, with an archive of its procedures. Returns an empty text, or the reason of a
/// failure.
std::string makeF08(const std::string &folder, const std::string &key, const std::string &compiler,
                    const std::string &includes) {
    const std::string source = folder + "/mpi_f08.f90", code = folder + "/mpi_f08.ll", object = folder + "/mpi_f08.o",
                      log = folder + "/log";
    std::ofstream(source) << f08Source(namesOf(includes), key);
    const std::vector<std::string> compile = {compiler, "-O1", "-fPIC", "-J" + folder, "-I" + includes};
    const auto compiling = [&](const std::vector<std::string> &more) {
        std::vector<std::string> command = compile;
        command.insert(command.end(), more.begin(), more.end());
        return runs(command, log);
    };
    bool made = compiling({"-S", "-emit-llvm", source, "-o", code});
    if (made) {
        const std::string weak = withWeakProcedures(contentOf(code));
        std::ofstream(code) << weak;
        made = compiling({"-c", code, "-o", object}) && runs({"ar", "rcs", folder + "/" + archive, object}, log);
    }
    for (const std::string &file : {code, object})
        fs::remove(file);
    if (made)
        return "";
    fs::remove(folder + "/mpi_f08.mod");
    return problemIn(log);
}

/// Takes a lock, so that only one compiler makes modules at a time; other compilers that start at the same time then
/// find the finished modules. If folders cannot be locked, each compiler makes modules, and the first one is used.
class Turn {
  public:
    explicit Turn(const fs::path &folder) : lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        if (lock >= 0)
            (void)flock(lock, LOCK_EX);
    }
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;
    ~Turn() {
        if (lock >= 0)
            close(lock);
    }

  private:
    int lock;
};

/// Makes the modules in a temporary folder, and renames it to its final name at the end.
void makeModules(const fs::path &folder, const std::string &key, const std::string &compiler,
                 const std::string &includes) {
    fs::create_directories(folder.parent_path());
    const Turn turn(folder.parent_path());
    if (exists(folder / "mpi.mod"))
        return;
    std::string scratch = folder.string() + ".XXXXXX";
    if (!mkdtemp(scratch.data()))
        throw fs::filesystem_error("cannot make a folder", folder, std::error_code(errno, std::generic_category()));
    chmod(scratch.c_str(), 0755);
    const std::string source = scratch + "/mpi.f90", log = scratch + "/log";
    std::ofstream(source) << sourceOf(includes);
    const bool made =
        runs({compiler, "-fsyntax-only", "-J" + scratch, "-I" + includes, source}, log) && exists(scratch + "/mpi.mod");
    const std::string problem = made ? makeF08(scratch, key, compiler, includes) : problemIn(log);
    if (made && !problem.empty())
        std::ofstream(scratch + "/" + noF08) << problem;
    if (made)
        (void)rename(scratch.c_str(), folder.c_str()); // fails if another compiler was faster
    fs::remove_all(scratch);
    if (!made)
        throw std::runtime_error(compiler + " cannot compile mpif.h: " + problem);
}

/// Returns whether a Fortran source of a command line contains the name of a module.
bool names(const std::vector<std::string> &command, const std::string &module) {
    static const std::set<std::string> endings = {".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18"};
    bool found = false;
    for (size_t i = 1; i < command.size(); i++)
        if (command[i][0] != '-' && endings.count(lower(fs::path(command[i]).extension())))
            eachName(lower(contentOf(command[i])), [&](const std::string &word, size_t) { found |= word == module; });
    return found;
}

bool isLibrary(const std::string &argument) {
    const auto endsWith = [&](const std::string &end) {
        return argument.size() > end.size() && argument.compare(argument.size() - end.size(), end.size(), end) == 0;
    };
    if (argument.compare(0, 2, "-f") == 0) // -fpass-plugin=
        return false;
    return argument.compare(0, 2, "-l") == 0 || endsWith(".a") || endsWith(".so") ||
           argument.find(".so.") != std::string::npos;
}

} // namespace

void addMpiModule(std::vector<std::string> &command) {
    const std::string compiler = findProgram(command[0]);
    std::string includes;
    const Folder *before = nullptr;
    const std::vector<Folder> folders = foldersOf(command);
    if (compiler.empty() || exists("mpi.mod"))
        return; // a module of the program itself, because the working directory comes first
    for (const Folder &folder : folders) {
        if (!before && exists(folder.path + "/mpi.mod")) {
            if (!isCompressed(folder.path + "/mpi.mod"))
                return;
            before = &folder;
        }
        if (includes.empty() && exists(folder.path + "/mpif.h"))
            includes = fs::absolute(folder.path);
    }
    if (!before || includes.empty())
        return;
    try {
        const std::string key = keyOf(compiler, includes + "/mpif.h");
        const fs::path module = cacheFolder() / ("mpi-" + key);
        if (!exists(module / "mpi.mod"))
            makeModules(module, key, compiler, includes);
        command.insert(command.begin() + static_cast<std::ptrdiff_t>(before->argument), "-I" + module.string());
        if (exists(module / noF08) && names(command, "mpi_f08"))
            fprintf(stderr, "quipu: no module mpi_f08 for flang, 'use mpi_f08' will not work: %s [no-fortran-module]\n",
                    contentOf(module / noF08).c_str());
    } catch (const std::exception &error) {
        if (names(command, "mpi") || names(command, "mpi_f08"))
            fprintf(stderr, "quipu: no module mpi for flang, 'use mpi' will not work: %s [no-fortran-module]\n",
                    error.what());
    }
}

void linkMpiModules(std::vector<std::string> &command) {
    std::vector<std::string> archives; // arguments of the linker, so that `-x c` does not apply to them
    std::error_code none;
    // Skip temporary folders of other compilers (name.XXXXXX), which may disappear before the linker reads them.
    for (const fs::directory_entry &entry : fs::directory_iterator(cacheFolder(), none))
        if (entry.path().extension().empty() && exists(entry.path() / archive))
            archives.push_back("-Wl," + (entry.path() / archive).string());
    // After all objects, and before the libraries, because linkers may drop libraries that no earlier input needs.
    size_t at = 1;
    while (at < command.size() && !(isLibrary(command[at]) && command[at - 1] != "-o"))
        at++;
    command.insert(command.end(), archives.begin(), archives.end());
    if (at + archives.size() < command.size())
        command.insert(command.begin() + static_cast<std::ptrdiff_t>(at), archives.begin(), archives.end());
}

} // namespace quipu

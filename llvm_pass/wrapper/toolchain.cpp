#include "toolchain.h"

#include <climits>
#include <cstdlib>
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
        {"quipu-cc", {Language::C, false}},      {"quipu-c++", {Language::Cxx, false}},
        {"quipu-cxx", {Language::Cxx, false}},   {"quipu-fc", {Language::Fortran, false}},
        {"quipu-mpicc", {Language::C, true}},    {"quipu-mpic++", {Language::Cxx, true}},
        {"quipu-mpicxx", {Language::Cxx, true}}, {"quipu-mpifort", {Language::Fortran, true}},
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

std::string compilerOf(const Wrapper &wrapper) {
    switch (wrapper.language) {
    case Language::C:
        return wrapper.mpi ? environment("QUIPU_MPICC", "mpicc") : environment("QUIPU_CC", QUIPU_DEFAULT_CC);
    case Language::Cxx:
        return wrapper.mpi ? environment("QUIPU_MPICXX", "mpicxx") : environment("QUIPU_CXX", QUIPU_DEFAULT_CXX);
    case Language::Fortran:
        return wrapper.mpi ? environment("QUIPU_MPIFC", "mpifort") : environment("QUIPU_FC", QUIPU_DEFAULT_FC);
    }
    return "";
}

void pointMpiAtWrapper(Language language) {
    std::string plain = programFolder() + "/" + plainName(language);
    const char *suffix = language == Language::C ? "CC" : language == Language::Cxx ? "CXX" : "FC";
    for (const char *family : {"OMPI_", "MPICH_"})
        setenv((std::string(family) + suffix).c_str(), plain.c_str(), 1);
}

} // namespace quipu

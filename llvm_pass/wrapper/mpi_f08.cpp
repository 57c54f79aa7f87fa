// SPDX-License-Identifier: Apache-2.0
#include "mpi_f08.h"

#include <cctype>
#include <sstream>
#include <vector>

namespace quipu {
namespace {

const char *const procedures =
#include "mpi_f08.def"
    ;

const char *const interfaces =
#include "mpi_f08_interfaces.def"
    ;

const char *const handles[] = {"Comm",    "Datatype", "Errhandler", "File",    "Group", "Info",
                               "Message", "Op",       "Request",    "Session", "Win"};

/// Constants of mpif.h that are handles in mpi_f08, by type. All other names have the same type in both.
const struct {
    const char *type, *names;
} constants[] = {
    {"Comm", "comm_null comm_self comm_world"},
    {"Datatype", "2double_precision 2int 2integer 2real aint byte c_bool c_complex c_double_complex c_float_complex "
                 "c_long_double_complex char character complex complex16 complex32 complex4 complex8 count cxx_bool "
                 "cxx_double_complex cxx_float_complex cxx_long_double_complex datatype_null double double_complex "
                 "double_int double_precision float float_int int int16_t int32_t int64_t int8_t integer integer1 "
                 "integer16 integer2 integer4 integer8 logical logical1 logical2 logical4 logical8 long long_double "
                 "long_double_int long_int long_long long_long_int offset packed real real16 real2 real4 real8 short "
                 "short_int signed_char uint16_t uint32_t uint64_t uint8_t unsigned unsigned_char unsigned_long "
                 "unsigned_long_long unsigned_short wchar"},
    {"Errhandler", "errhandler_null errors_abort errors_are_fatal errors_return"},
    {"File", "file_null"},
    {"Group", "group_empty group_null"},
    {"Info", "info_env info_null"},
    {"Message", "message_no_proc message_null"},
    {"Op", "band bor bxor land lor lxor max maxloc min minloc no_op op_null prod replace sum"},
    {"Request", "request_null"},
    {"Session", "session_null"},
    {"Win", "win_null"},
};

std::vector<std::string> wordsOf(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

template <class... Part> std::string joined(const Part &...parts) {
    std::string text;
    ((text += parts), ...);
    return text;
}

/// Returns the words separated by commas, one per line, because the length of Fortran lines is limited.
std::string listOf(const std::vector<std::string> &words) {
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : ", &\n      ") + word;
    return text;
}

struct Argument {
    std::string name, kind;
};

struct Procedure {
    std::string name;
    std::vector<Argument> arguments;
};

std::vector<Procedure> allProcedures() {
    std::string text;
    std::istringstream lines(procedures);
    for (std::string line; std::getline(lines, line);)
        text += (!line.empty() && line[0] == ' ' ? "" : "\n") + line;
    std::vector<Procedure> found;
    std::istringstream entries(text);
    for (std::string entry; std::getline(entries, entry);) {
        const size_t equals = entry.find('=');
        if (equals == std::string::npos)
            continue;
        std::vector<Argument> arguments;
        for (const std::string &word : wordsOf(entry.substr(equals + 1))) {
            const size_t colon = word.find(':');
            arguments.push_back({word.substr(0, colon), colon == std::string::npos ? "" : word.substr(colon + 1)});
        }
        for (const std::string &name : wordsOf(entry.substr(0, equals)))
            found.push_back({name, arguments});
    }
    return found;
}

bool isNumber(const std::string &kind) { return kind == "Aint" || kind == "Count" || kind == "Offset"; }

std::string numberOf(const std::string &kind) {
    return "integer(kind=MPI_" + (kind == "Aint" ? std::string("ADDRESS") : kind) + "_KIND)";
}

std::string declaration(const Argument &argument) {
    const std::string &kind = argument.kind, &name = argument.name;
    const auto ignoring = [&](const char *what) { return "\n    !dir$ ignore_tkr" + std::string(what) + " " + name; };
    const std::string several = kind.substr(0, kind.empty() ? 0 : kind.size() - 1);
    if (kind.empty())
        return "integer, intent(in) :: " + name;
    if (kind == "any")
        return "integer :: " + name + "(*)" + ignoring("");
    if (kind == "integers")
        return "integer :: " + name + "(*)" + ignoring("(tr)");
    if (kind == "logical")
        return "logical, intent(in) :: " + name;
    if (kind == "string")
        return "character(len=*) :: " + name;
    if (kind == "strings")
        return "character(len=*) :: " + name + "(*)";
    if (kind == "procedure")
        return "external :: " + name;
    if (kind == "Status" || kind == "ignored")
        return "type(MPI_Status), target :: " + name + "(*)" + ignoring("(r)");
    if (isNumber(kind))
        return numberOf(kind) + ", intent(in) :: " + name;
    if (isNumber(several))
        return numberOf(several) + " :: " + name + "(*)" + ignoring("(r)");
    if (kind.back() == 's')
        return "type(MPI_" + several + ") :: " + name + "(*)" + ignoring("(r)");
    return "type(MPI_" + kind + "), intent(in) :: " + name;
}

/// Returns a call of the procedure of mpif.h. The argument `ignored` is replaced by `instead`, because mpi_f08 and
/// mpif.h have different constants MPI_STATUS_IGNORE.
std::string callOf(const Procedure &procedure, const std::string &ignored, const std::string &instead) {
    std::vector<std::string> names;
    names.reserve(procedure.arguments.size() + 1);
    for (const Argument &argument : procedure.arguments)
        names.push_back(argument.name == ignored ? instead : argument.name);
    names.emplace_back("error");
    return "call " + lower(procedure.name) + "(" + listOf(names) + ")\n";
}

std::string bodyOf(const Procedure &procedure) {
    const std::string name = lower(procedure.name);
    std::string declared, ignored;
    std::vector<std::string> names;
    for (const Argument &argument : procedure.arguments) {
        names.push_back(argument.name);
        declared += "    " + declaration(argument) + "\n";
        if (argument.kind == "ignored")
            ignored = argument.name;
    }
    names.emplace_back("ierror");
    std::string text = "  subroutine quipu_" + name + "(" + listOf(names) + ")\n" + declared +
                       "    integer, optional, intent(out) :: ierror\n    integer :: error\n    external :: " + name +
                       "\n";
    if (ignored.empty())
        text += "    " + callOf(procedure, "", "");
    else {
        const bool several = ignored.find("statuses") != std::string::npos;
        const std::string constant = several ? "mpi_statuses_ignore" : "mpi_status_ignore";
        text += "    if (loc(" + ignored + ") == loc(" + constant + ")) then\n      " +
                callOf(procedure, ignored, "f77_" + constant) + "    else\n      " + callOf(procedure, "", "") +
                "    end if\n";
    }
    return text + "    if (present(ierror)) ierror = error\n  end subroutine\n";
}

std::string comparisons() {
    std::string equal, unequal, text;
    for (const std::string handle : handles) {
        equal += (equal.empty() ? "eq_" : ", eq_") + handle;
        unequal += (unequal.empty() ? "ne_" : ", ne_") + handle;
        for (const auto &[name, operation] : {std::pair<std::string, std::string>{"eq_", "=="}, {"ne_", "/="}})
            text += joined("  elemental logical function ", name, handle, "(a, b)\n    type(MPI_", handle,
                           "), intent(in) :: a, b\n    ", name, handle, " = a%MPI_VAL ", operation,
                           " b%MPI_VAL\n  end function\n");
    }
    return "  interface operator (==)\n    module procedure " + equal +
           "\n  end interface\n  interface operator (/=)\n    module procedure " + unequal + "\n  end interface\n" +
           interfaces + text;
}

} // namespace

std::string lower(std::string text) {
    for (char &character : text)
        character = static_cast<char>(tolower(static_cast<unsigned char>(character)));
    return text;
}

std::string f08Source(const std::set<std::string> &known, const std::string &key) {
    std::vector<std::string> renamed = {"mpi_status_ignore", "mpi_statuses_ignore"};
    std::string types, values, generics, bodies;
    for (const std::string handle : handles)
        types += joined("  type, bind(c) :: MPI_", handle, "\n    integer :: MPI_VAL\n  end type\n");
    for (const auto &group : constants)
        for (const std::string &word : wordsOf(group.names))
            if (const std::string name = "mpi_" + word; known.count(name)) {
                renamed.push_back(name);
                values += joined("  type(MPI_", group.type, "), parameter :: ", name, " = MPI_", group.type, "(f77_",
                                 name, ")\n");
            }
    for (const Procedure &procedure : allProcedures()) {
        const std::string name = lower(procedure.name);
        generics += joined("  interface ", procedure.name, "\n    module procedure quipu_", name,
                           "\n  end interface\n  private :: quipu_", name, "\n");
        bodies += bodyOf(procedure);
    }
    for (const char *name : {"mpi_aint_add", "mpi_aint_diff"}) // functions without a type in mpif.h
        if (known.count(name))
            renamed.push_back(name);
    std::vector<std::string> hidden;
    hidden.reserve(renamed.size());
    for (std::string &name : renamed) {
        hidden.push_back("f77_" + name);
        name = joined(hidden.back(), " => ", name);
    }
    const std::string constantsModule = "quipu_mpif_" + key, module = "quipu_f08_" + key;
    return "module " + constantsModule + "\n  implicit none\n  include 'mpif.h'\nend module\n\nmodule " + module +
           "\n  use " + constantsModule + ", " + listOf(renamed) + "\n  implicit none\n" + types +
           "  type :: MPI_Status\n    sequence\n    integer, private :: before(MPI_SOURCE - 1)\n"
           "    integer :: MPI_SOURCE, MPI_TAG, MPI_ERROR\n"
           "    integer, private :: after(MPI_STATUS_SIZE - MPI_SOURCE - 2)\n  end type\n"
           "  type(MPI_Status), target, save :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)\n" +
           values + "  private :: " + listOf(hidden) + "\n" + generics + comparisons() + bodies +
           "end module\n\nmodule mpi_f08\n  use " + module + "\nend module\n";
}

std::string withWeakProcedures(std::string code) {
    // The procedures that every program calls are not weak. If all were weak, linkers could drop the library of the
    // MPI.
    const std::set<std::string> everywhere = {"mpi_init_", "mpi_init_thread_", "mpi_finalize_", "mpi_comm_rank_"};
    const std::string declared = "\ndeclare void @mpi_", weak = "\ndeclare extern_weak void @mpi_";
    for (size_t at = code.find(declared); at != std::string::npos; at = code.find(declared, at + 1)) {
        const size_t begin = at + declared.size() - 4, end = code.find('(', begin);
        if (!everywhere.count(code.substr(begin, end - begin)))
            code.replace(at, declared.size(), weak);
    }
    return code;
}

} // namespace quipu

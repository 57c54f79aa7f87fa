// SPDX-License-Identifier: Apache-2.0
/* Removes the parts of linker names that depend on the MPI library, as modeling/mpi_handles.py does. */
#include "mpi_handles.h"

#include <string.h>

namespace quipu {

namespace {

constexpr long most_digits = 9; /* most digits of a number in a linker name (length of an identifier, repetition) */
constexpr char smpi[] = "PN7simgrid4smpi", status[] = "ompi_status_public_t", any_status[] = "10MPI_Status";
constexpr char any_repetition[] = "S_";
constexpr const char *in_smpi[] = {
#define QUIPU_SMPI_HANDLE(class) #class,
#include "smpi_names.def"
};
/* Functions that SMPI's macros rename, and their names in linker names. */
constexpr const char *renamed_by_smpi[][2] = {
#define QUIPU_SMPI_RENAMED(macro, length, own) {#macro, #length #own},
#include "smpi_names.def"
};

/* A part of a name, from `at` to `end`. */
struct Part {
    const char *at, *end;
    bool is(const char *word) const {
        return strlen(word) == static_cast<size_t>(end - at) && memcmp(at, word, static_cast<size_t>(end - at)) == 0;
    }
    bool starts_with(const char *word) const {
        return strlen(word) <= static_cast<size_t>(end - at) && memcmp(at, word, strlen(word)) == 0;
    }
    bool has(const char *word) const {
        return memmem(at, static_cast<size_t>(end - at), word, strlen(word)) != nullptr;
    }
    char first() const { return at < end ? *at : '\0'; }
    Part after(size_t characters) const { return {at + characters, end}; }
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns the identifier at the begin of a name, after its length; empty if there is none. */
Part word(Part name) {
    size_t length = 0;
    Part rest = name;
    for (; is_digit(rest.first()) && rest.at - name.at <= most_digits; rest.at++)
        length = length * 10 + static_cast<size_t>(*rest.at - '0');
    const long digits = rest.at - name.at;
    const bool fits = digits > 0 && digits <= most_digits && length <= static_cast<size_t>(rest.end - rest.at);
    return fits ? Part{rest.at, rest.at + length} : Part{name.at, name.at};
}

/* Returns the end of a repetition of a type (S, a number in base 36, _) at the begin of a name; the begin if there is
 * none. */
const char *repetition(Part name) {
    if (name.first() != 'S')
        return name.at;
    Part rest = name.after(1);
    while ((is_digit(rest.first()) || (rest.first() >= 'A' && rest.first() <= 'Z')) && rest.at - name.at <= most_digits)
        rest.at++;
    return rest.first() == '_' ? rest.at + 1 : name.at;
}

/* Returns the end of an MPI handle at the begin of a name; the begin if there is none. */
const char *handle(Part name) {
    if (name.starts_with("PN")) {
        const Part inside = name.after(2);
        const char *begin = name.starts_with(smpi) ? name.at + strlen(smpi) : repetition(inside);
        const Part type = word({begin, name.end});
        for (const char *known : in_smpi)
            if (begin > inside.at && type.is(known) && type.end < name.end && *type.end == 'E')
                return type.end + 1;
    }
    if (name.first() == 'P') {
        const Part type = word(name.after(1));
        if (type.starts_with("ompi_") && type.end[-1] == 't' && type.end[-2] == '_' && !type.is(status))
            return type.end;
    }
    return name.at;
}

/* Returns an identifier of a linker name, with its length, in the form that is common to all MPI libraries. */
Part own(Part identifier, Part with_length) {
    if (identifier.is(status))
        return {any_status, any_status + strlen(any_status)};
    for (const auto &renamed : renamed_by_smpi)
        if (identifier.is(renamed[0]))
            return {renamed[1], renamed[1] + strlen(renamed[1])};
    return with_length;
}

char *append(char *out, const char *from, const char *to) {
    memmove(out, from, static_cast<size_t>(to - from));
    return out + (to - from);
}

} // namespace

size_t built_alike(const char *name, size_t length, char *alike) {
    Part rest = {name, name + length};
    const bool handles = rest.has("ompi_") || rest.has(smpi);
    if (!rest.starts_with("_Z") || (!handles && !rest.has("smpi_"))) {
        memcpy(alike, name, length);
        return length;
    }
    char *out = alike;
    while (rest.at < rest.end) {
        const Part type = word(rest);
        const char *end = handle(rest);
        if (end > rest.at) {
            *out++ = 'i';
        } else if ((end = repetition(rest)) > rest.at) {
            out = handles ? append(out, any_repetition, any_repetition + 2) : append(out, rest.at, end);
        } else if (type.end > type.at) {
            end = type.end;
            const Part alike_part = own(type, {rest.at, end});
            out = append(out, alike_part.at, alike_part.end);
        } else {
            *out++ = *rest.at;
            end = rest.at + 1;
        }
        rest.at = end;
    }
    return static_cast<size_t>(out - alike);
}

} // namespace quipu

// SPDX-License-Identifier: Apache-2.0
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace quipu {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/* Splits the text into words in place. After a backslash, a space or # belongs to the word. The backslash stays in the
 * word, because fnmatch understands it. Any other # starts a comment, also inside of a word. */
struct Scanner {
    char *next;
    char *end;
    unsigned line = 1;
    unsigned word_line = 1;

    void skip_line() {
        while (next < end && *next != '\n')
            next++;
    }

    /* Returns the next word, NUL terminated in place, or null at the end of the text. */
    char *word() {
        while (next < end) {
            if (*next == '#') {
                skip_line();
            } else if (is_space(*next)) {
                line += *next++ == '\n';
            } else {
                break;
            }
        }
        if (next >= end)
            return nullptr;
        word_line = line;
        char *start = next;
        while (next < end && !is_space(*next) && *next != '#') {
            if (*next == '\\' && next + 1 < end && next[1] != '\n')
                next++;
            next++;
        }
        if (next < end) {
            const bool comment = *next == '#';
            line += *next == '\n';
            *next++ = '\0';
            if (comment)
                skip_line();
        }
        return start;
    }
};

struct Parser {
    Scanner scanner;
    Filter &filter;
    FilterError &error;
    size_t room = 0;

    bool fail(const char *format, const char *word) {
        error.line = scanner.word_line;
        snprintf(error.message, sizeof error.message, format, word);
        return false;
    }

    bool add(FilterRule rule) {
        if (filter.count == room) {
            room = room ? 2 * room : 64;
            void *grown = realloc(filter.rules, room * sizeof(FilterRule));
            if (!grown)
                return fail("no memory for rule '%s'", rule.pattern);
            filter.rules = static_cast<FilterRule *>(grown);
        }
        filter.rules[filter.count++] = rule;
        return true;
    }

    bool block(bool files) {
        const char *end_word = files ? "SCOREP_FILE_NAMES_END" : "SCOREP_REGION_NAMES_END";
        bool have_rule = false;
        bool include = false;
        FilterRule::Target target = FilterRule::Name;
        while (char *word = scanner.word()) {
            if (!strcmp(word, end_word))
                return true;
            if (!strcmp(word, "EXCLUDE") || !strcmp(word, "INCLUDE")) {
                include = word[0] == 'I';
                have_rule = true;
                target = files ? FilterRule::File : FilterRule::Name;
            } else if (!files && (!strcmp(word, "MANGLED") || !strcmp(word, "DEMANGLED"))) {
                if (!have_rule)
                    return fail("%s before any INCLUDE or EXCLUDE", word);
                target = word[0] == 'M' ? FilterRule::LinkerName : FilterRule::Name;
            } else if (!strncmp(word, "SCOREP_", 7) && strstr(word, "_NAMES_")) {
                return fail("unexpected %s inside of a block", word);
            } else if (strchr(word, '\r')) {
                return fail("carriage return: write the file with Unix line ends%.0s", word);
            } else if (!have_rule) {
                return fail("pattern '%s' before any INCLUDE or EXCLUDE", word);
            } else if (!add({target, include, word})) {
                return false;
            }
        }
        return fail("the file ends before %s", end_word);
    }

    bool file() {
        while (char *word = scanner.word()) {
            bool files = !strcmp(word, "SCOREP_FILE_NAMES_BEGIN");
            if (!files && strcmp(word, "SCOREP_REGION_NAMES_BEGIN") != 0) {
                if (strchr(word, '\r'))
                    return fail("carriage return: write the file with Unix line ends%.0s", word);
                return fail("expected SCOREP_FILE_NAMES_BEGIN or SCOREP_REGION_NAMES_BEGIN, found '%s'", word);
            }
            if (!block(files))
                return false;
        }
        return true;
    }
};

} // namespace

namespace {

/* Returns the function that contains an OpenMP construct, from the name of the body or task: "solve.omp_outlined",
 * "solve() (omp line 7)". Stores the result in `room`. Returns null for other functions, and if the name does not fit.
 */
const char *host_of(const char *name, const char *const *marks, char *room, size_t size) {
    for (; name && *marks; marks++) {
        const char *mark = strstr(name, *marks);
        const size_t length = mark ? static_cast<size_t>(mark - name) : 0;
        if (length == 0 || length >= size)
            continue;
        memcpy(room, name, length);
        room[length] = '\0';
        return room;
    }
    return nullptr;
}

/* The names of a region. For an OpenMP construct, also the names of its function. */
struct Names {
    static constexpr size_t longest = 2048;
    const char *name, *display, *host, *host_display;
    char room[longest], room_of_display[longest];

    Names(const char *linker_name, const char *shown) : name(linker_name), display(shown ? shown : linker_name) {
        static const char *const marks[] = {".omp_target.", ".omp_outlined", ".omp_task_entry.", "..omp_par", nullptr};
        static const char *const marks_of_display[] = {" (omp ", nullptr};
        host = host_of(name, marks, room, sizeof room);
        host_display = host ? host_of(display, marks_of_display, room_of_display, sizeof room_of_display) : nullptr;
    }

    bool fit(const FilterRule &rule) const {
        const bool by_linker = rule.target == FilterRule::LinkerName;
        const char *own = by_linker ? name : display, *around = by_linker ? host : host_display;
        return fnmatch(rule.pattern, own, 0) == 0 || (around && fnmatch(rule.pattern, around, 0) == 0);
    }
};

} // namespace

bool Filter::includes(const char *file, const char *name, const char *display) const {
    bool file_in = true;
    bool name_in = true;
    const Names names(name, display);
    for (size_t i = 0; i < count; i++) {
        const FilterRule &rule = rules[i];
        bool &in = rule.target == FilterRule::File ? file_in : name_in;
        if (in == rule.include)
            continue;
        if (rule.target == FilterRule::File ? file && fnmatch(rule.pattern, file, 0) == 0 : names.fit(rule))
            in = rule.include;
    }
    return file_in && name_in;
}

bool Filter::asks_for(const char *name, const char *display) const {
    const Names names(name, display);
    for (size_t i = count; i-- > 0;)
        if (rules[i].target != FilterRule::File && names.fit(rules[i]))
            return rules[i].include;
    return false;
}

void Filter::clear() {
    free(rules);
    free(text);
    *this = Filter();
}

bool parse_filter(const char *text, size_t length, Filter &filter, FilterError &error) {
    filter.clear();
    filter.text = static_cast<char *>(malloc(length + 1));
    if (!filter.text) {
        snprintf(error.message, sizeof error.message, "no memory");
        return false;
    }
    memcpy(filter.text, text, length);
    filter.text[length] = '\0';
    Parser parser{{filter.text, filter.text + length}, filter, error};
    if (const void *nul = memchr(text, '\0', length)) {
        for (const char *c = text; c < nul; c++)
            parser.scanner.word_line += *c == '\n';
        return parser.fail("a NUL byte: this is not a filter file%s", "");
    }
    return parser.file();
}

bool read_filter(const char *path, Filter &filter, FilterError &error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        snprintf(error.message, sizeof error.message, "cannot read: %s", fd < 0 ? strerror(errno) : "not a file");
        if (fd >= 0)
            close(fd);
        return false;
    }
    size_t size = static_cast<size_t>(status.st_size);
    size_t have = 0;
    char *buffer = static_cast<char *>(calloc(1, size + 1));
    while (buffer && have < size) {
        ssize_t got = read(fd, buffer + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        have += static_cast<size_t>(got);
    }
    close(fd);
    bool ok = buffer && parse_filter(buffer, have, filter, error);
    free(buffer);
    return ok;
}

} // namespace quipu

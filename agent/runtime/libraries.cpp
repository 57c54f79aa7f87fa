// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace quipu {
namespace {

struct Range {
    uintptr_t begin, end;
};

constexpr size_t most = 256; /* largest number of distinguished libraries; further libraries are ignored */
Range known[most];
size_t count;

constexpr char prefix[] = "library:";
char answer[sizeof prefix + PATH_MAX];

struct Search {
    uintptr_t address;
    Range range;
    char name[PATH_MAX]; /* file of the library; empty: the program, or unknown */
};

int look(struct dl_phdr_info *object, size_t, void *data) {
    auto *search = static_cast<Search *>(data);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) &part = object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type != PT_LOAD || search->address < begin || search->address - begin >= part.p_memsz)
            continue;
        search->range = {begin, begin + part.p_memsz};
        snprintf(search->name, sizeof search->name, "%s", object->dlpi_name ? object->dlpi_name : "");
        return 1;
    }
    return 0;
}

} // namespace

const char *new_library_of(const void *address) {
    const auto number = reinterpret_cast<uintptr_t>(address);
    for (size_t i = 0; i < count; i++)
        if (number >= known[i].begin && number < known[i].end)
            return nullptr;
    if (count == most)
        return nullptr;
    static Search search; /* static because the stack may be small; access under the lock */
    search = {number, {number, number + 1}, ""};
    /* dladdr could deadlock: another thread may hold its lock while constructors of a library enter regions and wait
     * for our lock. */
    dl_iterate_phdr(look, &search);
    known[count++] = search.range;
    memcpy(answer, prefix, sizeof prefix);
    return *search.name && realpath(search.name, answer + sizeof prefix - 1) ? answer : nullptr;
}

void name_of_file(const void *address, char *name, size_t size) {
    snprintf(name, size, "this program");
    const ssize_t length = readlink("/proc/self/exe", name, size - 1);
    if (length > 0)
        name[length] = '\0';
    Search search = {reinterpret_cast<uintptr_t>(address), {}, ""};
    dl_iterate_phdr(look, &search);
    if (*search.name)
        snprintf(name, size, "%s", search.name);
}

bool are_in_one_library(const void *code, const void *other) {
    const auto number = reinterpret_cast<uintptr_t>(other);
    Search search = {reinterpret_cast<uintptr_t>(code), {}, ""};
    dl_iterate_phdr(look, &search);
    return *search.name && number >= search.range.begin && number < search.range.end;
}

} // namespace quipu

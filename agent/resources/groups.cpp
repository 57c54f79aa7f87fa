// SPDX-License-Identifier: Apache-2.0
/* Finds the group of the file of a descriptor. This code does not call malloc, because signal handlers may write files.
 */
#include "groups.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace quipu::files {
namespace {

constexpr int most_descriptors = 1 << 16;
constexpr unsigned most_groups = 1000;

Group nobody;                   /* files that are not counted */
Group *known[most_descriptors]; /* the group of each descriptor; null: not known yet */
Group *groups;                  /* list of all groups */
unsigned count;                 /* number of groups */

/* The working folder at the start, and the folder of the profiles. Length 0: it is not known. */
char working_folder[PATH_MAX], own_folder[PATH_MAX];
size_t working_length, own_length;

/* Allocates memory that is never released; null if there is none. */
void *keep(size_t bytes) {
    static char *at, *end;
    bytes = (bytes + 15) & ~size_t{15};
    if (static_cast<size_t>(end - at) < bytes) {
        constexpr size_t block = size_t{64} << 10;
        void *memory = mmap(nullptr, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || bytes > block)
            return nullptr;
        at = static_cast<char *>(memory);
        end = at + block;
    }
    void *memory = at;
    at += bytes;
    return memory;
}

bool locked;

Group *find(const char *name) {
    for (Group *group = __atomic_load_n(&groups, __ATOMIC_ACQUIRE); group; group = group->next)
        if (strcmp(group->region.display, name) == 0)
            return group;
    return nullptr;
}

/* Creates the group with this name, or the group "other files" if there are too many groups. Returns null if there is
 * no memory, or if the lock cannot be had: this is a signal handler that interrupted the owner of the lock. */
Group *make(const char *name, bool regular) {
    for (int attempt = 0; __atomic_exchange_n(&locked, true, __ATOMIC_ACQUIRE); attempt++)
        if (attempt == 100000)
            return nullptr;
    Group *group = find(name);
    constexpr const char *rest = "other files";
    if (!group && count >= most_groups) {
        name = rest;
        group = find(rest);
    }
    constexpr char prefix[] = "file:";
    const size_t length = strlen(name);
    if (!group && (group = static_cast<Group *>(keep(sizeof(Group) + sizeof prefix + length)))) {
        memcpy(group->name, prefix, sizeof prefix);
        memcpy(group->name + sizeof prefix - 1, name, length + 1);
        group->region = {};
        group->region.name = group->name;
        group->region.display = group->name + sizeof prefix - 1;
        group->region.kind = QUIPU_FILE;
        group->regular = regular;
        group->next = groups;
        __atomic_store_n(&groups, group, __ATOMIC_RELEASE);
        count++;
    }
    __atomic_store_n(&locked, false, __ATOMIC_RELEASE);
    return group;
}

Group *named(const char *name, bool regular) {
    Group *group = find(name);
    return group ? group : make(name, regular);
}

bool is_below(const char *path, const char *folder, size_t length) {
    return length && strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Copies a path, with each number replaced by one #, so that the files of all ranks and time steps form one group. */
void without_digits(const char *path, char *name, size_t size) {
    size_t at = 0;
    for (; *path && at + 1 < size; path++) {
        if (!isdigit(static_cast<unsigned char>(*path)))
            name[at++] = *path;
        else if (at == 0 || name[at - 1] != '#')
            name[at++] = '#';
    }
    name[at] = '\0';
}

/* Returns the name of the group for files of the system and for modules of Python; null for other files. */
const char *system_group(const char *path) {
    static const char *const places[][2] = {{"/proc/", "/proc"}, {"/sys/", "/sys"}, {"/dev/shm/", nullptr},
                                            {"/dev/", "/dev"},   {"/etc/", "/etc"}, {"/usr/", "/usr"},
                                            {"/lib", "/usr"},    {"/opt/", "/opt"}, {"/run/", "/run"}};
    if (strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") || strstr(path, "/__pycache__/"))
        return "modules of Python";
    for (const auto &place : places)
        if (strncmp(path, place[0], strlen(place[0])) == 0)
            return place[1];
    return nullptr;
}

Group *of_path(const char *path) {
    char name[PATH_MAX];
    if (is_below(path, own_folder, own_length))
        return &nobody;
    if (is_below(path, working_folder, working_length)) {
        without_digits(path + working_length + 1, name, sizeof name);
        return named(name, true);
    }
    if (const char *place = system_group(path))
        return named(place, false);
    without_digits(path, name, sizeof name);
    return named(name, true);
}

/* The files of the descriptors 0, 1 and 2 (standard input, output and error) at the start of the process. */
struct {
    dev_t device;
    ino_t inode;
} began_with[3];

Group *look_up(int descriptor) {
    static const char *const standard[] = {"(stdin)", "(stdout)", "(stderr)"};
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return &nobody;
    if (descriptor < 3 && status.st_dev == began_with[descriptor].device &&
        status.st_ino == began_with[descriptor].inode)
        return named(standard[descriptor], false);
    if (S_ISFIFO(status.st_mode))
        return named("(pipe)", false);
    if (S_ISSOCK(status.st_mode))
        return named("(socket)", false);
    if (S_ISCHR(status.st_mode))
        return named(isatty(descriptor) ? "(terminal)" : "(device)", false);
    if (!S_ISREG(status.st_mode))
        return &nobody;
    char link[48], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return named("other files", true);
    path[length] = '\0';
    constexpr char deleted[] = " (deleted)";
    char *end = path + length - (sizeof deleted - 1);
    if (end > path && strcmp(end, deleted) == 0)
        *end = '\0';
    return of_path(path);
}

} // namespace

void begin_groups() {
    if (getcwd(working_folder, sizeof working_folder))
        working_length = strlen(working_folder);
    const char *own = getenv("QUIPU_DIR");
    if (own && realpath(own, own_folder))
        own_length = strlen(own_folder);
    for (int descriptor = 0; descriptor < 3; descriptor++) {
        struct stat status;
        if (fstat(descriptor, &status) == 0)
            began_with[descriptor] = {status.st_dev, status.st_ino};
    }
}

Group *group_of(int descriptor) {
    if (descriptor < 0 || descriptor >= most_descriptors)
        return nullptr;
    Group *group = __atomic_load_n(&known[descriptor], __ATOMIC_ACQUIRE);
    if (!group) {
        const int error = errno;
        group = look_up(descriptor);
        __atomic_store_n(&known[descriptor], group, __ATOMIC_RELEASE);
        errno = error;
    }
    return group == &nobody ? nullptr : group;
}

void forget_group(int descriptor) {
    if (descriptor >= 0 && descriptor < most_descriptors)
        __atomic_store_n(&known[descriptor], nullptr, __ATOMIC_RELEASE);
}

} // namespace quipu::files

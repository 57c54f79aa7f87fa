// SPDX-License-Identifier: Apache-2.0
/* The profile on the disk: its name, its descriptor, its space. */
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace quipu {

void say(const char *format, ...) {
    static char line[PATH_MAX + 512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length <= 0)
        return;
    const size_t most = sizeof line - 1, wanted = static_cast<size_t>(length);
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, wanted < most ? wanted : most);
}

/* Moves a descriptor out of the range that programs expect to use or close. The number stays moderate, because the
 * kernel's table of descriptors grows with it and each fork copies the table. */
int keep_high(int low) {
    constexpr rlim_t highest = 4096, distance = 32;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return low;
    const rlim_t most = limit.rlim_cur < highest ? limit.rlim_cur : highest;
    const int high = most > 2 * distance ? fcntl(low, F_DUPFD_CLOEXEC, static_cast<int>(most - distance)) : -1;
    if (high < 0)
        return low;
    close(low);
    return high;
}

int ProfileFile::create(const char *folder) {
    char host[128] = "unknown";
    gethostname(host, sizeof host - 1);
    size_t used = 0;
    path[0] = '\0';
    if (folder[0] != '/') { /* the program may change its working directory */
        if (!getcwd(path, sizeof path))
            return errno;
        used = strlen(path);
    }
    const int length = snprintf(path + used, sizeof path - used, "%s%s/profile-%s-%ld.quipu", used ? "/" : "", folder,
                                host, static_cast<long>(getpid()));
    if (length <= 0 || used + static_cast<size_t>(length) + 8 >= sizeof path)
        return ENAMETOOLONG;
    used += static_cast<size_t>(length) - strlen(".quipu");
    constexpr int how = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    /* A program keeps its pid through exec. The profile of each stage therefore has a separate name. */
    for (int stage = 1; (fd = open(path, how, 0644)) < 0; stage++) {
        if (errno != EEXIST || stage > 1000)
            return errno;
        snprintf(path + used, sizeof path - used, "-%d.quipu", stage);
    }
    struct stat status;
    if (fstat(fd, &status) != 0) {
        const int failure = errno;
        remove();
        return failure;
    }
    device = status.st_dev;
    inode = status.st_ino;
    fd = keep_high(fd);
    return 0;
}

QUIPU_BARE bool ProfileFile::is_ours(int candidate) const {
    struct stat status;
    return candidate >= 0 && fstat(candidate, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

QUIPU_BARE int ProfileFile::descriptor() {
    if (is_ours(fd))
        return fd;
    fd = -1; /* the number now belongs to another file, which must stay open */
    if (!path[0])
        return -1;
    const int again = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (!is_ours(again)) {
        if (again >= 0)
            close(again);
        return -1;
    }
    return fd = keep_high(again);
}

int ProfileFile::grow(uint64_t from, size_t bytes) {
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && from + bytes > most.rlim_cur)
        return EFBIG;
    const int place = descriptor();
    return place < 0 ? EBADF : posix_fallocate(place, static_cast<off_t>(from), static_cast<off_t>(bytes));
}

QUIPU_BARE void ProfileFile::forget() {
    if (is_ours(fd))
        close(fd);
    fd = -1;
    path[0] = '\0';
}

/* Leaves an empty file, which tells the merge that a process was not measured. */
void ProfileFile::leave_empty() {
    const int place = descriptor();
    if (place < 0)
        return;
    [[maybe_unused]] const int truncated = ftruncate(place, 0);
    forget();
}

void ProfileFile::remove() {
    unlink(path);
    forget();
}

} // namespace quipu

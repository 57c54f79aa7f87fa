// SPDX-License-Identifier: Apache-2.0
/* libquipu_files.so: wrappers of the functions of the C library that read and write files (docs/design/files.md).
 *
 * Functions such as read and write make one system call each. Functions of stdio use buffers. If such a function has
 * filled or emptied a buffer, its wrapper reads from the kernel how many system calls this thread has made. */
#include "further.h"
#include "groups.h"
#include "hot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace quipu::files {
namespace {

struct Code {
    uintptr_t begin, size;
};
constexpr int most_parts = 8;
Code own_parts[most_parts]; /* code of Quipu, whose file accesses do not count */
int own_count;

bool is_own(const void *caller) {
    for (int i = 0; i < own_count; i++)
        if (reinterpret_cast<uintptr_t>(caller) - own_parts[i].begin < own_parts[i].size)
            return true;
    return false;
}

/* Bytes, and numbers of system calls (reads, writes), of a thread as the kernel counts them (proc(5), /proc/pid/io). */
struct Account {
    uint64_t bytes_read, bytes_written, reads, writes;
};
/* The counts of the kernel after the latest call that a wrapper counted. */
__thread Account account;
/* account_known: `account` is valid. busy: this thread is inside of this library, and its calls are not counted. */
__thread bool account_known, busy;

/* counting: this library counts calls. started: there is a call path, so calls are counted. */
bool counting, started;
uint32_t metrics; /* index of the first metric of this library in a node; 0: not known yet */

/* Returns the number that follows a key in the same line of a text; 0 if the key is missing. */
uint64_t number_after(const char *text, const char *key) {
    const char *found = strstr(text, key);
    uint64_t value = 0;
    for (const char *c = found ? found + strlen(key) : ""; *c && *c != '\n'; c++)
        if (*c >= '0' && *c <= '9')
            value = value * 10 + static_cast<uint64_t>(*c - '0');
    return value;
}

/* Reads the counts of the kernel for this thread. Uses system calls without the C library, whose functions would be
 * counted. Returns false if the kernel does not provide them. */
bool read_account(Account *now) {
    char text[512];
    const int error = errno;
    const int file = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/io", O_RDONLY | O_CLOEXEC));
    const long length = file < 0 ? -1 : syscall(SYS_read, file, text, sizeof text - 1);
    if (file >= 0)
        syscall(SYS_close, file);
    errno = error;
    if (length <= 0)
        return false;
    text[length] = '\0';
    *now = {number_after(text, "rchar:"), number_after(text, "wchar:"), number_after(text, "syscr:"),
            number_after(text, "syscw:")};
    account = *now;
    account.reads++; /* the read above, which is not in the text */
    account.bytes_read += static_cast<uint64_t>(length);
    return true;
}

/* Computes the system calls and bytes of this thread since `account` was updated. Returns false if they are unknown. */
bool since_last(Account *difference) {
    const Account before = account;
    const bool known = account_known;
    Account now;
    account_known = read_account(&now);
    if (!known || !account_known)
        return false;
    *difference = {now.bytes_read - before.bytes_read, now.bytes_written - before.bytes_written,
                   now.reads - before.reads, now.writes - before.writes};
    return true;
}

void note_read(ssize_t bytes) {
    account.reads++;
    account.bytes_read += bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

void note_written(ssize_t bytes) {
    account.writes++;
    account.bytes_written += bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

/* Returns whether a call of this thread is counted. Calls of Quipu are not. Before the first region, no calls are
 * counted, because there is no call path for them. caller: address in the calling code. */
bool is_counted(const void *caller) {
    if (!counting || busy || is_own(caller))
        return false;
    if (!started && !quipu_current)
        return false;
    started = true;
    return true;
}

/* Returns the group of a descriptor if a call with it is counted; otherwise null. Inside of MPI, only calls of MPI-IO
 * with regular files are counted: sockets and internal files of MPI are not files of the program. */
Group *counted_group(int descriptor, const void *caller) {
    if (!is_counted(caller))
        return nullptr;
    busy = true;
    Group *group = group_of(descriptor);
    const enum quipu_in_mpi place = group ? quipu_in_mpi() : QUIPU_NOT_IN_MPI;
    if (place == QUIPU_IN_MPI || (place == QUIPU_IN_MPI_IO && !group->regular))
        group = nullptr;
    busy = false;
    return group;
}

/* A visit of the region of a group, from construction to destruction; of no region if the group is null. */
class Visit {
  public:
    explicit Visit(Group *group) : group(group) {
        if (!group)
            return;
        const int error = errno;
        busy = true;
        frame = quipu_enter_inline(&group->region);
        if (!metrics)
            metrics = quipu_further_place(QUIPU_GROUP_FILES);
        busy = false;
        errno = error;
    }
    ~Visit() {
        if (!group)
            return;
        const int error = errno;
        quipu_exit_inline(frame, 0);
        errno = error;
    }
    Visit(const Visit &) = delete;
    Visit &operator=(const Visit &) = delete;

    void add(quipu_further_metric metric, uint64_t value) {
        quipu_node *node = group && metrics ? quipu_here() : nullptr;
        if (node && node->id)
            quipu_increase(&node->metrics[metrics + metric], value);
    }
    void read(ssize_t bytes, uint64_t calls = 1) {
        add(QUIPU_FILE_READS, calls);
        add(QUIPU_FILE_BYTES_READ, bytes > 0 ? static_cast<uint64_t>(bytes) : 0);
    }
    void wrote(ssize_t bytes, uint64_t calls = 1) {
        add(QUIPU_FILE_WRITES, calls);
        add(QUIPU_FILE_BYTES_WRITTEN, bytes > 0 ? static_cast<uint64_t>(bytes) : 0);
    }

  private:
    Group *group;
    quipu_frame *frame = nullptr;
};

template <typename Function> Function next_of(Function, const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// NOLINTBEGIN(bugprone-macro-parentheses): names of functions, their parameters and types
/* The next definition of this function in the search order of the dynamic loader. */
#define NEXT(name)                                                                                                     \
    ([]() {                                                                                                            \
        static decltype(&name) found;                                                                                  \
        if (__builtin_expect(!__atomic_load_n(&found, __ATOMIC_ACQUIRE), 0))                                           \
            __atomic_store_n(&found, next_of(&name, #name), __ATOMIC_RELEASE);                                         \
        return found;                                                                                                  \
    }())

template <typename Call> ssize_t reading(int descriptor, const void *caller, Call call) {
    Visit visit(counted_group(descriptor, caller));
    const ssize_t bytes = call();
    note_read(bytes);
    visit.read(bytes);
    return bytes;
}

template <typename Call> ssize_t writing(int descriptor, const void *caller, Call call) {
    Visit visit(counted_group(descriptor, caller));
    const ssize_t bytes = call();
    note_written(bytes);
    visit.wrote(bytes);
    return bytes;
}

/* Counts a system call that copies from one file to another as one read and one write. The region of the written file
 * gets the time. */
template <typename Call> ssize_t copying(int from, int to, const void *caller, Call call) {
    ssize_t bytes;
    {
        Visit visit(counted_group(to, caller));
        bytes = call();
        note_read(bytes);
        note_written(bytes);
        visit.wrote(bytes);
    }
    const int error = errno;
    Visit visit(counted_group(from, caller));
    visit.read(bytes);
    errno = error;
    return bytes;
}

/* Counts a file that is mapped into memory. Later accesses to the memory are not calls and are not counted. */
template <typename Call> void *mapping(int descriptor, size_t bytes, const void *caller, Call call) {
    if (descriptor < 0 || !is_counted(caller))
        return call();
    Visit visit(counted_group(descriptor, caller));
    void *memory = call();
    visit.add(QUIPU_FILE_BYTES_MAPPED, memory == MAP_FAILED ? 0 : bytes);
    return memory;
}

template <typename Call> auto other(int descriptor, const void *caller, Call call) {
    Visit visit(counted_group(descriptor, caller));
    const auto result = call();
    visit.add(QUIPU_FILE_OTHER_CALLS, 1);
    return result;
}

int opened(int descriptor, const void *caller) {
    if (descriptor < 0)
        return descriptor;
    forget_group(descriptor);
    Visit visit(counted_group(descriptor, caller));
    visit.add(QUIPU_FILES_OPENED, 1);
    return descriptor;
}

/* The state of a stream of stdio before a call. After the call, `took` or `put` compares it with the new state, and
 * counts the system calls that the call has made. */
class Buffered {
  public:
    /* caller: address in the calling code. If its calls are not counted, the other functions do nothing. */
    Buffered(FILE *stream, const void *caller)
        : stream(stream), unread(unread_of(stream)), unwritten(unwritten_of(stream)) {
        if (!is_counted(caller) || !stream) {
            this->stream = nullptr;
            return;
        }
        if (!account_known) {
            Account now;
            account_known = read_account(&now);
        }
    }

    /* Counts the reads of a call that took this number of bytes from the stream; -1: not known. */
    void took(ssize_t bytes) {
        if (!stream)
            return;
        const ssize_t left = unread_of(stream);
        const bool ended = bytes == 0 || (stream->_flags & at_end);
        if (bytes >= 0 && left == unread - bytes && !ended)
            return;
        if (bytes < 0 && left <= unread && left && !ended)
            return;
        Account did = {};
        const bool known = since_last(&did);
        /* The count of the kernel is preferred: `bytes` is too small for a line that contains NUL characters. */
        const ssize_t read = known ? static_cast<ssize_t>(did.bytes_read) : bytes >= 0 ? bytes + left - unread : 0;
        const uint64_t calls = did_calls(known, did.reads, read, ended);
        if (!calls)
            return;
        Visit visit(counted_group(fileno_unlocked(stream), nullptr));
        visit.read(read, calls);
    }

    /* Counts the writes of a call that put this number of bytes into the stream; less than 0: the call failed. */
    void put(ssize_t bytes) {
        if (!stream || bytes < 0)
            return;
        const ssize_t waiting = unwritten_of(stream);
        const ssize_t wrote = unwritten + bytes - waiting;
        if (wrote <= 0)
            return;
        Account did = {};
        const bool known = since_last(&did);
        const uint64_t calls =
            did_calls(known && wrote == static_cast<ssize_t>(did.bytes_written), did.writes, wrote, false);
        Visit visit(counted_group(fileno_unlocked(stream), nullptr));
        visit.wrote(wrote, calls);
    }

  private:
    static constexpr int at_end = 0x10, putting = 0x800; /* flags _IO_EOF_SEEN and _IO_CURRENTLY_PUTTING of glibc */

    static ssize_t unread_of(const FILE *stream) {
        return stream && !(stream->_flags & putting) ? stream->_IO_read_end - stream->_IO_read_ptr : 0;
    }
    static ssize_t unwritten_of(const FILE *stream) {
        return stream && (stream->_flags & putting) ? stream->_IO_write_ptr - stream->_IO_write_base : 0;
    }
    /* Returns the number of system calls: `calls` of the kernel if known, or else the number of buffers that the bytes
     * fill, and one more call at the end of the file. */
    uint64_t did_calls(bool known, uint64_t calls, ssize_t bytes, bool ended) const {
        if (known)
            return calls;
        const ssize_t size = stream->_IO_buf_end - stream->_IO_buf_base;
        return (bytes > 0 ? static_cast<uint64_t>(size > 0 ? (bytes + size - 1) / size : 1) : 0) + (ended ? 1 : 0);
    }

    FILE *stream;              /* null: the call is not counted */
    ssize_t unread, unwritten; /* bytes in the buffer before the call */
};

/* Open streams. They may contain unwritten bytes at the end of the process. */
constexpr int most_streams = 1024;
FILE *streams[most_streams];

void note_stream(FILE *stream) {
    for (FILE *&place : streams) {
        FILE *free = nullptr;
        if (__atomic_load_n(&place, __ATOMIC_RELAXED) == stream)
            return;
        if (!place && __atomic_compare_exchange_n(&place, &free, stream, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

void forget_stream(const FILE *stream) {
    for (FILE *&place : streams)
        if (__atomic_load_n(&place, __ATOMIC_RELAXED) == stream)
            __atomic_store_n(&place, nullptr, __ATOMIC_RELAXED);
}

FILE *opened(FILE *stream, const void *caller) {
    if (stream) {
        opened(fileno_unlocked(stream), caller);
        note_stream(stream);
    }
    return stream;
}

/* Counts the unwritten bytes of a stream as one write. The C library writes them at the end of the process, when
 * nothing is counted any more. */
void count_unwritten(FILE *stream) {
    if (!stream || !(stream->_flags & 0x800) || stream->_IO_write_ptr <= stream->_IO_write_base)
        return;
    Visit visit(counted_group(fileno_unlocked(stream), nullptr));
    visit.wrote(stream->_IO_write_ptr - stream->_IO_write_base);
}

int find_own_code(struct dl_phdr_info *library, size_t, void *) {
    if (!library->dlpi_name || !strstr(library->dlpi_name, "libquipu"))
        return 0;
    for (int i = 0; i < library->dlpi_phnum && own_count < most_parts; i++) {
        const auto &part = library->dlpi_phdr[i];
        if (part.p_type == PT_LOAD && part.p_flags & PF_X)
            own_parts[own_count++] = {library->dlpi_addr + part.p_vaddr, part.p_memsz};
    }
    return 0;
}

__attribute__((constructor)) void start() {
    if (!quipu_active() || !quipu_further_place)
        return;
    dl_iterate_phdr(find_own_code, nullptr);
    begin_groups();
    counting = true;
}

__attribute__((destructor)) void finish() {
    count_unwritten(stdout);
    count_unwritten(stderr);
    for (FILE *stream : streams)
        count_unwritten(stream);
    counting = false;
}

} // namespace
} // namespace quipu::files

using namespace quipu::files;

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

extern "C" {

EXPORTED void quipu_settle_files(int) {}

/* These macros define wrappers. On 64-bit systems, functions with and without 64 in their name are equivalent (pread,
 * pread64). Programs also call functions by which headers of the C library replace others (__read_chk for read).
 * Functions that no header declares are declared below. */
#define READING(name, parameters, arguments)                                                                           \
    EXPORTED ssize_t name parameters {                                                                                 \
        return reading(fd, CALLER, [&] { return NEXT(name) arguments; });                                              \
    }
#define WRITING(name, parameters, arguments)                                                                           \
    EXPORTED ssize_t name parameters {                                                                                 \
        return writing(fd, CALLER, [&] { return NEXT(name) arguments; });                                              \
    }

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);
char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __vprintf_chk(int, const char *, va_list);
int __isoc99_vfscanf(FILE *, const char *, va_list);
int __isoc99_vscanf(const char *, va_list);
int __overflow(FILE *, int);
int __uflow(FILE *);
int __underflow(FILE *);

READING(read, (int fd, void *to, size_t size), (fd, to, size))
READING(__read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room))
READING(pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
READING(pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
READING(__pread_chk, (int fd, void *to, size_t size, off_t at, size_t room), (fd, to, size, at, room))
READING(__pread64_chk, (int fd, void *to, size_t size, off64_t at, size_t room), (fd, to, size, at, room))
READING(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))
READING(preadv, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
READING(preadv64, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))
WRITING(write, (int fd, const void *from, size_t size), (fd, from, size))
WRITING(pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at))
WRITING(pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at))
WRITING(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
WRITING(pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
WRITING(pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at))

EXPORTED ssize_t sendfile(int to, int from, off_t *offset, size_t size) noexcept {
    return copying(from, to, CALLER, [&] { return NEXT(sendfile)(to, from, offset, size); });
}
EXPORTED ssize_t sendfile64(int to, int from, off64_t *offset, size_t size) noexcept {
    return copying(from, to, CALLER, [&] { return NEXT(sendfile64)(to, from, offset, size); });
}
EXPORTED ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags) {
    return copying(from, to, CALLER, [&] { return NEXT(copy_file_range)(from, at, to, to_at, size, flags); });
}
EXPORTED void *mmap(void *place, size_t size, int access, int flags, int fd, off_t at) noexcept {
    return mapping(fd, size, CALLER, [&] { return NEXT(mmap)(place, size, access, flags, fd, at); });
}
EXPORTED void *mmap64(void *place, size_t size, int access, int flags, int fd, off64_t at) noexcept {
    return mapping(fd, size, CALLER, [&] { return NEXT(mmap64)(place, size, access, flags, fd, at); });
}
EXPORTED int fsync(int fd) {
    return other(fd, CALLER, [&] { return NEXT(fsync)(fd); });
}
EXPORTED int fdatasync(int fd) {
    return other(fd, CALLER, [&] { return NEXT(fdatasync)(fd); });
}
EXPORTED off_t lseek(int fd, off_t offset, int whence) noexcept {
    return other(fd, CALLER, [&] { return NEXT(lseek)(fd, offset, whence); });
}
EXPORTED off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
    return other(fd, CALLER, [&] { return NEXT(lseek64)(fd, offset, whence); });
}
EXPORTED int close(int fd) {
    const int result = other(fd, CALLER, [&] { return NEXT(close)(fd); });
    forget_group(fd);
    return result;
}
EXPORTED int dup2(int from, int to) noexcept {
    const int result = NEXT(dup2)(from, to);
    forget_group(to);
    return result;
}
EXPORTED int dup3(int from, int to, int flags) noexcept {
    const int result = NEXT(dup3)(from, to, flags);
    forget_group(to);
    return result;
}

/* Defines `mode`, the optional last argument of open. It exists only if the flags allow the call to create a file. */
#define WITH_MODE(flags)                                                                                               \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                     \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = va_arg(list, mode_t);                                                                                   \
        va_end(list);                                                                                                  \
    }

EXPORTED int open(const char *path, int flags, ...) {
    WITH_MODE(flags)
    return opened(NEXT(open)(path, flags, mode), CALLER);
}
EXPORTED int open64(const char *path, int flags, ...) {
    WITH_MODE(flags)
    return opened(NEXT(open64)(path, flags, mode), CALLER);
}
EXPORTED int openat(int folder, const char *path, int flags, ...) {
    WITH_MODE(flags)
    return opened(NEXT(openat)(folder, path, flags, mode), CALLER);
}
EXPORTED int openat64(int folder, const char *path, int flags, ...) {
    WITH_MODE(flags)
    return opened(NEXT(openat64)(folder, path, flags, mode), CALLER);
}
EXPORTED int __open_2(const char *path, int flags) { return opened(NEXT(__open_2)(path, flags), CALLER); }
EXPORTED int __open64_2(const char *path, int flags) { return opened(NEXT(__open64_2)(path, flags), CALLER); }
EXPORTED int __openat_2(int folder, const char *path, int flags) {
    return opened(NEXT(__openat_2)(folder, path, flags), CALLER);
}
EXPORTED int __openat64_2(int folder, const char *path, int flags) {
    return opened(NEXT(__openat64_2)(folder, path, flags), CALLER);
}
EXPORTED int creat(const char *path, mode_t mode) { return opened(NEXT(creat)(path, mode), CALLER); }
EXPORTED int creat64(const char *path, mode_t mode) { return opened(NEXT(creat64)(path, mode), CALLER); }

/* stdio: streams */
EXPORTED FILE *fopen(const char *path, const char *mode) { return opened(NEXT(fopen)(path, mode), CALLER); }
EXPORTED FILE *fopen64(const char *path, const char *mode) { return opened(NEXT(fopen64)(path, mode), CALLER); }
EXPORTED FILE *fdopen(int fd, const char *mode) noexcept {
    FILE *stream = NEXT(fdopen)(fd, mode);
    if (stream)
        note_stream(stream);
    return stream;
}
EXPORTED FILE *freopen(const char *path, const char *mode, FILE *stream) {
    {
        Buffered before(stream, CALLER);
        if (stream)
            NEXT(fflush)(stream);
        before.put(0);
    }
    return opened(NEXT(freopen)(path, mode, stream), CALLER);
}

#define CLOSING(name)                                                                                                  \
    EXPORTED int name(FILE *stream) {                                                                                  \
        const int fd = stream ? fileno_unlocked(stream) : -1;                                                          \
        {                                                                                                              \
            Buffered before(stream, CALLER);                                                                           \
            NEXT(fflush)(stream);                                                                                      \
            before.put(0);                                                                                             \
        }                                                                                                              \
        forget_stream(stream);                                                                                         \
        const int result = other(fd, CALLER, [&] { return NEXT(name)(stream); });                                      \
        forget_group(fd);                                                                                              \
        return result;                                                                                                 \
    }
CLOSING(fclose)

static int flush_all(const void *caller) {
    for (FILE *stream : streams) {
        Buffered before(stream, caller);
        if (stream)
            NEXT(fflush)(stream);
        before.put(0);
    }
    return NEXT(fflush)(nullptr);
}

#define FLUSHING(name)                                                                                                 \
    EXPORTED int name(FILE *stream) {                                                                                  \
        if (!stream)                                                                                                   \
            return flush_all(CALLER);                                                                                  \
        Buffered before(stream, CALLER);                                                                               \
        const int result = NEXT(name)(stream);                                                                         \
        before.put(0);                                                                                                 \
        return result;                                                                                                 \
    }
FLUSHING(fflush)
FLUSHING(fflush_unlocked)

/* Functions that change the position in a stream. They write the content of the buffer, and may read a new buffer. */
#define SEEKING(type, name, parameters, arguments)                                                                     \
    EXPORTED type name parameters {                                                                                    \
        Buffered before(stream, CALLER);                                                                               \
        type const result = NEXT(name) arguments;                                                                      \
        before.put(0);                                                                                                 \
        before.took(-1);                                                                                               \
        return result;                                                                                                 \
    }
SEEKING(int, fseek, (FILE * stream, long offset, int whence), (stream, offset, whence))
SEEKING(int, fseeko, (FILE * stream, off_t offset, int whence), (stream, offset, whence))
SEEKING(int, fseeko64, (FILE * stream, off64_t offset, int whence), (stream, offset, whence))
EXPORTED void rewind(FILE *stream) {
    Buffered before(stream, CALLER);
    NEXT(rewind)(stream); // NOLINT(bugprone-unsafe-functions): the program calls it
    before.put(0);
}

/* stdio: output */
#define PUTTING(type, name, parameters, arguments, of, bytes)                                                          \
    EXPORTED type name parameters {                                                                                    \
        Buffered before(of, CALLER);                                                                                   \
        type const result = NEXT(name) arguments;                                                                      \
        before.put(bytes);                                                                                             \
        return result;                                                                                                 \
    }
#define DONE(number) (result == EOF ? -1 : static_cast<ssize_t>(number))
PUTTING(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *stream), (from, size, count, stream),
        stream, static_cast<ssize_t>(size *result))
PUTTING(size_t, fwrite_unlocked, (const void *from, size_t size, size_t count, FILE *stream),
        (from, size, count, stream), stream, static_cast<ssize_t>(size *result))
PUTTING(int, fputs, (const char *text, FILE *stream), (text, stream), stream, DONE(strlen(text)))
PUTTING(int, fputs_unlocked, (const char *text, FILE *stream), (text, stream), stream, DONE(strlen(text)))
PUTTING(int, fputc, (int byte, FILE *stream), (byte, stream), stream, DONE(1))
PUTTING(int, putc, (int byte, FILE *stream), (byte, stream), stream, DONE(1))
PUTTING(int, fputc_unlocked, (int byte, FILE *stream), (byte, stream), stream, DONE(1))
PUTTING(int, __overflow, (FILE * stream, int byte), (stream, byte), stream, DONE(byte != EOF))
PUTTING(int, putchar, (int byte), (byte), stdout, DONE(1))
PUTTING(int, puts, (const char *text), (text), stdout, DONE(strlen(text) + 1))
PUTTING(int, vfprintf, (FILE * stream, const char *format, va_list list), (stream, format, list), stream, result)
PUTTING(int, vprintf, (const char *format, va_list list), (format, list), stdout, result)
PUTTING(int, __vfprintf_chk, (FILE * stream, int flag, const char *format, va_list list), (stream, flag, format, list),
        stream, result)
PUTTING(int, __vprintf_chk, (int flag, const char *format, va_list list), (flag, format, list), stdout, result)

#define FORMATTING(name, parameters, last, of, call)                                                                   \
    EXPORTED int name parameters {                                                                                     \
        va_list list;                                                                                                  \
        va_start(list, last);                                                                                          \
        Buffered before(of, CALLER);                                                                                   \
        const int result = call;                                                                                       \
        before.put(result);                                                                                            \
        va_end(list);                                                                                                  \
        return result;                                                                                                 \
    }
FORMATTING(fprintf, (FILE * stream, const char *format, ...), format, stream, NEXT(vfprintf)(stream, format, list))
FORMATTING(printf, (const char *format, ...), format, stdout, NEXT(vfprintf)(stdout, format, list))
FORMATTING(__fprintf_chk, (FILE * stream, int flag, const char *format, ...), format, stream,
           NEXT(__vfprintf_chk)(stream, flag, format, list))
FORMATTING(__printf_chk, (int flag, const char *format, ...), format, stdout,
           NEXT(__vfprintf_chk)(stdout, flag, format, list))

/* stdio: input */
#define TAKING(type, name, parameters, arguments, of, bytes)                                                           \
    EXPORTED type name parameters {                                                                                    \
        Buffered before(of, CALLER);                                                                                   \
        type const result = NEXT(name) arguments;                                                                      \
        before.put(0);                                                                                                 \
        before.took(bytes);                                                                                            \
        return result;                                                                                                 \
    }
TAKING(size_t, fread, (void *to, size_t size, size_t count, FILE *stream), (to, size, count, stream), stream,
       result == count ? static_cast<ssize_t>(size * result) : -1)
TAKING(size_t, fread_unlocked, (void *to, size_t size, size_t count, FILE *stream), (to, size, count, stream), stream,
       result == count ? static_cast<ssize_t>(size * result) : -1)
TAKING(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *stream),
       (to, room, size, count, stream), stream, result == count ? static_cast<ssize_t>(size * result) : -1)
TAKING(size_t, __fread_unlocked_chk, (void *to, size_t room, size_t size, size_t count, FILE *stream),
       (to, room, size, count, stream), stream, result == count ? static_cast<ssize_t>(size * result) : -1)
TAKING(char *, fgets, (char *to, int size, FILE *stream), (to, size, stream), stream,
       result ? static_cast<ssize_t>(strlen(result)) : -1)
TAKING(char *, fgets_unlocked, (char *to, int size, FILE *stream), (to, size, stream), stream,
       result ? static_cast<ssize_t>(strlen(result)) : -1)
TAKING(char *, __fgets_chk, (char *to, size_t room, int size, FILE *stream), (to, room, size, stream), stream,
       result ? static_cast<ssize_t>(strlen(result)) : -1)
TAKING(char *, __fgets_unlocked_chk, (char *to, size_t room, int size, FILE *stream), (to, room, size, stream), stream,
       result ? static_cast<ssize_t>(strlen(result)) : -1)
TAKING(int, fgetc, (FILE * stream), (stream), stream, result != EOF ? 1 : -1)
TAKING(int, getc, (FILE * stream), (stream), stream, result != EOF ? 1 : -1)
TAKING(int, fgetc_unlocked, (FILE * stream), (stream), stream, result != EOF ? 1 : -1)
TAKING(int, __uflow, (FILE * stream), (stream), stream, result != EOF ? 1 : -1)
TAKING(int, __underflow, (FILE * stream), (stream), stream, -1)
TAKING(int, getchar, (), (), stdin, result != EOF ? 1 : -1)
TAKING(ssize_t, getline, (char **line, size_t *size, FILE *stream), (line, size, stream), stream, result)
TAKING(ssize_t, getdelim, (char **line, size_t *size, int end, FILE *stream), (line, size, end, stream), stream, result)
TAKING(ssize_t, __getdelim, (char **line, size_t *size, int end, FILE *stream), (line, size, end, stream), stream,
       result)
TAKING(int, __isoc99_vfscanf, (FILE * stream, const char *format, va_list list), (stream, format, list), stream, -1)

#define SCANNING(name, parameters, last, of, call)                                                                     \
    EXPORTED int name parameters {                                                                                     \
        va_list list;                                                                                                  \
        va_start(list, last);                                                                                          \
        Buffered before(of, CALLER);                                                                                   \
        const int result = call;                                                                                       \
        before.put(0);                                                                                                 \
        before.took(-1);                                                                                               \
        va_end(list);                                                                                                  \
        return result;                                                                                                 \
    }
SCANNING(__isoc99_fscanf, (FILE * stream, const char *format, ...), format, stream,
         NEXT(__isoc99_vfscanf)(stream, format, list))
SCANNING(__isoc99_scanf, (const char *format, ...), format, stdin, NEXT(__isoc99_vfscanf)(stdin, format, list))
}
// NOLINTEND(bugprone-macro-parentheses)

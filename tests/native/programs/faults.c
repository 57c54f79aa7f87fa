/* SPDX-License-Identifier: Apache-2.0 */
// To be preloaded: of the calls that Quipu's native parts make of one function, the n-th fails.
//
// FAULT_FUNCTION and FAULT_NUMBER choose it, counted from 1; 0: none. FAULT_COUNTS is a file that gets the number of
// calls of every function, one uint64 each in the order of FUNCTIONS. Calls of the program itself go through.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// name, result if it fails, type of the result, parameters, arguments
#define FUNCTIONS(F)                                                                                                   \
    F(open, -1, int, (const char *path, int flags, unsigned mode), (path, flags, mode))                                \
    F(mmap, MAP_FAILED, void *, (void *at, size_t size, int may, int flags, int fd, off_t from),                       \
      (at, size, may, flags, fd, from))                                                                                \
    F(mremap, MAP_FAILED, void *, (void *old, size_t size, size_t larger, int flags, void *to),                        \
      (old, size, larger, flags, to))                                                                                  \
    F(munmap, -1, int, (void *at, size_t size), (at, size))                                                            \
    F(fstat, -1, int, (int fd, void *status), (fd, status))                                                            \
    F(ftruncate, -1, int, (int fd, off_t size), (fd, size))                                                            \
    F(posix_fallocate, ENOSPC, int, (int fd, off_t from, off_t size), (fd, from, size))                                \
    F(pwrite, -1, ssize_t, (int fd, const void *bytes, size_t size, off_t to), (fd, bytes, size, to))                  \
    F(write, -1, ssize_t, (int fd, const void *bytes, size_t size), (fd, bytes, size))                                 \
    F(read, -1, ssize_t, (int fd, void *bytes, size_t size), (fd, bytes, size))                                        \
    F(fcntl, -1, int, (int fd, int what, long argument), (fd, what, argument))                                         \
    F(getcwd, NULL, char *, (char *path, size_t size), (path, size))                                                   \
    F(gethostname, -1, int, (char *name, size_t size), (name, size))                                                   \
    F(readlink, -1, ssize_t, (const char *path, char *target, size_t size), (path, target, size))                      \
    F(realpath, NULL, char *, (const char *path, char *whole), (path, whole))                                          \
    F(getrlimit, -1, int, (int what, void *limit), (what, limit))                                                      \
    F(getrusage, -1, int, (int whose, void *use), (whose, use))                                                        \
    F(ioctl, -1, int, (int fd, unsigned long what, void *argument), (fd, what, argument))                              \
    F(syscall, -1, long, (long which, long a, long b, long c, long d, long e, long f), (which, a, b, c, d, e, f))      \
    F(timer_create, -1, int, (int clock, void *event, void *timer), (clock, event, timer))                             \
    F(timer_settime, -1, int, (void *timer, int flags, const void *to, void *old), (timer, flags, to, old))            \
    F(dlopen, NULL, void *, (const char *path, int how), (path, how))                                                  \
    F(pthread_attr_getstacksize, EINVAL, int, (const void *attributes, size_t *size), (attributes, size))              \
    F(__getdelim, -1, ssize_t, (char **line, size_t *size, int end, void *file), (line, size, end, file))              \
    F(symlink, -1, int, (const char *target, const char *path), (target, path))                                        \
    F(lstat, -1, int, (const char *path, void *status), (path, status))                                                \
    F(access, -1, int, (const char *path, int how), (path, how))                                                       \
    F(strdup, NULL, char *, (const char *text), (text))                                                                \
    F(sigaltstack, -1, int, (const void *stack, void *old), (stack, old))                                              \
    F(sched_getaffinity, -1, int, (int pid, size_t size, void *set), (pid, size, set))                                 \
    F(pthread_key_create, EAGAIN, int, (void *key, void (*end)(void *)), (key, end))                                   \
    F(pthread_setspecific, ENOMEM, int, (unsigned key, const void *value), (key, value))                               \
    F(__register_atfork, ENOMEM, int, (void (*a)(void), void (*b)(void), void (*c)(void), void *d), (a, b, c, d))      \
    F(fopen, NULL, void *, (const char *path, const char *how), (path, how))                                           \
    F(fwrite, 0, size_t, (const void *bytes, size_t size, size_t number, void *file), (bytes, size, number, file))     \
    F(fflush, EOF, int, (void *file), (file))                                                                          \
    F(fclose, EOF, int, (void *file), (file))                                                                          \
    F(fsync, -1, int, (int fd), (fd))                                                                                  \
    F(rename, -1, int, (const char *from, const char *to), (from, to))                                                 \
    F(unlink, -1, int, (const char *path), (path))                                                                     \
    F(opendir, NULL, void *, (const char *path), (path))                                                               \
    F(fork, -1, int, (void), ())                                                                                       \
    F(setsid, -1, int, (void), ())                                                                                     \
    F(dup2, -1, int, (int from, int to), (from, to))                                                                   \
    F(setenv, -1, int, (const char *name, const char *value, int replace), (name, value, replace))                     \
    F(PMPI_Ibarrier, 1, int, (void *comm, void *request), (comm, request))                                             \
    F(PMPI_Comm_group, 1, int, (void *comm, void *group), (comm, group))                                               \
    F(PMPI_Comm_get_attr, 1, int, (void *comm, int key, void *value, int *there), (comm, key, value, there))           \
    F(PMPI_Comm_get_parent, 1, int, (void *comm), (comm))                                                              \
    F(PMPI_Comm_create_keyval, 1, int, (void *copy, void *end, int *key, void *state), (copy, end, key, state))        \
    F(PMPI_Get_library_version, 1, int, (char *version, int *length), (version, length))                               \
    F(PMPI_Query_thread, 1, int, (int *level), (level))                                                                \
    F(PMPI_Probe, 1, int, (int source, int tag, void *comm, void *status), (source, tag, comm, status))                \
    F(PMPI_Get_elements_x, 1, int, (const void *status, void *type, void *count), (status, type, count))               \
    F(PMPI_Type_size_x, 1, int, (void *type, void *size), (type, size))                                                \
    F(PMPI_Type_get_envelope, 1, int, (void *type, int *a, int *b, int *c, int *d), (type, a, b, c, d))                \
    F(malloc, NULL, void *, (size_t size), (size))                                                                     \
    F(calloc, NULL, void *, (size_t number, size_t size), (number, size))                                              \
    F(realloc, NULL, void *, (void *old, size_t size), (old, size))

#define INDEX(name, ...) of_##name,
enum { FUNCTIONS(INDEX) ALL };
#define NAME(name, ...) #name,
static const char *const names[] = {FUNCTIONS(NAME)};

enum { MOST_RANGES = 32 };
static struct {
    uintptr_t begin, end;
} ranges[MOST_RANGES];
static int range_count;
static _Atomic uint64_t private_counts[ALL], *counts = private_counts;
static int chosen = -1;
static uint64_t number;
static atomic_int state; /* 0: not set up, 1: being set up, 2: ready */

static int begins(const char *text, const char *with) {
    while (*with && *text == *with)
        text++, with++;
    return !*with;
}

/* Without the C library: sanitizers intercept it. */
static int is_of_quipu(const char *path) {
    const char *name = path;
    for (; *path; path++)
        name = *path == '/' ? path + 1 : name;
    return begins(name, "libquipu") || begins(name, "quipu-exec");
}

static int note_range(struct dl_phdr_info *object, size_t size, void *self) {
    (void)size;
    const char *name = *object->dlpi_name ? object->dlpi_name : self;
    if (!is_of_quipu(name))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && range_count < MOST_RANGES; i++) {
        if (object->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        ranges[range_count].begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        ranges[range_count].end = ranges[range_count].begin + object->dlpi_phdr[i].p_memsz;
        range_count++;
    }
    return 0;
}

static void set_up(void) {
    static char self[4096];
    int before = 0;
    if (!atomic_compare_exchange_strong(&state, &before, 1))
        return;
    syscall(SYS_readlink, "/proc/self/exe", self, sizeof self - 1);
    dl_iterate_phdr(note_range, self);
    const char *function = getenv("FAULT_FUNCTION"), *which = getenv("FAULT_NUMBER"), *path = getenv("FAULT_COUNTS");
    number = which ? strtoull(which, NULL, 10) : 0;
    for (int i = 0; function && i < ALL; i++)
        chosen = strcmp(function, names[i]) ? chosen : i;
    const long fd = path ? syscall(SYS_open, path, O_RDWR | O_CREAT, 0644) : -1;
    if (fd >= 0 && syscall(SYS_ftruncate, fd, sizeof private_counts) == 0) {
        const long memory = syscall(SYS_mmap, NULL, sizeof private_counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory > 0)
            counts = (void *)memory;
    }
    if (fd >= 0)
        syscall(SYS_close, fd);
    atomic_store(&state, 2);
}

__attribute__((constructor(101))) static void start(void) { set_up(); }

static int fails(int function, const void *caller) {
    Dl_info object;
    /* What a sanitizer does at its own start cannot use what it intercepts. */
    if (atomic_load(&state) == 0 && dladdr(caller, &object) && is_of_quipu(object.dli_fname))
        set_up();
    if (atomic_load(&state) != 2)
        return 0;
    for (int i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].begin && (uintptr_t)caller < ranges[i].end)
            return atomic_fetch_add(&counts[function], 1) + 1 == number && function == chosen;
    return 0;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);

/* Looking a function up may allocate: the allocator is reached by names of its own. */
static void *function_of(int index) {
    static void *known[ALL];
    void *const allocators[] = {(void *)__libc_malloc, (void *)__libc_calloc, (void *)__libc_realloc};
    if (index >= of_malloc)
        return allocators[index - of_malloc];
    void *found = __atomic_load_n(&known[index], __ATOMIC_ACQUIRE);
    if (!found) {
        found = dlsym(RTLD_NEXT, names[index]);
        __atomic_store_n(&known[index], found, __ATOMIC_RELEASE);
    }
    return found;
}

#define WRAPPER(name, failure, type, parameters, arguments)                                                            \
    __attribute__((visibility("default"))) type fault_##name parameters __asm__(#name);                                \
    type fault_##name parameters {                                                                                     \
        if (fails(of_##name, __builtin_return_address(0))) {                                                           \
            errno = ENOMEM;                                                                                            \
            return (type)(failure);                                                                                    \
        }                                                                                                              \
        return ((type(*) parameters)function_of(of_##name))arguments;                                                  \
    }
FUNCTIONS(WRAPPER)
